"""Worker for d3rlpy's own environment: DDQN on pixels, by d3rlpy and by PyTorch alone.

d3rlpy stacks frames when it samples. The bare update sees one batch again and again: nothing is
sampled, moved or logged.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import d3rlpy
import numpy as np
import torch
from torch import nn
from workers import serve

STACK, ACTIONS = 4, 6


def prepare(path: str) -> Callable[..., dict[str, Any]]:
    made = functools.cache(functools.partial(contestant, path))

    def answer(what: str, batch: int, updates: int) -> dict[str, Any]:
        one = made(what, batch)
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(updates):
            one()
        return {
            "rate": updates / (time.perf_counter() - wall),
            "cpu_rate": updates / (time.process_time() - cpu),
        }

    return answer


def contestant(path: str, what: str, batch: int) -> Callable[[], Any]:
    one = theirs(path, batch) if what == "d3rlpy" else bare(batch)
    for _ in range(2):
        one()
    return one


def theirs(path: str, batch: int) -> Callable[[], Any]:
    arrays = np.load(path)
    dataset = d3rlpy.dataset.MDPDataset(
        observations=arrays["obs"][:, None],
        actions=arrays["action"][:, None],
        rewards=arrays["reward"][:, None],
        terminals=arrays["terminal"],
        action_size=ACTIONS,
        transition_picker=d3rlpy.dataset.FrameStackTransitionPicker(STACK),
    )
    agent = d3rlpy.algos.DoubleDQNConfig(
        batch_size=batch,
        learning_rate=3e-4,
        gamma=0.99,
        target_update_interval=125,
        observation_scaler=d3rlpy.preprocessing.PixelObservationScaler(),
        encoder_factory=d3rlpy.models.PixelEncoderFactory(),
    ).create(device="cpu:0")
    agent.create_impl((STACK, 84, 84), ACTIONS)
    return lambda: agent.update(dataset.sample_transition_batch(batch))


def network() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(STACK, 32, 8, 4), nn.ReLU()),
        *(nn.Conv2d(32, 64, 4, 2), nn.ReLU()),
        *(nn.Conv2d(64, 64, 3, 1), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(64 * 7 * 7, 512), nn.ReLU()),
        nn.Linear(512, ACTIONS),
    )


def bare(batch: int) -> Callable[[], Any]:
    online, target = network(), network()
    optimiser = torch.optim.Adam(online.parameters(), 3e-4)
    now, later = torch.randint(0, 256, (2, batch, STACK, 84, 84), dtype=torch.uint8)
    action, reward = torch.randint(0, ACTIONS, (batch, 1)), torch.randn(batch)

    def update() -> None:
        with torch.no_grad():
            after = later.float() / 255
            best = online(after).argmax(1, keepdim=True)
            wanted = reward + 0.99 * target(after).gather(1, best)[:, 0]
        loss = (online(now.float() / 255).gather(1, action)[:, 0] - wanted).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    return update


if __name__ == "__main__":
    serve(prepare)
