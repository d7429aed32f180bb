"""Rows of runs as a data frame: one line per run, step and metric."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from rbve import rows

Library = Literal["pandas", "polars", "arrow"]
_FIRST = ("algorithm", "group", "replicate", "seed")  # of every run, whether they differ or not


def results(
    *folders: str | Path, metrics: Sequence[str] = (), library: Library | None = None
) -> Any:
    """Everything that runs have measured, as a tidy data frame.

    Args:
        folders: Folders of runs, as `rbve train`, `rbve reproduce` and `rbve pack` leave them.
        metrics: Only these, such as "return" or "overestimation"; default: all.
        library: "pandas", "polars" or "arrow". Default: pandas where it is installed, else polars.

    Returns:
        A frame with the columns job, algorithm, group (the problem), replicate (the dataset), seed,
        every other field or setting in which the runs differ, step, metric, value and n (how many
        episodes, updates or evaluations a value averages).

    Raises:
        ValueError: A folder holds no rows, or none of these metrics.
        ImportError: Neither pandas nor polars is there.

    Example:
        >>> frame = rbve.results("runs", metrics=["train/td_loss"])
        >>> list(frame.columns)
        ['job', 'algorithm', 'group', 'replicate', 'seed', 'step', 'metric', 'value', 'n']
        >>> mean = frame.groupby(["algorithm", "step"], observed=True)["value"].mean()
    """
    table = _table(rows.find([Path(folder) for folder in folders]), metrics)
    if library == "arrow":
        return table
    if library in (None, "pandas"):
        try:
            return table.to_pandas()
        except ImportError:
            if library == "pandas":
                raise
    try:
        import polars
    except ImportError:
        raise ImportError(
            "results are shown as a data frame of pandas or polars; install one, or pass "
            'library="arrow"'
        ) from None
    return polars.from_arrow(table)


def _table(runs: Sequence[rows.Run], metrics: Sequence[str]) -> pa.Table:
    if not runs:
        raise ValueError("no folder was given; pass the folders of runs")
    kept = [[row for row in run.rows if not metrics or row.metric in metrics] for run in runs]
    if not any(kept):
        known = sorted({row.metric for run in runs for row in run.rows})
        if not known:
            raise ValueError("the runs have no rows yet; wait for their first evaluation")
        raise ValueError(f"no row of {', '.join(metrics)}; there are {', '.join(known)}")
    counts = np.array(list(map(len, kept)))
    columns: dict[str, pa.Array] = {"job": _repeated([run.job for run in runs], counts)}
    fields = [_fields(run) for run in runs]
    names = list(dict.fromkeys(name for own in fields for name in own))
    for name in names:
        values = [own.get(name) for own in fields]
        if name in _FIRST or len({json.dumps(value) for value in values}) > 1:
            columns[name] = _repeated(values, counts)
    flat = [row for own in kept for row in own]
    columns["step"] = pa.array([row.step for row in flat], pa.int64())
    columns["metric"] = pa.array([row.metric for row in flat]).dictionary_encode()
    columns["value"] = pa.array([row.value for row in flat], pa.float64())
    columns["n"] = pa.array([row.n for row in flat], pa.int64())
    return pa.table(columns)


def _fields(run: rows.Run) -> dict[str, Any]:
    """Fields and settings of a run by their flat names, the usual ones first."""
    own = {"algorithm": run.field("algorithm"), "group": run.group, "replicate": run.replicate}
    own["seed"] = run.field("seed")
    for name, value in _flat(run.spec.items()):
        own.setdefault(name, value)
    return own


def _flat(items: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, Any]]:
    for name, value in items:
        if isinstance(value, dict):
            yield from _flat(value.items())
        else:
            yield name, value


def _repeated(values: Sequence[Any], counts: np.ndarray) -> pa.Array:
    """A value for each run, for each of its rows; of several kinds, as text."""
    try:
        one = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        one = pa.array([None if value is None else json.dumps(value) for value in values])
    if pa.types.is_list(one.type):
        one = pa.array([None if value is None else json.dumps(value) for value in values])
    repeated = one.take(pa.array(np.repeat(np.arange(len(values)), counts)))
    return repeated.dictionary_encode() if pa.types.is_string(one.type) else repeated
