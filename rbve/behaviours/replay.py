"""A ring of steps for agents outside JAX: every frame held once, joined when drawn.

Rows lie as in a dataset: T + 1 an episode, the last with the final observation and no action. When
the ring is full the oldest rows make room, and a row is drawn only while all it needs is there.
"""

from __future__ import annotations

import math
import shutil
import tempfile

import numpy as np

from rbve.data.episode import NO_ACTION
from rbve.training.batches import Picked
from rbve.training.batches.transitions import NUMBERS

IN_MEMORY = 1 << 31  # bytes of frames; more wait in a file, if the disk has room for it


class Replay:
    def __init__(
        self,
        capacity: int,
        obs_shape: tuple[int, ...],
        dtype: type | np.dtype,
        stack: int,
        on_disk: bool | None = None,  # None: by their size
    ) -> None:
        if capacity < stack + 2:
            raise ValueError(f"a replay of {capacity} rows is too small; give at least {stack + 2}")
        self.capacity, self.stack = capacity, stack
        shape = (capacity, *obs_shape)
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if on_disk is None:
            on_disk = size > IN_MEMORY and shutil.disk_usage(tempfile.gettempdir()).free > size
        if on_disk:
            # The file has no name: it goes when the map does.
            with tempfile.TemporaryFile() as file:
                file.truncate(size)
                self.obs: np.ndarray = np.memmap(file, dtype, "r+", shape=shape)
        else:
            self.obs = np.zeros(shape, dtype)
        self.action = np.full(capacity, NO_ACTION, np.int32)
        self.reward = np.zeros(capacity, np.float32)
        self.terminated = np.zeros(capacity, np.bool_)
        self.age = np.zeros(capacity, np.int64)  # steps since the episode began
        self.rows = 0  # written so far, those made room for included

    def add(self, action: int, reward: float, terminated: bool, obs: np.ndarray) -> None:
        """A step from the last row, and the observation it led to."""
        here = (self.rows - 1) % self.capacity
        self.action[here], self.reward[here] = action, reward
        self.terminated[here] = terminated
        self.begin(obs, age=int(self.age[here]) + 1)

    def begin(self, obs: np.ndarray, age: int = 0) -> None:
        """A row without an action: an episode's first, or what its last step led to."""
        here = self.rows % self.capacity
        self.obs[here], self.age[here] = obs, age
        self.action[here], self.reward[here], self.terminated[here] = NO_ACTION, 0.0, False
        self.rows += 1

    def drawable(self, row: np.ndarray) -> np.ndarray:
        """(B,) bool: a step was taken from the row and no frame it joins has made room."""
        place = row % self.capacity
        oldest = row - np.minimum(self.age[place], self.stack - 1)
        return (self.action[place] != NO_ACTION) & (oldest >= max(self.rows - self.capacity, 0))

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Rows (count,), all drawable ones alike."""
        held = max(self.rows - self.capacity, 0)
        found = np.zeros(0, np.int64)
        while len(found) < count:
            tried = rng.integers(held, self.rows, size=2 * count)
            found = np.concatenate([found, tried[self.drawable(tried)]])
        return found[:count]

    def pick(self, row: np.ndarray, gamma: float, clip: bool) -> Picked:
        """Transitions as an update takes them; a truncated step goes on from its final frame.

        An online agent has no use for the next action nor for V̂.
        """
        place = row % self.capacity
        reward = self.reward[place]
        return Picked(
            frames=np.stack([self.frames(row), self.frames(row + 1)], axis=1),
            numbers=NUMBERS.pack(
                action=self.action[place],
                reward=np.clip(reward, -1, 1) if clip else reward,
                discount=np.where(self.terminated[place], 0.0, gamma),
            ),
            legal=None,
        )

    def frames(self, row: np.ndarray) -> np.ndarray:
        """(B, stack, ...): the row's own last, zeros before its episode began."""
        back = np.arange(self.stack - 1, -1, -1)
        missing = back > self.age[row % self.capacity][:, None]
        found = self.obs[(row[:, None] - np.where(missing, 0, back)) % self.capacity]
        found[missing] = 0
        return found
