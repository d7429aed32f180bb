"""Flat arrays, one entry per decision, as offline RL saves them: cut into episodes.

An episode also ends, truncated, where the next row is not what came next: its observation is
another than the `next_observations` before it. Without those, final observations are unknown.
"""

from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rbve.data.check import check_values
from rbve.data.dataset import Dataset
from rbve.data.episode import NO_ACTION
from rbve.data.npy import Archive, Member, opened
from rbve.data.source import PART_BYTES, Source

_NAMES = {
    "obs": ("observations",),
    "action": ("actions",),
    "reward": ("rewards",),
    "terminated": ("terminals", "terminated", "terminations"),  # 1 where the episode truly ended
    "truncated": ("timeouts", "truncated", "truncations"),  # 1 where the record stops before
    "done": ("dones",),  # 1 at either end; alone, every end counts as terminated
    "next_obs": ("next_observations",),  # optional; holds what came after the last decisions
}
_ENDS = ("terminated", "truncated", "done")
_MAX_ACTIONS = 4096
WORK_BYTES = 64  # of a row beside its observations, while it is worked on

_Chunk = dict[str, np.ndarray]


def read(path: Path) -> Source:
    with opened(path) as archive:
        members = _open_arrays(archive)
        rows = members["action"].rows
        notes: list[str] = []
        actions = _action_set(members["action"], notes)
    if "done" in members and not {"terminated", "truncated"} & set(members):
        notes.append(
            "ends marked by 'dones' count as terminated; if time limits are among them, save "
            "'timeouts' too"
        )
    done = 0

    def parts() -> Iterator[Dataset]:
        nonlocal done
        with opened(path) as archive:
            for part in _parts(_open_arrays(archive), actions, path, notes):
                yield part
                done += part.num_transitions

    return Source(parts(), rows, lambda: done, notes)


def _open_arrays(archive: Archive) -> dict[str, Member]:
    members = {}
    for role, names in _NAMES.items():
        present = [name for name in names if name in archive.names]
        if len(present) > 1:
            raise ValueError(
                f"{archive.path}: arrays {' and '.join(map(repr, present))} say the same; keep one"
            )
        if present:
            members[role] = Member(archive, present[0])
        elif role in ("obs", "action", "reward"):
            raise ValueError(
                f"{archive.path}: lacks the array {names[0]!r}; it holds "
                f"{', '.join(archive.names) or 'none'}"
            )
    if not set(_ENDS) & set(members):
        raise ValueError(
            f"{archive.path}: no array says where episodes end; save 'terminals' (1 where an "
            "episode ended) and 'timeouts' (1 where it was cut off)"
        )
    obs, action = members["obs"], members["action"]
    for role, member in members.items():
        if member.rows != action.rows:
            raise ValueError(
                f"{member.where} has {member.rows} rows and {_NAMES['action'][0]!r} {action.rows}; "
                "flat arrays have one row per decision"
            )
        if role not in ("obs", "next_obs") and member.row_shape not in ((), (1,)):
            why = "; actions must be ids of a discrete set" if role == "action" else ""
            raise ValueError(
                f"{member.where} has the shape {member.row_shape} a row; it needs one number{why}"
            )
    if not action.rows:
        raise ValueError(f"{archive.path}: the arrays are empty")
    if not obs.row_bytes:
        raise ValueError(f"{obs.where}: rows of shape {obs.row_shape} hold no number")
    following = members.get("next_obs", obs)
    if following.row_shape != obs.row_shape or following.dtype != obs.dtype:
        raise ValueError(
            f"{following.where} holds {following.dtype} of shape {following.row_shape} a row, and "
            f"'observations' {obs.dtype} of shape {obs.row_shape}; they need the same"
        )
    return members


def _action_set(member: Member, notes: list[str]) -> tuple[str, ...]:
    occurs = np.zeros(_MAX_ACTIONS, bool)
    while member.left:
        occurs[_action_ids(member)] = True
    count = int(np.flatnonzero(occurs)[-1]) + 1
    text = f"{count} actions, as ids 0 to {count - 1} occur"
    if holes := [str(index) for index in np.flatnonzero(~occurs[:count])]:
        text += f"; ids {', '.join(holes[:20])}{', ...' if len(holes) > 20 else ''} never occur"
    notes.append(text)
    return tuple(map(str, range(count)))


def _action_ids(member: Member, count: int = PART_BYTES // WORK_BYTES) -> np.ndarray:
    """The next actions, which are ids, perhaps stored as floats."""
    first = member.rows - member.left
    values = member.take(count).reshape(-1)
    with np.errstate(invalid="ignore"):
        whole = (values >= 0) & (values < _MAX_ACTIONS) & (np.floor(values) == values)
    for row in np.flatnonzero(~whole):
        raise ValueError(
            f"{member.where}, row {first + row}: action {values[row]}; actions are ids of a "
            f"discrete set, whole numbers from 0, below {_MAX_ACTIONS}"
        )
    return values.astype(np.int32)


def _flags(member: Member, count: int) -> np.ndarray:
    first = member.rows - member.left
    values = member.take(count).reshape(-1)
    for row in np.flatnonzero((values != 0) & (values != 1)):
        raise ValueError(
            f"{member.where}, row {first + row}: {values[row]} marks no end; it needs 0 or 1"
        )
    return values.astype(bool)


def _parts(
    members: dict[str, Member], actions: tuple[str, ...], path: Path, notes: list[str]
) -> Iterator[Dataset]:
    """Whole episodes, each part built from the rows of one or more chunks."""
    arrays = {role: member.name for role, member in members.items()}
    provenance = {"source": path.name, "format": "npz", "arrays": arrays}
    held: list[_Chunk] = []  # rows of an episode that goes on
    episodes = breaks = 0
    for chunk, following in pairwise(chain(_chunks(members), [{}])):
        breaks += _mark_breaks(chunk, following)
        end = chunk["end"]
        stop = int(np.flatnonzero(end)[-1]) + 1 if end.any() else 0
        if not following and stop < len(end):
            rows = len(end) - stop + (0 if stop else sum(len(before["end"]) for before in held))
            notes.append(
                f"the last {rows} rows have no end mark; they are kept as a truncated episode"
            )
            end[-1], stop = True, len(end)
        held.append({name: column[:stop] for name, column in chunk.items()})
        if stop:
            table = {name: np.concatenate([each[name] for each in held]) for name in chunk}
            part = _part(table, actions, provenance)
            check_values(part, f"{path}: ", episodes)
            yield part
            episodes += part.num_episodes
            held = []
        held.append({name: column[stop:] for name, column in chunk.items()})
    if breaks:
        notes.append(
            f"in {breaks} rows without an end mark 'next_observations' is not the "
            "observation of the next row: episodes are cut there, truncated"
        )


def _chunks(members: dict[str, Member]) -> Iterator[_Chunk]:
    row_bytes = WORK_BYTES + sum(member.row_bytes for member in members.values())
    size = max(1, PART_BYTES // 2 // row_bytes)  # two are held at a time
    while members["action"].left:
        wide = [role for role in ("obs", "next_obs") if role in members]
        chunk: _Chunk = {role: members[role].take(size) for role in wide}
        chunk["action"] = _action_ids(members["action"], size)
        chunk["reward"] = members["reward"].take(size).reshape(-1)
        flags = {role: _flags(members[role], size) for role in _ENDS if role in members}
        chunk["end"] = np.logical_or.reduce(list(flags.values()))
        # 'dones' alone cannot tell which ends are true ones, and marks time limits too.
        nowhere = np.zeros_like(chunk["end"])
        done = flags.get("done", nowhere) & ~flags.get("truncated", nowhere)
        chunk["terminated"] = flags.get("terminated", done)
        yield chunk


def _mark_breaks(chunk: _Chunk, following: _Chunk) -> int:
    """Ends episodes where the next row is not what came next; how many."""
    if "next_obs" not in chunk:
        return 0
    after = chunk["obs"][1:]
    if following:
        after = np.concatenate([after, following["obs"][:1]])
    other = chunk["next_obs"][: len(after)] != after
    broken = other.any(axis=tuple(range(1, other.ndim))) & ~chunk["end"][: len(after)]
    chunk["end"][: len(after)] |= broken
    return int(broken.sum())


def _part(table: _Chunk, actions: tuple[str, ...], provenance: dict[str, Any]) -> Dataset:
    last = np.flatnonzero(table["end"])  # rows of last decisions
    lengths = np.diff(last, prepend=-1) + 1
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    row = np.arange(len(table["end"])) + np.repeat(np.arange(len(last)), lengths - 1)
    obs = np.empty((offsets[-1], *table["obs"].shape[1:]), table["obs"].dtype)
    obs[row] = table["obs"]
    obs[offsets[1:] - 1] = table.get("next_obs", table["obs"])[last]
    action = np.full(offsets[-1], NO_ACTION, np.int32)
    action[row] = table["action"]
    reward = np.zeros(offsets[-1], np.float32)
    # What float32 cannot hold becomes infinite or NaN, which is checked.
    with np.errstate(over="ignore", invalid="ignore"):
        reward[row] = table["reward"]
        returns = np.add.reduceat(reward, offsets[:-1], dtype=np.float64)
    return Dataset(
        obs=obs,
        action=action,
        reward=reward,
        offsets=offsets,
        terminated=table["terminated"][last],
        complete=np.ones(len(last), bool),
        episode_return=returns,
        actions=actions,
        final_observed=None if "next_obs" in table else np.zeros(len(last), bool),
        provenance=provenance,
    )
