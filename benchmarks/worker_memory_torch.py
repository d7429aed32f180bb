"""Worker for PyTorch's environment: R2D2's learner with torch.nn.LSTM, on one batch over again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from workers import serve

STEPS, BATCH, FEATURES, ACTIONS, UNITS, N, GAMMA = 120, 8, 128, 15, 512, 5, 0.997
SLOPE = 1e-3


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.torso = nn.Sequential(nn.Linear(FEATURES, UNITS), nn.ReLU())
        self.lstm = nn.LSTM(UNITS + ACTIONS + 1, UNITS)
        self.value = nn.Sequential(nn.Linear(UNITS, UNITS), nn.ReLU(), nn.Linear(UNITS, 1))
        self.advantage = nn.Sequential(
            nn.Linear(UNITS, UNITS), nn.ReLU(), nn.Linear(UNITS, ACTIONS)
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


def prepare(path: str) -> Callable[..., dict[str, Any]]:
    del path  # values do not matter for speed
    online, target = Network(), Network()
    optimiser = torch.optim.Adam(online.parameters(), 3e-4)
    obs = torch.randn(STEPS, BATCH, FEATURES)
    extra = torch.randn(STEPS, BATCH, ACTIONS + 1)
    action = torch.randint(0, ACTIONS, (STEPS, BATCH, 1))
    reward = torch.randn(STEPS, BATCH)
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

    def answer(updates: int) -> dict[str, Any]:
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(updates):
            update()
        return {
            "rate": updates / (time.perf_counter() - wall),
            "cpu_rate": updates / (time.process_time() - cpu),
        }

    return answer


if __name__ == "__main__":
    serve(prepare)
