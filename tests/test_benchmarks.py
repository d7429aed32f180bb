"""The benchmarks' copy of the update loop follows the real one."""

from __future__ import annotations

import importlib
from pathlib import Path

import jax
import numpy as np
import pytest

from rbve.data import Dataset
from rbve.training.update import DRAWS, member_keys

FOLDER = Path(__file__).parent.parent / "benchmarks"


@pytest.mark.slow
def test_the_copied_loop_learns_what_the_real_one_does(
    catch: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    bound = importlib.import_module("bound")
    spec, table, member = bound.set_up("rbve", catch, target_period=DRAWS)
    real, sums = bound.real_update(spec, table, member)(2 * DRAWS)
    params, target, _, copied = bound.loop(spec, table, member, bound.PARTS)(2 * DRAWS)
    np.testing.assert_allclose(params, real.params, atol=1e-5)
    np.testing.assert_allclose(target, real.target, atol=1e-5)
    assert set(copied) == set(sums)
    np.testing.assert_allclose(copied["loss"], sums["loss"], rtol=1e-3)
    begun = bound.make_program(spec, table.items).init(member_keys(0)[0])
    assert np.abs(real.params - begun.params).max() > 1e-3  # it did learn


@pytest.mark.slow
def test_the_loop_runs_with_any_part_left_out(
    catch: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    bound = importlib.import_module("bound")
    spec, table, member = bound.set_up("dqn", catch)
    for part in bound.PARTS:
        kept = tuple(other for other in bound.PARTS if other != part)
        found = bound.loop(spec, table, member, kept)(DRAWS)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found))
