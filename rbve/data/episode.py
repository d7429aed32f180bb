"""An Episode: what one run from start to end logged, in columns of T + 1 rows."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

NO_ACTION = -1  # in the final row of an episode, or where the log does not know


class Episode(NamedTuple):
    obs: np.ndarray  # (T+1, ...)
    action: np.ndarray  # (T+1,) int; −1 in the last row
    reward: np.ndarray  # (T+1,) float; 0 in the last row
    terminated: bool  # False = truncated: the value goes on beyond the record
    complete: bool = True  # False = a fragment, whose reward-to-go is unknown
    # Of the whole episode, where the log says so; else the sum of rewards, of a fragment unknown.
    episode_return: float | None = None
    executed: np.ndarray | None = None  # (T+1,) the action the environment executed
    legal: np.ndarray | None = None  # (T+1, A) bool
    propensity: np.ndarray | None = None  # (T+1,) behaviour probability of the action
    final_observed: bool = True  # False: the log lacks the final observation; its row is a filler

    @staticmethod
    def from_steps(
        obs: Sequence[Any], action: Sequence[int], reward: Sequence[float], terminated: bool
    ) -> "Episode":
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


def return_of(episode: Episode) -> float:
    if episode.episode_return is not None:
        return float(episode.episode_return)
    if not episode.complete:
        return float("nan")
    return float(np.sum(episode.reward, dtype=np.float64))


def action_names(actions: Sequence[str] | int) -> tuple[str, ...]:
    names = tuple(map(str, range(actions) if isinstance(actions, int | np.integer) else actions))
    if not names or len(set(names)) != len(names):
        raise ValueError(f"actions must be a non-empty list of different names; got {names}")
    return names


# What a row of each column may hold, as kinds of NumPy's dtypes and in words.
_KINDS = {
    "obs": ("biuf", "numbers"),
    "action": ("iu", "whole numbers"),
    "reward": ("iuf", "numbers"),
    "executed": ("iu", "whole numbers"),
    "legal": ("b", "True and False"),
    "propensity": ("f", "floats"),
}


def columns_of(
    episodes: Sequence[Episode], num_actions: int, where: str, first: int
) -> dict[str, Any]:
    """Columns of a Dataset; `first` is the number of the first episode, for messages."""
    for index, episode in enumerate(episodes):
        place = f"{where}episode {first + index}"
        _check_shapes(episode, num_actions, place, episodes[0].obs.shape[1:])
    known = np.array([episode.final_observed for episode in episodes], bool)
    columns: dict[str, Any] = {
        "offsets": np.cumsum([0] + [len(episode.action) for episode in episodes]),
        "terminated": np.array([episode.terminated for episode in episodes], bool),
        "complete": np.array([episode.complete for episode in episodes], bool),
        "episode_return": np.array([return_of(episode) for episode in episodes]),
        "final_observed": None if known.all() else known,
    }
    ids = np.iinfo(np.int32)
    for name in _KINDS:
        values = [getattr(episode, name) for episode in episodes]
        missing = [index for index, column in enumerate(values) if column is None]
        if len(missing) not in (0, len(episodes)):
            raise ValueError(
                f"{where}episode {first + missing[0]} lacks '{name}' and other episodes have it: "
                "give it for all episodes or for none"
            )
        if missing:
            continue
        if name in ("action", "executed"):
            # Ids beyond int32 become its largest number, which no action has. Each episode by
            # itself: int64 and uint64 side by side would become floats.
            values = [np.clip(column, ids.min, ids.max).astype(np.int32) for column in values]
        dtype = {**OPTIONAL_COLUMNS, "reward": np.float32}.get(name)
        columns[name] = np.asarray(np.concatenate(values), dtype)
    return columns


def _check_shapes(
    episode: Episode, num_actions: int, where: str, obs_shape: tuple[int, ...]
) -> None:
    """Refuse columns that do not belong together; `where` opens the message."""
    rows = len(episode.action)
    if rows < 2:
        raise ValueError(f"{where}: an episode needs at least one decision; got {max(rows - 1, 0)}")
    if episode.obs.shape[1:] != obs_shape:
        raise ValueError(
            f"{where}: observations have shape {episode.obs.shape[1:]}, those of the first episode "
            f"{obs_shape}"
        )
    if episode.obs.size == 0:
        raise ValueError(f"{where}: observations of shape {episode.obs.shape[1:]} hold no number")
    for name, (kinds, words) in _KINDS.items():
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
                f"needs {words} of shape {shape}"
            )
