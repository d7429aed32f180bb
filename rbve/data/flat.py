"""Flat arrays, one entry per decision, as offline RL saves them: cut into episodes.

    observations, actions, rewards     one row per decision
    terminals | terminated | terminations   1 where the episode truly ended
    timeouts | truncated | truncations      1 where the record stops and the episode went on
    dones                              1 at either end; alone, every end counts as terminated
    next_observations                  optional; holds what came after the last decisions

An episode also ends, truncated, where the next row is not what came next: its observation is
another than the `next_observations` before it. Without those, final observations are unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path

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
    "terminated": ("terminals", "terminated", "terminations"),
    "truncated": ("timeouts", "truncated", "truncations"),
    "done": ("dones",),
    "next_obs": ("next_observations",),
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
            for part in _Cutter(_open_arrays(archive), actions, path, notes).parts():
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
            members[role] = archive.member(present[0])
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
    _check_arrays(members, archive)
    return members


def _check_arrays(members: dict[str, Member], archive: Archive) -> None:
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


class _Cutter:
    """Cuts the arrays into episodes; each part is built from the rows of one or more chunks."""

    def __init__(
        self, members: dict[str, Member], actions: tuple[str, ...], path: Path, notes: list[str]
    ) -> None:
        self.members, self.actions, self.path, self.notes = members, actions, path, notes
        self.episodes = self.breaks = 0
        self.provenance = {
            "source": path.name,
            "format": "npz",
            "arrays": {role: member.name for role, member in members.items()},
        }

    def parts(self) -> Iterator[Dataset]:
        held: list[_Chunk] = []  # rows of an episode that goes on
        for chunk, following in pairwise(chain(self.chunks(), [{}])):
            self.mark_breaks(chunk, following)
            ends = np.flatnonzero(chunk["end"])
            stop = int(ends[-1]) + 1 if len(ends) else 0
            held.append({name: column[:stop] for name, column in chunk.items()})
            if stop:
                yield self.part(joined(held))
                held = []
            held.append({name: column[stop:] for name, column in chunk.items()})
        rows = sum(len(chunk["end"]) for chunk in held)
        if rows:
            table = joined(held)
            table["end"][-1] = True
            self.notes.append(
                f"the last {rows} rows have no end mark; they are kept as a truncated episode"
            )
            yield self.part(table)
        if self.breaks:
            self.notes.append(
                f"in {self.breaks} rows without an end mark 'next_observations' is not the "
                "observation of the next row: episodes are cut there, truncated"
            )

    def chunks(self) -> Iterator[_Chunk]:
        members = self.members
        row_bytes = WORK_BYTES + sum(member.row_bytes for member in members.values())
        size = max(1, PART_BYTES // 2 // row_bytes)  # two are held at a time
        while members["action"].left:
            chunk = {
                "obs": members["obs"].take(size),
                "action": _action_ids(members["action"], size),
                "reward": members["reward"].take(size).reshape(-1),
            }
            if "next_obs" in members:
                chunk["next_obs"] = members["next_obs"].take(size)
            flags = {role: _flags(members[role], size) for role in _ENDS if role in members}
            chunk["end"] = np.logical_or.reduce(list(flags.values()))
            chunk["terminated"] = _terminations(flags)
            yield chunk

    def mark_breaks(self, chunk: _Chunk, following: _Chunk) -> None:
        if "next_obs" not in chunk:
            return
        after = chunk["obs"][1:]
        if following:
            after = np.concatenate([after, following["obs"][:1]])
        other = chunk["next_obs"][: len(after)] != after
        broken = other.any(axis=tuple(range(1, other.ndim))) & ~chunk["end"][: len(after)]
        chunk["end"][: len(after)] |= broken
        self.breaks += int(broken.sum())

    def part(self, table: _Chunk) -> Dataset:
        last = np.flatnonzero(table["end"])  # rows of last decisions
        lengths = np.diff(last, prepend=-1) + 1
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        final = offsets[1:] - 1
        row = np.arange(len(table["end"])) + np.repeat(np.arange(len(last)), lengths - 1)
        obs = np.empty((offsets[-1], *table["obs"].shape[1:]), table["obs"].dtype)
        obs[row] = table["obs"]
        obs[final] = table.get("next_obs", table["obs"])[last]
        action = np.full(offsets[-1], NO_ACTION, np.int32)
        action[row] = table["action"]
        reward = np.zeros(offsets[-1], np.float32)
        # What float32 cannot hold becomes infinite or NaN, which is checked.
        with np.errstate(over="ignore", invalid="ignore"):
            reward[row] = table["reward"]
            returns = np.add.reduceat(reward, offsets[:-1], dtype=np.float64)
        dataset = Dataset(
            obs=obs,
            action=action,
            reward=reward,
            offsets=offsets,
            terminated=table["terminated"][last],
            complete=np.ones(len(last), bool),
            episode_return=returns,
            actions=self.actions,
            final_observed=None if "next_obs" in table else np.zeros(len(last), bool),
            provenance=self.provenance,
        )
        check_values(dataset, f"{self.path}: ", self.episodes)
        self.episodes += len(last)
        return dataset


def _terminations(flags: _Chunk) -> np.ndarray:
    """Which ends are true ones: 'dones' alone cannot tell, and marks time limits too."""
    if "terminated" in flags:
        return flags["terminated"]
    if "done" in flags:
        return flags["done"] & ~flags.get("truncated", np.False_)
    return np.zeros(len(flags["truncated"]), bool)


def joined(held: list[_Chunk]) -> _Chunk:
    if len(held) == 1:
        return held[0]
    return {name: np.concatenate([chunk[name] for chunk in held]) for name in held[0]}
