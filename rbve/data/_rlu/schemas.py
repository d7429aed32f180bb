"""The four kinds of records in RL Unplugged, and what each means as an Episode.

What the layouts leave unsaid was read off real records:

    atari episodes  Row t holds the observation, the action chosen on it and the reward that
        followed. The last row is a decision too: its discount is its own, and the frozen frames
        after the last life end there, one frame before an earlier death's went on. So an episode
        of L rows has L decisions and its final observation is not logged. The recording ended
        episodes at 27,000 decisions, which is a truncation.
    dmlab           The last row is a dummy that holds the final observation. Episodes end by time
        alone, so they are truncated. The last action and the last reward, which the agent saw
        beside the pixels, are those of the row before; records that say otherwise are refused.
    bsuite          One or two steps of an episode, in the layout of Acme: the reward of a row
        follows its action, and the row of type LAST holds only an observation.
    atari sarsa     (s, a, r, s', a') of an unknown place in its episode.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from rbve.data._rlu.tfrecord import AGAIN, Value
from rbve.data.episode import NO_ACTION, Episode
from rbve.data.images import decode_png

ATARI_LIMIT = 27_000  # decisions, at which the recording cut an episode
ATARI_ACTIONS = 18  # of the whole console
_LAST = 2  # step type of dm_env
_FRAMES = 4  # of a stacked Atari observation

_TURNS = ("left 10", "right 10", "left 60", "right 60")
DMLAB_ACTIONS = (
    *("forward", "back", "strafe left", "strafe right"),
    *(f"look {way}" for way in (*_TURNS, "down 10", "up 10")),
    *(f"forward, look {way}" for way in _TURNS),
    "fire",
)

# Numbers in an observation of bsuite, which does not log their shape: catch, cartpole,
# mountain_car.
BSUITE_SHAPES = {50: (10, 5), 6: (1, 6), 3: (1, 3)}
BSUITE_ACTIONS = 3


class Contradiction(ValueError):
    """A record that is whole and says two things."""


class RecordFeatures(dict[str, Value]):
    """The features of one record, each checked as it is taken."""

    def strings(self, name: str, count: int | None = None) -> list[memoryview]:
        return self._take(name, "strings", "", count)

    def floats(self, name: str, count: int | None = None) -> np.ndarray:
        values = self._take(name, "floats", "f", count)
        for entry in np.flatnonzero(~np.isfinite(values)):
            raise ValueError(f"feature {name!r} is not finite in entry {entry}; {AGAIN}")
        return values

    def ints(self, name: str, count: int | None = None) -> np.ndarray:
        return self._take(name, "whole numbers", "i", count)

    def _take(self, name: str, kind: str, code: str, count: int | None) -> Any:
        if name not in self:
            raise ValueError(f"lacks the feature {name!r}; {AGAIN}")
        value = self[name]
        if code != (value.dtype.kind if isinstance(value, np.ndarray) else ""):
            raise ValueError(f"feature {name!r} does not hold {kind}; {AGAIN}")
        if count is not None and len(value) != count:
            raise ValueError(
                f"feature {name!r} has {len(value)} entries and needs {count}; {AGAIN}"
            )
        if len(value) == 0:
            raise ValueError(f"feature {name!r} is empty; {AGAIN}")
        return value


def _known(name: str, values: np.ndarray, actions: int) -> np.ndarray:
    """Ids below `actions`; others could not be stored, let alone learned."""
    for row in np.flatnonzero((values < 0) | (values >= actions)):
        raise ValueError(
            f"feature {name!r} holds action {values[row]} in row {row}, and there are {actions} "
            f"actions (ids 0 to {actions - 1}); declare more with the option 'actions', or {AGAIN}"
        )
    return values


def sarsa(row: RecordFeatures, shape: tuple[int, ...], actions: int) -> Episode:
    action = _known("a_t", row.ints("a_t", 1), actions)[0]
    terminated = ends("d_t", row.floats("d_t", 1)[0])
    next_action = NO_ACTION if terminated else _known("a_tp1", row.ints("a_tp1", 1), actions)[0]
    frames = decode_png(row.strings("o_t", _FRAMES) + row.strings("o_tp1", _FRAMES), shape[:2])
    return Episode(
        obs=np.stack([np.moveaxis(frames[:_FRAMES], 0, -1), np.moveaxis(frames[_FRAMES:], 0, -1)]),
        action=np.array([action, next_action]),
        reward=np.append(row.floats("r_t", 1), np.float32(0)),
        terminated=terminated,
        complete=False,
        episode_return=float(row.floats("episode_return", 1)[0]),
    )


def _atari_episode(row: RecordFeatures, shape: tuple[int, ...], actions: int) -> Episode:
    action = _known("actions", row.ints("actions"), actions)
    count = len(action)
    discounts = row.floats("discounts", count)
    for early in np.flatnonzero(discounts[:-1] == 0):
        raise Contradiction(f"feature 'discounts' ends the episode at row {early} of {count}")
    total = row.floats("clipped_rewards", count).sum(dtype=np.float64)
    _check_return(total, row.floats("clipped_episode_return", 1)[0])
    pngs = row.strings("observations", count)
    return Episode(
        obs=decode_png([*pngs, pngs[-1]], shape[:2])[..., None],
        action=np.append(action, NO_ACTION),
        reward=np.append(row.floats("unclipped_rewards", count), np.float32(0)),
        terminated=ends("discounts", discounts[-1]) and count < ATARI_LIMIT,
        final_observed=False,
    )


def bsuite(row: RecordFeatures, shape: tuple[int, ...], actions: int) -> Episode | None:
    """None for a record that holds a final observation and nothing decided."""
    kinds = row.ints("step_type")
    steps = len(kinds)
    if steps > 2:
        raise ValueError(f"feature 'step_type' has {steps} steps; a record needs one or two")
    obs = row.floats("observation", steps * math.prod(shape)).reshape(steps, *shape)
    reward = row.floats("reward", steps)
    discounts = row.floats("discount", steps)
    total = row.floats("episodic_reward", steps)
    action = row.ints("action", steps)
    if kinds[0] == _LAST:
        return None
    _known("action", action[kinds != _LAST], actions)
    terminated = ends("discount", discounts[0]) or bool(kinds[-1] == _LAST)
    return Episode(
        obs=obs[[0, -1]],
        action=np.array([action[0], NO_ACTION if terminated or steps == 1 else action[1]]),
        reward=np.array([reward[0], 0], np.float32),
        terminated=terminated,
        complete=False,
        episode_return=float(total[0]),
        final_observed=steps == 2,
    )


def dmlab(row: RecordFeatures, shape: tuple[int, ...], actions: int) -> Episode:
    action = _known("actions", row.ints("actions"), actions)
    count = len(action)
    if count < 2:
        raise ValueError(f"an episode of one row holds no decision; {AGAIN}")
    rewards = row.floats("rewards", count)
    discounts = row.floats("discounts", count)
    if (discounts == 0).tolist() != [False] * (count - 1) + [True] or rewards[-1] != 0:
        raise Contradiction(
            "its last row must be the dummy behind the episode, with reward 0 and alone with "
            "discount 0"
        )
    whole = bool(row.ints("start_idx", 1)[0] == 0)
    _check_seen(row, action, rewards, whole)
    episode_return = float(row.floats("episode_return", 1)[0])
    if whole:
        _check_return(rewards.sum(dtype=np.float64), episode_return)
    return Episode(
        # The files hold BGR where PNG says RGB, so that what OpenCV reverses is RGB.
        obs=decode_png(row.strings("observations_pixels", count), (*shape[:2], 3)),
        action=np.append(action[:-1], NO_ACTION),
        reward=rewards,
        terminated=False,
        complete=whole,
        episode_return=episode_return,
    )


def _check_seen(row: RecordFeatures, action: np.ndarray, rewards: np.ndarray, whole: bool) -> None:
    """The action and reward that the agent saw beside the pixels are those of the row before."""
    one_hot = np.eye(len(DMLAB_ACTIONS), dtype=np.float32)[action]
    before = np.concatenate([np.zeros_like(one_hot[:1]), one_hot[:-1]])
    logged = row.floats("observations_action", before.size).reshape(before.shape)
    wrong = (logged != before).any(axis=1)
    wrong[0] &= whole  # before the first row of a later part, something was done
    for step in np.flatnonzero(wrong):
        words = f"action {action[step - 1]} of the row before" if step else "no action yet"
        raise Contradiction(f"feature 'observations_action', row {step}: it must say {words}")
    expected = np.concatenate([[0], rewards[:-1]])
    last = row.floats("observations_reward", len(rewards))
    wrong = last != expected
    wrong[0] &= whole
    for step in np.flatnonzero(wrong):
        raise Contradiction(
            f"feature 'observations_reward', row {step}: {last[step]:g}, and the reward before was "
            f"{expected[step]:g}"
        )


def _check_return(total: float, logged: float) -> None:
    if abs(total - logged) > 1e-3 * max(1.0, abs(logged)):
        raise Contradiction(f"its rewards sum to {total:g}, and it logs a return of {logged:g}")


def ends(name: str, discount: float) -> bool:
    if discount not in (0, 1):
        raise ValueError(f"feature {name!r} holds a discount of {discount:g}; it must be 0 or 1")
    return bool(discount == 0)


class _Schema(NamedTuple):
    features: set[str]
    episode: Callable[[RecordFeatures, tuple[int, ...], int], Episode | None]
    obs_shape: tuple[int, ...] | None  # None: the first record tells


_SARSA = "o_t a_t r_t d_t o_tp1 a_tp1 episode_return"
_ATARI = "observations actions unclipped_rewards clipped_rewards discounts clipped_episode_return"
_BSUITE = "observation action reward discount episodic_reward step_type"
_DMLAB = "observations_pixels observations_reward observations_action actions rewards discounts"
_DMLAB += " start_idx episode_return"
SCHEMAS = {
    "atari sarsa": _Schema({*_SARSA.split()}, sarsa, (84, 84, _FRAMES)),
    "atari episodes": _Schema({*_ATARI.split()}, _atari_episode, (84, 84, 1)),
    "bsuite": _Schema({*_BSUITE.split()}, bsuite, None),
    "dmlab": _Schema({*_DMLAB.split()}, dmlab, (72, 96, 3)),
}


def actions_of(kind: str, row: RecordFeatures) -> np.ndarray:
    """Ids a record took; none in the row of a final observation."""
    if kind == "atari sarsa":
        names = ("a_t",) if row.floats("d_t", 1)[0] == 0 else ("a_t", "a_tp1")
        return np.concatenate([row.ints(name, 1) for name in names])
    if kind == "bsuite":
        kinds = row.ints("step_type")
        return row.ints("action", len(kinds))[kinds != _LAST]
    return row.ints("actions")


def kind_of(features: Mapping[str, Value]) -> str:
    """By the names of the features; ValueError names what the nearest kind would need."""
    missing = {kind: sorted(schema.features - set(features)) for kind, schema in SCHEMAS.items()}
    kind = min(missing, key=lambda kind: len(missing[kind]) / len(SCHEMAS[kind].features))
    if len(missing[kind]) == len(SCHEMAS[kind].features):
        raise ValueError(
            "no record of RL Unplugged: its features are "
            f"{', '.join(sorted(features)[:12]) or 'none'}"
        )
    if missing[kind]:
        raise ValueError(f"lacks the feature {missing[kind][0]!r} of {kind} records; {AGAIN}")
    return kind


def bsuite_shape(features: Mapping[str, Value]) -> tuple[int, ...]:
    row = RecordFeatures(features)
    steps, size = len(row.ints("step_type")), len(row.floats("observation"))
    if size % steps:
        raise ValueError(f"feature 'observation' has {size} entries for {steps} steps; {AGAIN}")
    return BSUITE_SHAPES.get(size // steps, (size // steps,))
