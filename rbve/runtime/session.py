"""Decisions one after another in an episode."""

import math
import operator
from typing import Any, SupportsFloat

import numpy as np

from rbve.runtime.outcome import choose


class Session:
    """One episode: remembers what the policy saw, did and received."""

    def __init__(self, decider: Any) -> None:
        self._decider = decider
        self.scores: np.ndarray | None = None  # (A,) of the last observation
        self.supported = True  # the data supports the last decision
        self._last_action = -1
        self._memory: Any = decider.begin() if decider.memory else None
        self._first = True

    @property
    def last_action(self) -> int:
        """What was done last; −1 at first."""
        return self._last_action

    @last_action.setter
    def last_action(self, action: int | str) -> None:
        """By id or by name."""
        names = self._decider.actions
        try:
            index = names.index(action) if isinstance(action, str) else operator.index(action)
        except (TypeError, ValueError):
            index = -1
        if not 0 <= index < len(names):
            raise ValueError(
                f"last_action must be an id in [0, {len(names) - 1}] or one of {', '.join(names)}; "
                f"got {action!r}"
            )
        self._last_action = index

    def act(self, observation: Any, last_reward: float | None = None, legal: Any = None) -> int:
        """The best action id; `last_reward` is what the last one brought.

        A policy with memory needs it of every step but the first. `legal` is what Policy.act takes.

        Where something else was done than what this said, set `last_action` before the next call.
        """
        decider = self._decider
        rows = decider.read(observation)
        if not rows.single:
            raise ValueError("a session takes one observation at a time")
        if last_reward is None and decider.memory and not self._first:
            raise ValueError("this policy learned from rewards too: give last_reward")
        reward = 0.0 if last_reward is None else last_reward
        if not isinstance(reward, SupportsFloat) or not math.isfinite(reward):
            raise ValueError(f"last_reward must be a finite number; got {reward!r}")
        # Checked before the memory moves on, so that a call that failed can be made again.
        mask = decider.mask(legal, 1)
        found, after = decider.step(rows.obs, mask, self._state(float(reward)), judge=choose)
        decider.warn(rows, found, 3)
        self._memory = after
        self.scores, self.supported = found["scores"][0], bool(found["supported"][0])
        self._first = False
        self._last_action = int(found["action"][0])
        return self._last_action

    def _state(self, last_reward: float) -> dict[str, np.ndarray]:
        if not self._decider.memory:
            return {}
        reward = 0.0 if self._first else last_reward
        return {
            "last_action": np.array([self._last_action], np.int32),
            "last_reward": np.array([reward], np.float32),
            **self._memory,
        }

    def decide(self, observation: Any, last_reward: float | None = None, legal: Any = None) -> str:
        """The best action by name."""
        return self._decider.actions[self.act(observation, last_reward, legal)]
