"""A small dataset with masks, its n-step windows by walking, and programs that learn from it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rbve.data.dataset import Dataset
from rbve.data.episode import Episode
from rbve.spec import Spec
from rbve.training.batches.table import sequence_table
from rbve.training.update import Member, make_program

GAMMA, N, ACTIONS, UNITS = 0.9, 3, 3, 4
LENGTHS = (6, 2, 4, 1, 7)  # decisions
TERMINATED = (True, False, True, True, False)


def dataset() -> Dataset:
    """Episodes of several lengths and ends, with masks."""
    rng = np.random.default_rng(0)
    episodes = []
    for length, terminated in zip(LENGTHS, TERMINATED, strict=True):
        legal = rng.random((length + 1, ACTIONS)) < 0.7
        action = rng.integers(0, ACTIONS, length)
        legal[np.arange(length), action] = True
        legal[-1, 0] = True
        episode = Episode.from_steps(
            rng.normal(size=(length + 1, 2)).astype(np.float32),
            action,
            rng.normal(size=length) * 3,
            terminated,
        )
        episodes.append(episode._replace(legal=legal))
    return Dataset.from_episodes(episodes, ACTIONS)


def decisions(data: Dataset, pair: bool) -> dict[int, tuple[float, float, int]]:
    """row -> n-step reward, discount and bootstrap row, by walking; BVE needs a logged pair."""
    found = {}
    ends = data.offsets[1:] - 1
    for first, final, terminated in zip(data.offsets[:-1], ends, data.terminated, strict=True):
        last = final if terminated or not pair else final - 1
        for row in range(first, final):
            stop = min(row + N, last)
            if stop == row:
                continue  # the last decision of a truncated episode
            reward = sum(GAMMA**k * float(data.reward[row + k]) for k in range(stop - row))
            over = terminated and stop == final
            found[row] = reward, 0.0 if over else GAMMA ** (stop - row), stop
    return found


SETTINGS: dict[str, dict[str, Any]] = {
    "rbve": {"lam": 0.3, "normalise": "none"},
    "rdqn": {"lam": 0.3, "normalise": "none"},
    "cql": {"alpha": 0.2},
}


def program_for(name: str, data: Dataset, batch: int, **plan: Any) -> tuple[Any, Any, Spec, Any]:
    usual: dict[str, Any] = {"memory": UNITS, "hidden": (5,), "gamma": GAMMA, "n_step": N}
    base = Spec.of(algorithm=name, batch_size=batch, **{**usual, **plan})
    spec = base.varied(**SETTINGS.get(name, {})).resolved()
    bootstrap: Any = spec.load_algorithm().bootstrap
    table = sequence_table(
        [data], spec.view, bootstrap, spec.sampling.sequence, spec.sampling.burn_in
    )
    return table, make_program(spec, table.items), spec, spec.load_config()


def member(program: Any, config: Any, table: Any) -> Member:
    return Member(
        key=jax.random.key(5),
        offset=jnp.int32(0),
        size=jnp.int32(table.count[0]),
        g_scale=jnp.float32(table.g_scale[0]),
        learning_rate=jnp.float32(1e-3),
        target_period=jnp.int32(1000),
        config=jax.tree.map(jnp.float32, config),
    )
