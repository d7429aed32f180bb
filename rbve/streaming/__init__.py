"""Decisions for the rows of a file, however many: read, decided and written part by part."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rbve.data import formats
from rbve.data.logs import LogOptions
from rbve.data.source import Fault, Report
from rbve.files import refuse_to_overwrite, replacing
from rbve.registry import did_you_mean
from rbve.runtime.arrow import BadRow, encode
from rbve.runtime.decider import Decider
from rbve.streaming.masks import mask_columns, masks

__all__ = ["Predicted", "Prediction", "predict"]

_LISTED = 10  # bad rows that are named
_RAGGED = "ragged row"


@dataclass(frozen=True)
class Prediction:
    """What is written for which rows.

    Attributes:
        keep: Columns of the file that are carried through; None = all.
        legal: Column of legal actions: arrays of 0 and 1, or names as in "wait|treat"; or a prefix
            such as "legal:*" of a column for each action.
        values: Also the value of every action.
        skip: Rows that are none are left out, and counted.
        prefix: Of the columns that are added.
    """

    keep: tuple[str, ...] | None = None
    legal: str | None = None
    values: bool = False
    skip: bool = False
    prefix: str = "policy_"


@dataclass
class Predicted:
    """What became of the rows."""

    rows: int = 0  # written
    unsupported: int = 0  # of them
    skipped: int = 0
    listed: list[str] = field(default_factory=list)  # the first that were skipped, with the reason


def predict(
    decider: Decider,
    path: Path,
    out: Path,
    plan: Prediction,
    overwrite: bool = False,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Predicted:
    """Write the decisions for every row of a CSV or Parquet file; `out` appears when it is whole.

    Raises:
        ValueError: A column or row is not what the policy takes; the message names file and line.
    """
    if out.suffix not in (".parquet", ".pq"):
        raise ValueError(f"{out}: decisions are written as Parquet; end the name in .parquet")
    if decider.features is None:
        raise ValueError("the data of this policy had no named columns; decide with policy.act")
    if decider.memory:
        raise ValueError(
            "this policy has a memory, so that rows are not decided one by one; call "
            "policy.start() for each episode"
        )
    refuse_to_overwrite(out, overwrite)
    done = Predicted()
    log = _open(path, plan, done)
    columns = _columns(log, decider, plan)
    with replacing(out, lambda: refuse_to_overwrite(out, overwrite)) as partial:
        writer = None
        try:
            for batch in _decided(log, decider, plan, columns, done):
                writer = writer or pq.ParquetWriter(partial, batch.schema)
                writer.write_batch(batch)
                on_progress(log.position(), log.total)
        finally:
            if writer is not None:
                writer.close()
        if writer is None:
            raise ValueError(f"{path}: no row is left to decide")
    return done


class _Columns:
    """Which columns of the file are read, and for what."""

    def __init__(self, kept: Sequence[str], masks: Sequence[str], needed: Sequence[str]) -> None:
        self.kept, self.masks = kept, masks
        self.read = list(dict.fromkeys([*kept, *masks, *needed]))


def _open(path: Path, plan: Prediction, done: Predicted) -> Any:
    def on_fault(fault: Fault) -> None:
        if not (plan.skip and fault.kind == _RAGGED):
            more = "; or pass --on-error skip" if fault.kind == _RAGGED else ""
            raise ValueError(fault.text + more)
        done.skipped += 1
        if len(done.listed) < _LISTED:
            done.listed.append(fault.text)

    name = formats.recognise(path)
    module = formats.module(name)
    if not hasattr(module, "open_log"):
        raise ValueError(f"{path}: rows are read from CSV and Parquet, not from {name}")
    return module.open_log(path, LogOptions(), Report(path, on_fault))


def _columns(log: Any, decider: Decider, plan: Prediction) -> _Columns:
    names = log.names
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{log.path}: two columns are called {twice[0]!r}; rename one of them")
    kept = names if plan.keep is None else list(plan.keep)
    needed = decider.features.names if decider.features else []
    for name in (*kept, *needed):
        if name not in names:
            hint = did_you_mean(name, names)
            raise ValueError(f"{log.path}: no column {name!r}.{hint} Columns: {', '.join(names)}")
    legal = plan.legal
    if legal is None and decider.masked:
        found = [each for each in ("legal", "legal:*", "legal_*") if _has(each, names, decider)]
        if not found:
            raise ValueError(
                f"{log.path}: the data of this policy says which actions are legal, so these rows "
                "have to: name their column with --legal"
            )
        legal = found[0]
    added = [*_added(decider, plan)]
    if clash := [name for name in kept if name in added]:
        raise ValueError(
            f"{log.path}: the column {clash[0]!r} has the name of one that is added; choose "
            "another --prefix"
        )
    return _Columns(kept, mask_columns(legal, names, decider.actions), needed)


def _has(legal: str, names: Sequence[str], decider: Decider) -> bool:
    try:
        return bool(mask_columns(legal, names, decider.actions))
    except ValueError:
        return False


def _added(decider: Decider, plan: Prediction) -> list[str]:
    own = ["action", "q", "probability", "gap", "supported"]
    own += [f"q:{action}" for action in decider.actions] if plan.values else []
    return [plan.prefix + name for name in own]


def _decided(
    log: Any, decider: Decider, plan: Prediction, columns: _Columns, done: Predicted
) -> Iterator[pa.RecordBatch]:
    row = 0
    assert decider.features is not None
    for batch in log.batches(columns.read):
        table, bad = encode(decider.features, batch)
        legal, wrong = masks(batch, columns.masks, decider.actions)
        if faults := {each.row: each for each in (*wrong, *bad)}:
            _refuse(log, sorted(faults.values()), row, plan, done)
            good = np.ones(len(batch), np.bool_)
            good[list(faults)] = False
            chosen = pa.array(good)
            batch, table = batch.filter(chosen), table[good]
            legal = None if legal is None else legal[good]
            row += len(faults)
        row += len(batch)
        if len(batch):
            found = decider.rows(table, legal)
            yield _written(batch, found, decider, plan, columns)
            done.rows += len(batch)
            done.unsupported += int((~found["supported"]).sum())


def _refuse(log: Any, bad: Sequence[BadRow], first: int, plan: Prediction, done: Predicted) -> None:
    count = _LISTED - len(done.listed) if plan.skip else 1
    rows = [first + each.row for each in bad[:count]]
    texts = log.format == "csv"
    places = log.lines_of(rows) if texts and rows else rows
    word = "line" if texts else "row"
    pairs = zip(places, bad, strict=False)
    told = [f"{log.path}: {word} {place}: {each.why}" for place, each in pairs]
    if not plan.skip:
        raise ValueError(f"{told[0]}; pass --on-error skip to leave such rows out")
    done.listed += told
    done.skipped += len(bad)


def _written(
    batch: pa.RecordBatch,
    found: dict[str, np.ndarray],
    decider: Decider,
    plan: Prediction,
    columns: _Columns,
) -> pa.RecordBatch:
    action, rows = found["action"], np.arange(len(batch))
    names = pa.DictionaryArray.from_arrays(pa.array(action, pa.int32()), list(decider.actions))
    arrays: list[Any] = [
        names, found["q"][rows, action], found["probabilities"][rows, action], found["gap"],
        found["supported"],
    ]  # fmt: skip
    if plan.values:
        arrays += list(np.ascontiguousarray(found["q"].T))
    own = dict(zip(_added(decider, plan), map(pa.array, arrays), strict=True))
    return pa.record_batch({name: batch.column(name) for name in columns.kept} | own)
