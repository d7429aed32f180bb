"""A Dataset: columns over all rows of all episodes, and where each episode starts.

Every episode of T decisions takes T + 1 rows in every column; its last row holds the final
observation, action −1 and reward 0. So one index serves all columns. Only a fragment, cut out of
a longer episode, may know the action that came next: a SARSA tuple is 2 rows with both actions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from rbve.data.check import check_values
from rbve.data.episode import NO_ACTION, OPTIONAL_COLUMNS, Episode, action_names, columns_of
from rbve.data.features import Features

__all__ = ["NO_ACTION", "OPTIONAL_COLUMNS", "Dataset", "Episode"]

_PER_ROW = ("obs", "action", "reward", *OPTIONAL_COLUMNS)
_PER_EPISODE = ("terminated", "complete", "episode_return", "final_observed")
LARGE = 1 << 28  # bytes of a mapped column that are not read at once


@dataclass(frozen=True)
class Dataset:
    obs: np.ndarray  # (R, ...)
    action: np.ndarray  # (R,) int32
    reward: np.ndarray  # (R,) float32
    offsets: np.ndarray  # (E+1,) int64, first row of each episode, then R
    terminated: np.ndarray  # (E,) bool
    complete: np.ndarray  # (E,) bool
    episode_return: np.ndarray  # (E,) float64, undiscounted; NaN = a fragment of unknown return
    actions: tuple[str, ...]  # names; the index is the id
    executed: np.ndarray | None = None
    legal: np.ndarray | None = None
    propensity: np.ndarray | None = None
    final_observed: np.ndarray | None = None  # (E,) bool; None = all final observations are known
    features: Features | None = None  # what the columns of a flat observation mean
    policy: np.ndarray | None = None  # (R, A) float32, π(· | s) of a policy to evaluate; not stored
    provenance: dict[str, Any] = field(default_factory=dict)  # how the data came to be

    def __repr__(self) -> str:
        return (
            f"Dataset({self.num_episodes:,} episodes, {self.num_transitions:,} decisions, "
            f"{self.num_actions} actions, observations {self.obs_shape} {self.obs.dtype})"
        )

    @property
    def num_episodes(self) -> int:
        return len(self.offsets) - 1

    @property
    def num_transitions(self) -> int:
        return len(self.action) - self.num_episodes

    @property
    def num_actions(self) -> int:
        return len(self.actions)

    @property
    def obs_shape(self) -> tuple[int, ...]:
        return self.obs.shape[1:]

    @property
    def finals_known(self) -> np.ndarray:
        """(E,) bool, whether each episode's final observation is known."""
        return (
            np.ones(self.num_episodes, bool) if self.final_observed is None else self.final_observed
        )

    @property
    def returns_known(self) -> np.ndarray:
        """(E,) bool, False for fragments of which nobody said what their episode returned."""
        return ~np.isnan(self.episode_return)

    @property
    def lengths(self) -> np.ndarray:
        """Decisions per episode."""
        return np.diff(self.offsets) - 1

    def episode(self, index: int) -> Episode:
        """One episode, by its `index`; a negative one counts from the end.

        Example:
            >>> log.episode(0).action.tolist()  # the last row holds the final observation
            [1, 2, 0, 2, -1]
        """
        index = range(self.num_episodes)[index]  # IndexError beyond, negative from the end
        rows = slice(self.offsets[index], self.offsets[index + 1])
        columns = {name: getattr(self, name) for name in (*_PER_ROW, *_PER_EPISODE)}
        known = {name: column for name, column in columns.items() if column is not None}
        return Episode(
            **{name: known[name][rows] for name in _PER_ROW if name in known},
            **{name: known[name][index].item() for name in _PER_EPISODE if name in known},
        )

    def select(self, episodes: np.ndarray, note: str) -> "Dataset":
        """The given episodes, in the given order; `note` goes into the provenance.

        Example:
            >>> log.select(np.array([3, 1]), "two of them").num_episodes
            2
        """
        if len(episodes) == 0:
            raise ValueError(
                f"no episode is left after '{note}' on {self.num_episodes} episodes; keep more data"
            )
        lengths = np.diff(self.offsets)[episodes]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        before = np.repeat(self.offsets[:-1][episodes] - offsets[:-1], lengths)
        notes = [*(self.provenance.get("select") or []), note]
        chosen = replace(self, offsets=offsets, provenance={**self.provenance, "select": notes})
        return chosen._indexed(before + np.arange(offsets[-1]), episodes)

    def _indexed(self, rows: Any, episodes: Any) -> "Dataset":
        """Other rows and episodes of the columns; wide ones may stay on disk."""
        columns: dict[str, Any] = {}
        for name in (*_PER_ROW, "policy", *_PER_EPISODE):
            index = episodes if name in _PER_EPISODE else rows
            wide = name in ("obs", "legal") and isinstance(index, np.ndarray)
            if (column := getattr(self, name)) is not None:
                columns[name] = take(column, index) if wide else column[index]
        return replace(self, **columns)

    def subsample(self, fraction: float, seed: int = 0) -> "Dataset":
        """A random share of the episodes, at least one, in their recorded order.

        Args:
            fraction: The share.
            seed: Of the choice; the same seed keeps the same episodes.

        Example:
            >>> log.subsample(0.1).num_episodes
            40
        """
        chosen = np.flatnonzero(sample_episodes(self.num_episodes, fraction, seed))
        if fraction == 1:
            return self
        return self.select(chosen, f"subsample {fraction:g} seed {seed}")

    def split(self, fraction: float, seed: int = 0) -> tuple["Dataset", "Dataset"]:
        """(train, validation) by episode.

        Args:
            fraction: The share that trains.
            seed: Of the choice.

        Example:
            >>> train, held_out = log.split(0.8)
            >>> train.num_episodes, held_out.num_episodes
            (320, 80)
        """
        if not 0 < fraction < 1:
            raise ValueError(f"the training share must lie in (0, 1); got {fraction}")
        order = np.random.default_rng([seed, 1]).permutation(self.num_episodes)
        count = round(fraction * self.num_episodes)
        note = f"split {fraction:g} seed {seed}"
        return (
            self.select(np.sort(order[:count]), f"{note} train"),
            self.select(np.sort(order[count:]), f"{note} validation"),
        )

    def filter_by_return(self, side: Literal["above", "below"]) -> "Dataset":
        """Episodes whose return lies above, or not above, the mean of those that are known.

        Args:
            side: "above" or "below".

        Example:
            >>> better = log.filter_by_return("above")
            >>> bool(better.episode_return.min() > log.episode_return.mean())
            True
        """
        if side not in ("above", "below"):
            raise ValueError(f"side must be 'above' or 'below'; got {side!r}")
        known = self.returns_known
        if not known.any():
            raise ValueError(
                "no return of an episode is known to choose episodes by: these are fragments, such "
                "as lone transitions; name the column of returns when converting, with "
                "--episode-return"
            )
        above = self.episode_return > self.episode_return[known].mean()
        chosen = np.flatnonzero(above if side == "above" else known & ~above)
        return self.select(chosen, f"return {side} mean")

    def with_executed_actions(self) -> "Dataset":
        """The same log, holding the actions the environment executed instead of the chosen ones.

        Example:
            >>> log.with_executed_actions()
            Traceback (most recent call last):
            ValueError: this dataset does not hold executed actions
        """
        if self.executed is None:
            raise ValueError("this dataset does not hold executed actions")
        return replace(
            self, action=self.executed, provenance={**self.provenance, "action": "executed"}
        )

    def part(self, start: int, stop: int) -> "Dataset":
        """Episodes `start` to `stop` as a Dataset of their own, without copying a row.

        Example:
            >>> log.part(0, 2).num_episodes
            2
        """
        rows = slice(self.offsets[start], self.offsets[stop])
        offsets = self.offsets[start : stop + 1] - self.offsets[start]
        return replace(self._indexed(rows, slice(start, stop)), offsets=offsets)

    @staticmethod
    def from_episodes(
        episodes: Iterable[Episode],
        actions: Sequence[str] | int,
        provenance: dict[str, Any] | None = None,
        features: Features | None = None,
        where: str = "",
        first: int = 0,
        checked: bool = True,
    ) -> "Dataset":
        """Gather episodes.

        Args:
            episodes: In the order in which they are kept.
            actions: Names of the action set, or how many there are.
            provenance: How the data came to be; kept with it.
            features: What the columns of a flat observation mean.
            where: What messages of faults begin with.
            first: Number of the first episode, in messages.
            checked: Without, values are taken as they are, for an audit to judge.

        Raises:
            ValueError: There is no episode, or one cannot be.

        Example:
            >>> steps = [np.zeros(2), np.ones(2), np.ones(2)]
            >>> episode = rbve.Episode.from_steps(steps, [0, 1], [0.0, 1.0], terminated=True)
            >>> rbve.Dataset.from_episodes([episode], ("wait", "treat"))
            Dataset(1 episodes, 2 decisions, 2 actions, observations (2,) float64)
        """
        held = list(episodes)
        if not held:
            raise ValueError(f"{where}a dataset needs at least one episode; got none")
        names = action_names(actions)
        dataset = Dataset(
            **columns_of(held, len(names), where, first),
            actions=names,
            features=features,
            provenance=provenance or {},
        )
        if checked:
            check_values(dataset, where, first)
        return dataset

    @staticmethod
    def join(parts: Iterable["Dataset"]) -> "Dataset":
        """Parts of one dataset, one after another, in memory.

        Args:
            parts: With the same columns and actions.

        Example:
            >>> rbve.Dataset.join([log.part(0, 2), log.part(2, 5)]).num_episodes
            5
        """
        held = list(parts)
        if len(held) == 1:
            return held[0]
        if not held:
            raise ValueError("a dataset needs at least one episode; got none")
        known = np.concatenate([part.finals_known for part in held])
        lengths = np.concatenate([np.diff(part.offsets) for part in held])
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in held])
            for name in (*_PER_ROW, *_PER_EPISODE[:-1])
            if getattr(held[0], name) is not None
        }
        columns["final_observed"] = None if known.all() else known
        return replace(held[0], **columns, offsets=np.concatenate([[0], np.cumsum(lengths)]))


class MappedRows:
    """Chosen rows of a column that stays on disk; an array as far as reading goes."""

    def __init__(self, base: np.ndarray, rows: np.ndarray) -> None:
        self.base, self.rows = base, rows
        self.shape, self.dtype, self.ndim = (len(rows), *base.shape[1:]), base.dtype, base.ndim

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> np.ndarray:
        row, *rest = index if isinstance(index, tuple) else (index,)
        return self.base[(self.rows[row], *rest)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.base[self.rows], dtype)


def take(column: Any, rows: np.ndarray) -> Any:
    """Rows of a column, read now unless it is mapped from disk and large."""
    if isinstance(column, MappedRows):  # chosen before
        column, rows = column.base, column.rows[rows]
    chosen = column.nbytes // max(len(column), 1) * len(rows)
    if isinstance(column, np.memmap) and chosen > LARGE:
        return MappedRows(column, rows)
    return column[rows]


def sample_episodes(episodes: int, fraction: float, seed: int) -> np.ndarray:
    """(E,) bool, which episodes a random share holds; also used while they are still recorded."""
    if not 0 < fraction <= 1:
        raise ValueError(f"the share of episodes to keep must lie in (0, 1]; got {fraction}")
    chosen = np.zeros(episodes, bool)
    order = np.random.default_rng([seed, 0]).permutation(episodes)
    chosen[order[: max(1, round(fraction * episodes))]] = True
    return chosen
