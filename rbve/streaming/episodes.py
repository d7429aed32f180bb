"""Policies with a memory, which goes on from row to row of an episode.

What a row's decision follows is what the log says was done in the row before and what it brought;
without a column of actions, what the policy said there.
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rbve.runtime.arrow import BadRow
from rbve.runtime.decider import Decider
from rbve.runtime.inputs import action_id

_NONE = -1  # no action before


class Steps(NamedTuple):
    """Of the rows of a part."""

    episode: np.ndarray  # (N,) numbers; rows of an episode follow each other
    action: np.ndarray | None  # (N,) what was done, _NONE where it is not known
    reward: np.ndarray  # (N,) what that brought, NaN where it is not known

    def of(self, chosen: np.ndarray) -> "Steps":
        done = None if self.action is None else self.action[chosen]
        return Steps(self.episode[chosen], done, self.reward[chosen])


class Episodes:
    """The episode that the last part ended in, and those before it."""

    def __init__(self, episode: str, reward: str, action: str | None) -> None:
        self.columns = [episode, reward, *([action] if action else [])]
        self._names = (episode, reward, action)
        self._ended: set[Any] = set()
        self._count = 0
        self._name: Any = None  # of the episode that goes on
        self._episode = -1  # its number
        self._after: dict[str, np.ndarray] = {}  # its memory
        self._last = (_NONE, 0.0)  # what was done in its last row, and what it brought
        self._broken = -1  # number of the episode that goes on, if its memory lacks a row

    def read(self, batch: pa.RecordBatch, actions: Sequence[str]) -> tuple[Steps, list[BadRow]]:
        """The rows of a part as steps, and those that are none."""
        episode, reward, action = self._names
        why: dict[int, str] = {}
        numbers = self._numbered(batch.column(episode), episode, why)
        brought = batch.column(reward)
        try:
            rewards = brought.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        except pa.ArrowException:
            rewards = np.array([_number(value) for value in brought.to_pylist()])
        odd = ~np.isfinite(rewards) & ~pc.is_null(brought).to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(odd):
            value = brought[int(row)].as_py()
            if value != "":
                why.setdefault(int(row), f"column {reward!r} takes a finite number; got {value!r}")
        done = None
        if action is not None:
            done, wrong = _ids(batch.column(action), actions)
            why |= {row: f"column {action!r}: {words}" for row, words in wrong.items()} | why
        return Steps(numbers, done, rewards), [BadRow(row, why[row]) for row in sorted(why)]

    def _numbered(self, column: Any, name: str, why: dict[int, str]) -> np.ndarray:
        values = column.to_pylist()
        numbers = np.empty(len(values), np.int64)
        for row, value in enumerate(values):
            if value is None or value == "" or value != value:  # NaN
                why[row] = f"column {name!r} says which episode a row is of; it is empty"
            elif value != self._name:
                if value in self._ended:
                    raise ValueError(
                        f"column {name!r}: the rows of episode {value!r} do not follow each other; "
                        "sort the file by episode and time"
                    )
                if self._name is not None:
                    self._ended.add(self._name)
                self._name = value
                self._count += 1
            numbers[row] = self._count
        return numbers

    def without_memory(self, steps: Steps, bad: Collection[int]) -> list[BadRow]:
        """Further rows that cannot be decided: what the row before brought is not known, or a row
        before in their episode is left out, so that the memory lacks it."""
        number = steps.episode
        if not len(number):
            return []
        first = np.append(True, number[1:] != number[:-1])  # of their episodes, in this part
        goes_on = ~first
        goes_on[0] = number[0] == self._episode
        blind = goes_on & np.isnan(np.append(self._last[1], steps.reward[:-1]))
        lacking = blind.copy()
        lacking[list(bad)] = True
        before = np.cumsum(lacking) - lacking
        begin = np.maximum.accumulate(np.where(first, np.arange(len(number)), 0))
        broken = (before > before[begin]) | (number == self._broken)
        self._broken = int(number[-1]) if broken[-1] or lacking[-1] else -1
        no_reward = f"the row before it in its episode has no {self._names[1]}"
        left_out = "a row before it in its episode is left out, so that the memory lacks it"
        return [
            BadRow(int(row), left_out if broken[row] else no_reward)
            for row in np.flatnonzero(blind | broken)
            if row not in bad
        ]

    def decide(
        self, decider: Decider, obs: np.ndarray, legal: np.ndarray | None, steps: Steps
    ) -> dict[str, np.ndarray]:
        """What is decided of the rows, from the memory of those before them."""
        begins = np.flatnonzero(np.diff(steps.episode, prepend=-1))
        lengths = np.diff(np.append(begins, len(obs)))
        state = {name: np.repeat(each, len(begins), 0) for name, each in decider.begin().items()}
        action = np.full(len(begins), _NONE, np.int32)
        reward = np.zeros(len(begins), np.float32)
        if self._after and steps.episode[0] == self._episode:
            for name, each in self._after.items():
                state[name][0] = each[0]
            action[0], reward[0] = self._last
        decided: dict[str, np.ndarray] = {}
        for step in range(int(lengths.max())):
            live = np.flatnonzero(lengths > step)
            rows = begins[live] + step
            found, after = decider.step(
                obs[rows], None if legal is None else legal[rows],
                {
                    "last_action": action[live], "last_reward": reward[live],
                    **{name: each[live] for name, each in state.items()},
                },
            )  # fmt: skip
            for name, each in after.items():
                state[name][live] = each
            action[live] = found["action"] if steps.action is None else steps.action[rows]
            reward[live] = steps.reward[rows]
            for name, each in found.items():
                decided.setdefault(name, np.empty((len(obs), *each.shape[1:]), each.dtype))
                decided[name][rows] = each
        self._after = {name: each[-1:].copy() for name, each in state.items()}
        self._last = int(action[-1]), float(reward[-1])
        self._episode = steps.episode[-1]
        return decided


def _ids(column: Any, actions: Sequence[str]) -> tuple[np.ndarray, dict[int, str]]:
    """Ids of names; every different text is read once."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    texts = [*encoded.dictionary.to_pylist(), None]
    place = pc.fill_null(encoded.indices.cast(pa.int64()), len(texts) - 1)
    which = place.to_numpy(zero_copy_only=False)
    ids, wrong = np.full(len(texts), _NONE, np.int32), dict[int, str]()
    for index, text in enumerate(texts):
        if text is None or text == "":
            continue
        try:
            ids[index] = action_id(str(text), actions)
        except ValueError as error:
            wrong[index] = str(error)
    rows = np.flatnonzero(np.isin(which, list(wrong)))
    return ids[which], {int(row): wrong[int(which[row])] for row in rows}


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")
