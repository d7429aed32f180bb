"""Worker for PyTorch's environment: R2D2's learner with torch.nn.LSTM, on one batch over again."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from workers import serve

STEPS, FEATURES, ACTIONS, N, GAMMA = 120, 128, 15, 5, 0.997
SLOPE = 1e-3


class Network(nn.Module):
    def __init__(self, units: int) -> None:
        super().__init__()
        self.torso = nn.Sequential(nn.Linear(FEATURES, units), nn.ReLU())
        self.lstm = nn.LSTM(units + ACTIONS + 1, units)
        self.value = nn.Sequential(nn.Linear(units, units), nn.ReLU(), nn.Linear(units, 1))
        self.advantage = nn.Sequential(
            nn.Linear(units, units), nn.ReLU(), nn.Linear(units, ACTIONS)
        )

    def forward(self, obs: Any, extra: Any) -> Any:
        x, _ = self.lstm(torch.cat([self.torso(obs), extra], -1))
        advantage = self.advantage(x)
        return self.value(x) + advantage - advantage.mean(-1, keepdim=True)


def rescale(x: Any) -> Any:
    return x.sign() * ((x.abs() + 1).sqrt() - 1) + SLOPE * x


def unscale(y: Any) -> Any:
    root = ((1 + 4 * SLOPE * (y.abs() + 1 + SLOPE)).sqrt() - 1) / (2 * SLOPE)
    return y.sign() * (root.square() - 1)


@functools.cache
def learner(units: int, batch: int) -> Callable[[], None]:
    """One update, twice tried."""
    online, target = Network(units), Network(units)
    optimiser = torch.optim.Adam(online.parameters(), 3e-4)
    obs = torch.randn(STEPS, batch, FEATURES)
    extra = torch.randn(STEPS, batch, ACTIONS + 1)
    action = torch.randint(0, ACTIONS, (STEPS, batch, 1))
    reward = torch.randn(STEPS, batch)
    later = (torch.arange(STEPS) + N).clamp(max=STEPS - 1)

    def update() -> None:
        q = online(obs, extra)
        with torch.no_grad():
            best = q[later].argmax(-1, keepdim=True)
            after = target(obs, extra)[later].gather(-1, best)[..., 0]
            goal = rescale(reward + GAMMA**N * unscale(after))
        loss = (q.gather(-1, action)[..., 0] - goal).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    for _ in range(2):
        update()
    return update


def answer(units: int, batch: int, updates: int) -> dict[str, Any]:
    update = learner(units, batch)
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(updates):
        update()
    return {
        "rate": updates / (time.perf_counter() - wall),
        "cpu_rate": updates / (time.process_time() - cpu),
    }


if __name__ == "__main__":
    serve(lambda path: answer)  # values do not matter for speed, so no data is read
