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
from rbve.streaming.episodes import Episodes
from rbve.streaming.masks import mask_columns, masks
from rbve.streaming.observations import observation_columns, observations

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
        observation: The columns of a policy without named ones: one of arrays, one for each number,
            or a prefix such as "pixel_*"; () = `observation` or `observation_*`.
        episode: Of a policy with a memory: the column of episode ids, whose rows follow each other;
            None = `episode`.
        reward: Of such a policy: what the action of each row brought; None = `reward`.
        action: Of such a policy: what was done in each row; None = `action` if there is such a
            column, else what the policy decides.
    """

    keep: tuple[str, ...] | None = None
    legal: str | None = None
    values: bool = False
    skip: bool = False
    prefix: str = "policy_"
    observation: tuple[str, ...] = ()
    episode: str | None = None
    reward: str | None = None
    action: str | None = None


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

    def __init__(
        self,
        kept: Sequence[str],
        masks: Sequence[str],
        needed: Sequence[str],
        episodes: Episodes | None,
    ) -> None:
        self.kept, self.masks, self.needed, self.episodes = kept, masks, needed, episodes
        steps = episodes.columns if episodes else ()
        self.read = list(dict.fromkeys([*kept, *masks, *needed, *steps]))


def _open(path: Path, plan: Prediction, done: Predicted) -> Any:
    def on_fault(fault: Fault) -> None:
        if not (plan.skip and fault.kind == _RAGGED):
            more = "; or pass --on-error skip" if fault.kind == _RAGGED else ""
            raise ValueError(fault.text + more)
        done.skipped += 1
        if len(done.listed) < _LISTED:
            done.listed.append(fault.text)

    if not path.exists():
        raise ValueError(f"{path}: no such file")
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
    try:
        episodes = _episodes(names, decider, plan)
        needed = _needed(names, decider, plan)
    except ValueError as error:
        raise ValueError(f"{log.path}: {error}") from None
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
    return _Columns(kept, mask_columns(legal, names, decider.actions), needed, episodes)


def _needed(names: Sequence[str], decider: Decider, plan: Prediction) -> list[str]:
    if decider.features is None:
        return observation_columns(plan.observation, names, decider.obs_shape)
    if plan.observation:
        raise ValueError("this policy knows its columns by name; leave out --observation")
    return decider.features.names


def _episodes(names: Sequence[str], decider: Decider, plan: Prediction) -> Episodes | None:
    asked = {"episode": plan.episode, "reward": plan.reward, "action": plan.action}
    if not decider.memory:
        if given := [role for role, name in asked.items() if name is not None]:
            raise ValueError(f"this policy has no memory; leave out --{given[0]}")
        return None
    columns: dict[str, str | None] = {}
    for role, name in asked.items():
        columns[role] = name if name is not None else role if role in names else None
        if columns[role] is None and role != "action":
            raise ValueError(
                f"this policy has a memory, which goes on along an episode: name the column of "
                f"its {role}s with --{role}"
            )
        if columns[role] is not None and columns[role] not in names:
            hint = did_you_mean(str(name), names)
            raise ValueError(f"no column {name!r}.{hint} Columns: {', '.join(names)}")
    return Episodes(str(columns["episode"]), str(columns["reward"]), columns["action"])


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
    row, episodes = 0, columns.episodes
    for batch in log.batches(columns.read):
        if decider.features is not None:
            obs, bad = encode(decider.features, batch)
        else:
            obs, bad = observations(batch, columns.needed, decider.obs_shape)
        legal, wrong = masks(batch, columns.masks, decider.actions)
        steps = None
        if episodes is not None:
            try:
                steps, odd = episodes.read(batch, decider.actions)
            except ValueError as error:
                raise ValueError(f"{log.path}: {error}") from None
            bad = [*bad, *odd]
            lacking = {each.row for each in (*wrong, *bad)}
            bad += episodes.without_memory(steps, lacking)
        good = np.ones(len(batch), np.bool_)
        faults = {each.row: each for each in (*wrong, *bad)}
        good[list(faults)] = False
        found: dict[str, np.ndarray] = {}
        if good.any():
            mask = None if legal is None else legal[good]
            if episodes is not None and steps is not None:
                found = episodes.decide(decider, obs[good], mask, steps.of(good))
            else:
                found = decider.rows(obs[good], mask)
        if faults:
            _refuse(log, sorted(faults.values()), row, plan, done)
            batch = batch.filter(pa.array(good))
        row += len(good)
        if len(batch):
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
