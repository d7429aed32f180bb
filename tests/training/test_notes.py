"""What is said of data before training on it, and of which."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.tiers import first_and_slow

from rbve import algorithms
from rbve.data import Dataset, Episode
from rbve.spec import Spec
from rbve.training.run import train_members

RANKED = ("rbve", "rdqn")


@pytest.fixture(scope="module")
def constant() -> Dataset:
    """One step each, all of them worth 2."""
    rng = np.random.default_rng(0)
    made = [
        Episode.from_steps(rng.normal(size=(2, 3)), [k % 2], [2.0], terminated=True)
        for k in range(40)
    ]
    return Dataset.from_episodes(made, 2)


@pytest.fixture
def said(
    small_job: Callable[..., Spec], constant: Dataset, tmp_path: Path
) -> Callable[..., list[str]]:
    def train(algorithm: str, **settings: str) -> list[str]:
        plan = {"steps": 4, "every": 4, "env": None}
        job = small_job(algorithm, plan, settings)
        job = dataclasses.replace(job, data=dataclasses.replace(job.data, path="data/visits"))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            train_members([job], [constant], [tmp_path / job.id])
        return [str(each.message) for each in caught if "V̂" in str(each.message)]

    return train


@pytest.mark.parametrize("name", first_and_slow(sorted(algorithms.names(), key="rbve".__ne__)))
def test_constant_weights_are_told_of_the_data_and_the_algorithm(
    name: str, said: Callable[..., list[str]]
) -> None:
    words = "V̂ is the same in every row of data/visits: the ranking weights of {} are all 1"
    assert said(name) == ([words.format(name)] if name in RANKED else [])


def test_of_weights_that_have_another_form(said: Callable[..., list[str]]) -> None:
    assert said("rbve", filter="none") == []
    assert said("rbve", filter="advantage", normalise="none") == []
    (told,) = said("rbve", filter="binary")
    assert told.endswith("are all 0")
