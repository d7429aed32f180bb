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

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from rbve.data.episode import NO_ACTION, Episode
from rbve.data.images import decode_png
from rbve.data.rlu.tfrecord import AGAIN, Value

ATARI_LIMIT = 27_000  # decisions, at which the recording cut an episode
ATARI_ACTIONS = 18  # of the whole console
_LAST = 2  # step type of dm_env
FRAMES = 4  # of a stacked Atari observation

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


class RecordFeatures:
    """The features of one record, each checked as it is taken."""

    def __init__(self, features: Mapping[str, Value]) -> None:
        self.features = features

    def strings(self, name: str, count: int | None = None) -> list[memoryview]:
        value = self.features.get(name)
        if not isinstance(value, list):
            raise self.wrong(name, "strings")
        _check_count(name, len(value), count)
        return value

    def floats(self, name: str, count: int | None = None) -> np.ndarray:
        values = self.numbers(name, "floats", "f", count)
        for entry in np.flatnonzero(~np.isfinite(values)):
            raise ValueError(f"feature {name!r} is not finite in entry {entry}; {AGAIN}")
        return values

    def ints(self, name: str, count: int | None = None) -> np.ndarray:
        return self.numbers(name, "whole numbers", "i", count)

    def numbers(self, name: str, kind: str, code: str, count: int | None) -> np.ndarray:
        value = self.features.get(name)
        if not isinstance(value, np.ndarray) or value.dtype.kind != code:
            raise self.wrong(name, kind)
        _check_count(name, len(value), count)
        return value

    def actions(self, name: str, count: int | None, actions: int) -> np.ndarray:
        """Ids below `actions`; others could not be stored, let alone learned."""
        values = self.ints(name, count)
        _check_actions(name, values, actions)
        return values

    def wrong(self, name: str, kind: str) -> ValueError:
        if name not in self.features:
            return ValueError(f"lacks the feature {name!r}; {AGAIN}")
        return ValueError(f"feature {name!r} does not hold {kind}; {AGAIN}")


def _check_count(name: str, entries: int, count: int | None) -> None:
    if count is not None and entries != count:
        raise ValueError(f"feature {name!r} has {entries} entries and needs {count}; {AGAIN}")
    if entries == 0:
        raise ValueError(f"feature {name!r} is empty; {AGAIN}")


def _check_actions(name: str, values: np.ndarray, actions: int) -> None:
    for row in np.flatnonzero((values < 0) | (values >= actions)):
        raise ValueError(
            f"feature {name!r} holds action {values[row]} in row {row}, and there are {actions} "
            f"actions (ids 0 to {actions - 1}); declare more with the option 'actions', or {AGAIN}"
        )


def sarsa(row: RecordFeatures, shape: tuple[int, ...], actions: int) -> Episode:
    action = row.actions("a_t", 1, actions)[0]
    (discount,) = row.floats("d_t", 1)
    terminated = ends("d_t", discount)
    next_action = NO_ACTION if terminated else row.actions("a_tp1", 1, actions)[0]
    pngs = row.strings("o_t", FRAMES) + row.strings("o_tp1", FRAMES)
    frames = decode_png(pngs, shape[:2])
    return Episode(
        obs=np.stack([np.moveaxis(frames[:FRAMES], 0, -1), np.moveaxis(frames[FRAMES:], 0, -1)]),
        action=np.array([action, next_action]),
        reward=np.append(row.floats("r_t", 1), np.float32(0)),
        terminated=terminated,
        complete=False,
        episode_return=float(row.floats("episode_return", 1)[0]),
    )


def _sarsa_actions(row: RecordFeatures) -> np.ndarray:
    if row.floats("d_t", 1)[0] == 0:
        return row.ints("a_t", 1)
    return np.append(row.ints("a_t", 1), row.ints("a_tp1", 1))


def _atari_episode(row: RecordFeatures, shape: tuple[int, ...], actions: int) -> Episode:
    action = row.actions("actions", None, actions)
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
    _check_actions("action", action[kinds != _LAST], actions)
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


def _bsuite_actions(row: RecordFeatures) -> np.ndarray:
    kinds = row.ints("step_type")
    return row.ints("action", len(kinds))[kinds != _LAST]


def dmlab(row: RecordFeatures, shape: tuple[int, ...], actions: int) -> Episode:
    action = row.actions("actions", None, actions)
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
    _check_last_actions(
        row.floats("observations_action", count * len(DMLAB_ACTIONS)), action, whole
    )
    _check_last_rewards(row.floats("observations_reward", count), rewards, whole)
    if whole:
        total = rewards.sum(dtype=np.float64)
        _check_return(total, row.floats("episode_return", 1)[0])
    return Episode(
        # The files hold BGR where PNG says RGB, so that what OpenCV reverses is RGB.
        obs=decode_png(row.strings("observations_pixels", count), (*shape[:2], 3)),
        action=np.append(action[:-1], NO_ACTION),
        reward=rewards,
        terminated=False,
        complete=whole,
        episode_return=float(row.floats("episode_return", 1)[0]),
    )


def _check_last_actions(one_hot: np.ndarray, action: np.ndarray, whole: bool) -> None:
    expected = np.eye(len(DMLAB_ACTIONS), dtype=np.float32)[action]
    expected = np.concatenate([np.zeros_like(expected[:1]), expected[:-1]])
    wrong = (one_hot.reshape(expected.shape) != expected).any(axis=1)
    wrong[0] &= whole  # before the first row of a later part, something was done
    for row in np.flatnonzero(wrong):
        words = f"action {action[row - 1]} of the row before" if row else "no action yet"
        raise Contradiction(f"feature 'observations_action', row {row}: it must say {words}")


def _check_last_rewards(last: np.ndarray, rewards: np.ndarray, whole: bool) -> None:
    expected = np.concatenate([[0], rewards[:-1]])
    wrong = last != expected
    wrong[0] &= whole
    for row in np.flatnonzero(wrong):
        raise Contradiction(
            f"feature 'observations_reward', row {row}: {last[row]:g}, and the reward before was "
            f"{expected[row]:g}"
        )


def _check_return(total: float, logged: float) -> None:
    if abs(total - logged) > 1e-3 * max(1.0, abs(logged)):
        raise Contradiction(f"its rewards sum to {total:g}, and it logs a return of {logged:g}")


def ends(name: str, discount: float) -> bool:
    if discount not in (0, 1):
        raise ValueError(f"feature {name!r} holds a discount of {discount:g}; it must be 0 or 1")
    return bool(discount == 0)


class _Schema(NamedTuple):
    names: str  # of its features
    episode: Callable[[RecordFeatures, tuple[int, ...], int], Episode | None]
    actions: Callable[[RecordFeatures], np.ndarray]  # ids a record took
    obs_shape: tuple[int, ...] | None  # None: the first record tells

    @property
    def features(self) -> frozenset[str]:
        return frozenset(self.names.split())


_SARSA = "o_t a_t r_t d_t o_tp1 a_tp1 episode_return"
_ATARI = "observations actions unclipped_rewards clipped_rewards discounts clipped_episode_return"
_BSUITE = "observation action reward discount episodic_reward step_type"
_DMLAB = "observations_pixels observations_reward observations_action actions rewards discounts"
_DMLAB += " start_idx episode_return"
SCHEMAS = {
    "atari sarsa": _Schema(_SARSA, sarsa, _sarsa_actions, (84, 84, FRAMES)),
    "atari episodes": _Schema(_ATARI, _atari_episode, lambda row: row.ints("actions"), (84, 84, 1)),
    "bsuite": _Schema(_BSUITE, bsuite, _bsuite_actions, None),
    "dmlab": _Schema(_DMLAB, dmlab, lambda row: row.ints("actions"), (72, 96, 3)),
}


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
