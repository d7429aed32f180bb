"""A Dataset: columns over all rows of all episodes, and where each episode starts.

Every episode of T decisions takes T + 1 rows in every column; its last row holds the final
observation, action −1 and reward 0. So one index serves all columns. Only a fragment, cut out of
a longer episode, may know the action that came next: a SARSA tuple is 2 rows with both actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

NO_ACTION = -1  # in the final row of an episode, or where the log does not know


class Episode(NamedTuple):
    obs: np.ndarray  # (T+1, ...)
    action: np.ndarray  # (T+1,) int; −1 in the last row
    reward: np.ndarray  # (T+1,) float; 0 in the last row
    terminated: bool  # False = truncated: the value goes on beyond the record
    complete: bool = True  # False = a fragment, whose reward-to-go is unknown
    episode_return: float | None = None  # of the whole episode, where the log says so
    executed: np.ndarray | None = None  # (T+1,) the action the environment executed
    legal: np.ndarray | None = None  # (T+1, A) bool
    propensity: np.ndarray | None = None  # (T+1,) behaviour probability of the action

    @staticmethod
    def from_steps(
        obs: Sequence[Any], action: Sequence[int], reward: Sequence[float], terminated: bool
    ) -> Episode:
        """From T+1 observations, T actions and T rewards, as a loop over an environment yields."""
        if not len(obs) == len(action) + 1 == len(reward) + 1:
            raise ValueError(
                f"an episode needs one observation more than actions and rewards; got {len(obs)} "
                f"observations, {len(action)} actions, {len(reward)} rewards"
            )
        return Episode(
            np.asarray(obs),
            np.append(np.asarray(action), NO_ACTION),
            np.append(np.asarray(reward, np.float32), np.float32(0)),
            terminated,
        )


# Columns with one entry per row that a dataset may lack.
OPTIONAL_COLUMNS = {"executed": np.int32, "legal": np.bool_, "propensity": np.float32}
# What a row of each column may hold, as kinds of NumPy's dtypes.
KINDS = {
    "obs": "biuf",
    "action": "iu",
    "reward": "iuf",
    "executed": "iu",
    "legal": "b",
    "propensity": "f",
}
KIND_NAMES = {
    "biuf": "numbers",
    "iu": "whole numbers",
    "iuf": "numbers",
    "b": "True and False",
    "f": "floats",
}


@dataclass(frozen=True)
class Dataset:
    obs: np.ndarray  # (R, ...)
    action: np.ndarray  # (R,) int32
    reward: np.ndarray  # (R,) float32
    offsets: np.ndarray  # (E+1,) int64, first row of each episode, then R
    terminated: np.ndarray  # (E,) bool
    complete: np.ndarray  # (E,) bool
    episode_return: np.ndarray  # (E,) float64, undiscounted
    actions: tuple[str, ...]  # names; the index is the id
    executed: np.ndarray | None = None
    legal: np.ndarray | None = None
    propensity: np.ndarray | None = None
    provenance: dict[str, Any] = field(default_factory=dict)  # how the data came to be

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
    def lengths(self) -> np.ndarray:
        """Decisions per episode."""
        return np.diff(self.offsets) - 1

    def episode(self, index: int) -> Episode:
        index = range(self.num_episodes)[index]  # IndexError beyond, negative from the end
        rows = slice(self.offsets[index], self.offsets[index + 1])
        optional = {
            name: None if (column := getattr(self, name)) is None else column[rows]
            for name in OPTIONAL_COLUMNS
        }
        return Episode(
            self.obs[rows],
            self.action[rows],
            self.reward[rows],
            bool(self.terminated[index]),
            bool(self.complete[index]),
            float(self.episode_return[index]),
            **optional,
        )

    def select(self, episodes: np.ndarray, note: str) -> Dataset:
        """The given episodes, in the given order; `note` goes into the provenance."""
        if len(episodes) == 0:
            raise ValueError(
                f"no episode is left after '{note}' on {self.num_episodes} episodes; keep more data"
            )
        lengths = np.diff(self.offsets)[episodes]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        rows = np.repeat(self.offsets[:-1][episodes] - offsets[:-1], lengths) + np.arange(
            offsets[-1]
        )
        columns: dict[str, Any] = {
            name: None if (column := getattr(self, name)) is None else column[rows]
            for name in ("obs", "action", "reward", *OPTIONAL_COLUMNS)
        }
        return replace(
            self,
            **columns,
            offsets=offsets,
            terminated=self.terminated[episodes],
            complete=self.complete[episodes],
            episode_return=self.episode_return[episodes],
            provenance={**self.provenance, "select": [*self.provenance.get("select", []), note]},
        )

    def subsample(self, fraction: float, seed: int = 0) -> Dataset:
        """A random share of the episodes, at least one, in their recorded order."""
        chosen = np.flatnonzero(sample_episodes(self.num_episodes, fraction, seed))
        if fraction == 1:
            return self
        return self.select(chosen, f"subsample {fraction:g} seed {seed}")

    def split(self, fraction: float, seed: int = 0) -> tuple[Dataset, Dataset]:
        """(train, validation) by episode; `fraction` is the share that trains."""
        if not 0 < fraction < 1:
            raise ValueError(f"the training share must lie in (0, 1); got {fraction}")
        order = np.random.default_rng([seed, 1]).permutation(self.num_episodes)
        count = round(fraction * self.num_episodes)
        note = f"split {fraction:g} seed {seed}"
        return (
            self.select(np.sort(order[:count]), f"{note} train"),
            self.select(np.sort(order[count:]), f"{note} validation"),
        )

    def filter_by_return(self, side: Literal["above", "below"]) -> Dataset:
        """Episodes whose return lies above, or not above, the mean episode return."""
        if side not in ("above", "below"):
            raise ValueError(f"side must be 'above' or 'below'; got {side!r}")
        above = self.episode_return > self.episode_return.mean()
        chosen = np.flatnonzero(above if side == "above" else ~above)
        return self.select(chosen, f"return {side} mean")

    def with_executed_actions(self) -> Dataset:
        """The same log, holding the actions the environment executed instead of the chosen ones."""
        if self.executed is None:
            raise ValueError("this dataset does not hold executed actions")
        return replace(
            self, action=self.executed, provenance={**self.provenance, "action": "executed"}
        )

    @staticmethod
    def from_episodes(
        episodes: Iterable[Episode],
        actions: Sequence[str] | int,
        provenance: dict[str, Any] | None = None,
    ) -> Dataset:
        """Gather episodes; `actions` names the action set, or counts it."""
        eps = list(episodes)
        if not eps:
            raise ValueError("a dataset needs at least one episode; got none")
        names = action_names(actions)
        for index, episode in enumerate(eps):
            check_episode(episode, len(names), f"episode {index}", eps[0].obs.shape[1:])
        return Dataset(
            obs=np.concatenate([episode.obs for episode in eps]),
            action=np.concatenate([episode.action for episode in eps]).astype(np.int32),
            reward=np.concatenate([episode.reward for episode in eps]).astype(np.float32),
            offsets=np.cumsum([0] + [len(episode.action) for episode in eps]),
            terminated=np.array([episode.terminated for episode in eps], np.bool_),
            complete=np.array([episode.complete for episode in eps], np.bool_),
            episode_return=np.array([return_of(episode) for episode in eps]),
            actions=names,
            provenance=provenance or {},
            **optional_columns(eps),
        )


def optional_columns(
    episodes: Sequence[Episode], first: int = 0, where: str = ""
) -> dict[str, Any]:
    """Those the episodes have; `first` is the number of the first one, for the message."""
    found: dict[str, Any] = {}
    for name in OPTIONAL_COLUMNS:
        columns = [getattr(episode, name) for episode in episodes]
        missing = [index for index, column in enumerate(columns) if column is None]
        if len(missing) not in (0, len(episodes)):
            raise ValueError(
                f"{where}episode {first + missing[0]} lacks '{name}' and other episodes have it: "
                "give it for all episodes or for none"
            )
        if not missing:
            found[name] = np.concatenate(columns).astype(OPTIONAL_COLUMNS[name])
    return found


def sample_episodes(episodes: int, fraction: float, seed: int) -> np.ndarray:
    """(E,) bool, which episodes a random share holds; also used while they are still recorded."""
    if not 0 < fraction <= 1:
        raise ValueError(f"the share of episodes to keep must lie in (0, 1]; got {fraction}")
    chosen = np.zeros(episodes, bool)
    order = np.random.default_rng([seed, 0]).permutation(episodes)
    chosen[order[: max(1, round(fraction * episodes))]] = True
    return chosen


def return_of(episode: Episode) -> float:
    if episode.episode_return is not None:
        return float(episode.episode_return)
    return float(np.sum(episode.reward, dtype=np.float64))


def action_names(actions: Sequence[str] | int) -> tuple[str, ...]:
    names = tuple(map(str, range(actions) if isinstance(actions, int | np.integer) else actions))
    if not names or len(set(names)) != len(names):
        raise ValueError(f"actions must be a non-empty list of different names; got {names}")
    return names


def check_episode(
    episode: Episode, num_actions: int, where: str, obs_shape: tuple[int, ...] | None = None
) -> None:
    """Refuse what would train silently wrong; `where` opens the message."""
    rows = len(episode.action)
    if rows < 2:
        raise ValueError(f"{where}: an episode needs at least one decision; got {max(rows - 1, 0)}")
    if obs_shape is not None and episode.obs.shape[1:] != obs_shape:
        raise ValueError(
            f"{where}: observations have shape {episode.obs.shape[1:]}, those of the first episode "
            f"{obs_shape}"
        )
    if episode.obs.size == 0:
        raise ValueError(f"{where}: observations of shape {episode.obs.shape[1:]} hold no number")
    for name, kinds in KINDS.items():
        column = getattr(episode, name)
        if column is None:
            continue
        if len(column) != rows:
            raise ValueError(
                f"{where}: '{name}' has {len(column)} rows and 'action' {rows}; every column needs "
                "one row per decision and one for the final observation"
            )
        shape = {"obs": column.shape[1:], "legal": (num_actions,)}.get(name, ())
        if column.dtype.kind not in kinds or column.shape[1:] != shape:
            raise ValueError(
                f"{where}: '{name}' holds {column.dtype} of shape {column.shape[1:]} a row; it "
                f"needs {KIND_NAMES[kinds]} of shape {shape}"
            )
    check_actions(episode, num_actions, where)
    for name, column in (("reward", episode.reward), ("observation", episode.obs)):
        if column.dtype.kind != "f":
            continue
        finite = np.isfinite(column.reshape(rows, -1)).all(axis=1)
        if not finite.all():
            step = int(np.argmin(finite))
            raise ValueError(
                f"{where}, step {step}: the {name} is not finite (NaN or infinity); repair or drop "
                "the episode"
            )
    if episode.reward[-1] != 0:
        raise ValueError(
            f"{where}, step {rows - 1}: reward {episode.reward[-1]:g} in the row of the final "
            "observation, where no decision is left; the reward of a decision stands in its own row"
        )
    if episode.episode_return is not None and not np.isfinite(episode.episode_return):
        raise ValueError(f"{where}: the episode's return is {episode.episode_return}")


def check_actions(episode: Episode, num_actions: int, where: str) -> None:
    rows = len(episode.action)
    fragment = not (episode.complete or episode.terminated)
    for name, column in (("action", episode.action), ("executed action", episode.executed)):
        if column is None:
            continue
        wrong = (column < NO_ACTION) | (column >= num_actions)
        if wrong.any():
            step = int(np.argmax(wrong))
            raise ValueError(
                f"{where}, step {step}: {name} {int(column[step])} is not one of the "
                f"{num_actions} actions (ids 0 to {num_actions - 1})"
            )
        if column[-1] != NO_ACTION and not fragment:
            raise ValueError(
                f"{where}, step {rows - 1}: {name} {int(column[-1])} in the row of the final "
                f"observation, where no decision is left; it needs {NO_ACTION}"
            )
    if episode.legal is not None:
        illegal = (episode.action >= 0) & ~episode.legal[np.arange(rows), episode.action]
        if illegal.any():
            step = int(np.argmax(illegal))
            raise ValueError(
                f"{where}, step {step}: action {int(episode.action[step])} was taken and 'legal' "
                "says it is not; are the masks shifted?"
            )
