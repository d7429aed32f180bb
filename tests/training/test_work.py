"""What an update costs is estimated before hours pass."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbve.data import Dataset, Episode
from rbve.spec import Spec
from rbve.training.run import train_members
from rbve.training.work import SPEED, Work, check_work, of_program


def test_products_convolutions_and_loops_are_counted() -> None:
    x, w = jnp.zeros((3, 5)), jnp.zeros((5, 7))
    assert of_program(jax.make_jaxpr(jnp.matmul)(x, w)) == Work(2 * 3 * 5 * 7 + 21, 4 * 21)
    once = of_program(jax.make_jaxpr(jax.jit(jnp.matmul))(x, w)).operations
    assert once >= 2 * 3 * 5 * 7  # inside another program

    def loop(x: jax.Array) -> jax.Array:
        square = jnp.ones((3, 3))
        return jax.lax.scan(lambda carry, _: (square @ carry, None), x, None, length=1000)[0]

    found = of_program(jax.make_jaxpr(loop)(x)).operations
    assert found > 1000 * 2 * 3 * 3 * 5
    image, kernel = jnp.zeros((1, 4, 8, 8)), jnp.zeros((6, 4, 3, 3))
    conv = jax.make_jaxpr(lambda a, b: jax.lax.conv(a, b, (1, 1), "SAME"))(image, kernel)
    assert of_program(conv).operations == 2 * (6 * 8 * 8) * (4 * 3 * 3) + 6 * 8 * 8


def test_long_runs_draw_a_warning_and_large_updates_are_refused() -> None:
    spec = Spec.of(algorithm="iqn", steps=100_000, samples=64).resolved()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_work(spec, Work(0.4 * SPEED, 0), 1)
        check_work(dataclasses.replace(spec, steps=10), Work(9 * SPEED, 0), 1)
    with pytest.warns(UserWarning, match=r"about 2.0 s .*100,000 .* 56 hours; --set samples=8"):
        check_work(spec, Work(2 * SPEED, 0), 1)
    with pytest.raises(ValueError, match=r"needs about 9,313,226 GiB.*--batch-size below 128"):
        check_work(spec, Work(0, 1e16), 1)


def test_ten_thousand_actions_with_quantiles(
    small_job: Callable[..., Spec], tmp_path: Path
) -> None:
    step = Episode.from_steps(np.zeros((2, 3)), [0], [1.0], terminated=True)
    other = Episode.from_steps(np.ones((2, 3)), [1], [0.0], terminated=True)
    data = Dataset.from_episodes([step, other], 10_000)
    plan = {"steps": 100_000, "every": 100_000, "env": None, "hidden": (56,), "batch_size": 128}
    job = small_job("iqn", plan, {"samples": 64, "act_samples": 32})
    with pytest.raises(UserWarning, match=r"one update of iqn .* hours; --set samples=8"):
        train_members([job], [data], [tmp_path])  # warnings are errors here


def test_memory_over_an_endless_episode(small_job: Callable[..., Spec], tmp_path: Path) -> None:
    steps = 1_000_000
    made = Episode.from_steps(
        np.zeros((steps + 1, 1), np.float32), np.zeros(steps, int), np.arange(steps) % 2, True
    )
    data = Dataset.from_episodes([made], 2)
    plan = {"memory": 512, "steps": 100, "every": 100, "env": None, "batch_size": 8}
    advice = r"--sequence 200 --burn-in 40, not on whole episodes \(1,000,001 rows\)"
    with pytest.raises(ValueError, match=advice):
        train_members([small_job("bve", plan)], [data], [tmp_path])
