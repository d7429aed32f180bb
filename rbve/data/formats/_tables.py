"""Parts of a Dataset as tables with one row per decision, and one per final observation."""

import functools
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rbve.data.dataset import Dataset
from rbve.data.logs.roles import ROLES
from rbve.data.source import Source, for_writing
from rbve.files import refuse_to_overwrite, replacing

# Column names that mean something to the reader, so features need others.
_PREFIXES = ("legal:", "legal_", "next_legal:", "next_legal_", "next_observation_")


def table(part: Dataset, first: int, flat: bool) -> pa.Table:
    """`first` numbers the first episode; `flat` spreads arrays over columns."""
    last = part.offsets[1:] - 1
    final = np.zeros(len(part.action), bool)  # rows without a decision
    final[last] = True
    observed = np.ones(len(part.action), bool)
    observed[last] = part.finals_known
    # Fillers are left out, unless one holds what no reader could guess, as a next action.
    written = observed | (part.action >= 0)
    if part.executed is not None:
        written |= part.executed >= 0
    for column in (part.legal, part.propensity):
        if column is not None:
            repeats = (column[last] == column[last - 1]).reshape(len(last), -1).all(axis=1)
            written[last[~repeats]] = True
    index = np.flatnonzero(written)
    episode = np.repeat(np.arange(part.num_episodes), np.diff(part.offsets))[index]
    ends = index == last[episode] - 1  # rows of last decisions
    final, terminated = final[index], part.terminated[episode]
    columns: dict[str, Any] = {
        "episode": first + episode,
        "time": index - part.offsets[:-1][episode],
        **_observation(part, index, observed[index], flat),
        "action": _decisions(part.action[index], part.actions),
        "reward": pa.array(part.reward[index], mask=final),
        "terminated": pa.array(ends & terminated, mask=final),
        "truncated": pa.array(ends & ~terminated, mask=final),
    }
    if part.executed is not None:
        columns["executed"] = _decisions(part.executed[index], part.actions)
    if part.propensity is not None:
        columns["propensity"] = part.propensity[index]
    if part.legal is not None and flat:
        legal = np.asfortranarray(part.legal[index]).T
        columns |= {f"legal:{name}": each for name, each in zip(part.actions, legal, strict=True)}
    elif part.legal is not None:
        legal = pa.array(np.ascontiguousarray(part.legal[index]).reshape(-1))
        columns["legal"] = pa.FixedSizeListArray.from_arrays(legal, len(part.actions))
    columns["complete"] = part.complete[episode]
    columns["episode_return"] = part.episode_return[episode]
    return pa.table(columns)


def observation_names(part: Dataset, flat: bool) -> tuple[str, ...]:
    if part.features is not None:
        names = tuple(
            f"observation_{name}" if name in ROLES or name.startswith(_PREFIXES) else name
            for name in part.features.names
        )
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(
                f"two columns of the observation would be called {twice!r} in a log; rename one"
            )
        return names
    if not flat or not part.obs_shape:
        return ("observation",)
    return tuple(f"observation_{index}" for index in range(int(np.prod(part.obs_shape))))


def _observation(
    part: Dataset, index: np.ndarray, observed: np.ndarray, flat: bool
) -> dict[str, pa.Array]:
    obs, names = np.asarray(part.obs[index]), observation_names(part, flat)
    mask = None if observed.all() else ~observed
    if part.features is None and not flat and part.obs_shape:
        size = int(np.prod(part.obs_shape))
        values = pa.array(np.ascontiguousarray(obs).reshape(-1))
        nulls = None if mask is None else pa.array(mask)
        return {names[0]: pa.FixedSizeListArray.from_arrays(values, size, mask=nulls)}
    columns = obs.reshape(len(obs), -1)
    if flat and columns.dtype == np.bool_:  # as text they would be words
        columns = columns.astype(np.uint8)
    features = (None,) * len(names) if part.features is None else part.features.columns
    return {
        name: _words(cells, feature.categories, mask)
        if feature is not None and feature.kind == "category"
        else pa.array(np.ascontiguousarray(cells), mask=mask)
        for name, cells, feature in zip(names, columns.T, features, strict=True)
    }


def _words(codes: np.ndarray, names: tuple[str, ...], mask: np.ndarray | None) -> pa.Array:
    if codes.dtype.kind == "f" and (gaps := np.isnan(codes)).any():
        mask = gaps if mask is None else mask | gaps
        codes = np.where(gaps, 0, codes)
    indices = codes.astype(np.int64)
    if (indices != codes).any() or (indices < 0).any() or (indices >= len(names)).any():
        raise ValueError(f"a category code lies outside its {len(names)} names; damaged")
    return pa.array(names, pa.string()).take(pa.array(indices, mask=mask))


def _decisions(ids: np.ndarray, names: tuple[str, ...]) -> pa.Array:
    cells = pa.array(ids.astype(np.int64), mask=ids < 0)
    by_id = names == tuple(map(str, range(len(names))))
    return cells if by_id else pa.array(names, pa.string()).take(cells)


def write_file(
    source: Source,
    path: Path,
    overwrite: bool,
    open_writer: Callable[[Any, pa.Table, Dataset], Any],
    flat: bool,
) -> None:
    """Write all parts; `open_writer` takes a file, the first table and the part it comes from."""
    check = functools.partial(refuse_to_overwrite, path, overwrite)
    with replacing(path, check) as partial, open(partial, "wb") as file, ExitStack() as stack:
        writer = None
        for first, part in for_writing(source, path):
            rows = table(part, first, flat)
            if writer is None:
                writer = open_writer(file, rows, part)
                stack.callback(writer.close)
            writer.write_table(rows.cast(writer.schema))
        stack.close()
        file.flush()
        os.fsync(file.fileno())
