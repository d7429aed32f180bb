"""Worker for d3rlpy's own environment: updates through fit() or through bare update()."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import d3rlpy
import numpy as np
import torch
from workers import serve

torch.set_num_threads(1)

CONFIGS = {
    "dqn": (d3rlpy.algos.DoubleDQNConfig, {}),
    "cql": (d3rlpy.algos.DiscreteCQLConfig, {}),
    # Towers of their own for values and behaviour, as rbve's BCQ has.
    "bcq": (d3rlpy.algos.DiscreteBCQConfig, {"share_encoder": False}),
}
BATCH = 128


def read(path: str) -> Any:
    arrays = np.load(path)
    return d3rlpy.dataset.MDPDataset(
        observations=arrays["obs"],
        actions=arrays["action"][:, None],
        rewards=arrays["reward"][:, None],
        terminals=arrays["terminal"],
        action_size=3,
    )


def prepare(path: str) -> Callable[..., dict[str, Any]]:
    dataset = read(path)
    return functools.partial(train, dataset, functools.cache(functools.partial(build, dataset)))


def build(dataset: Any, algorithm: str) -> Any:
    config, options = CONFIGS[algorithm]
    agent = config(
        batch_size=BATCH,
        learning_rate=3e-4,
        gamma=0.99,
        target_update_interval=125,
        encoder_factory=d3rlpy.models.VectorEncoderFactory(hidden_units=[56, 56]),
        **options,
    ).create(device="cpu:0")
    agent.build_with_dataset(dataset)
    for _ in range(50):
        agent.update(dataset.sample_transition_batch(BATCH))
    return agent


def train(
    dataset: Any, built: Callable[[str], Any], algorithm: str, updates: int, through: str
) -> dict[str, Any]:
    agent = built(algorithm)
    wall, cpu = time.perf_counter(), time.process_time()
    if through == "fit":
        agent.fit(
            dataset,
            n_steps=updates,
            n_steps_per_epoch=updates,
            logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
            show_progress=False,
        )
    else:
        for _ in range(updates):
            agent.update(dataset.sample_transition_batch(BATCH))
    return {
        "rate": updates / (time.perf_counter() - wall),
        "cpu_rate": updates / (time.process_time() - cpu),
    }


if __name__ == "__main__":
    serve(prepare)
