"""What a search varies, from words to values that a job takes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rbve.spec import Spec
from rbve.tuning.options import TuneOptions
from rbve.tuning.space import Range, complete, parse, suggest


class Trial:
    """Proposes at random, as Optuna's does."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def suggest_categorical(self, name: str, values: Any) -> Any:
        return self.random.choice(values)

    def suggest_float(self, name: str, low: float, high: float, log: bool) -> float:
        return self.random.uniform(low, high)

    def suggest_int(self, name: str, low: int, high: int, log: bool) -> int:
        return self.random.randint(low, high)


def test_ranges_and_choices() -> None:
    words = ["learning_rate=1e-5..3e-3,log", "lam=0.01..0.5", "n-step=1..5", "hidden=64,128x128"]
    assert parse(words) == {
        "learning_rate": Range(1e-5, 3e-3, log=True),
        "lam": Range(0.01, 0.5),
        "n_step": Range(1, 5, whole=True),
        "hidden": ((64,), (128, 128)),
    }


@pytest.mark.parametrize(
    ("word", "complaint"),
    [
        ("lam", "takes NAME=LOW..HIGH or NAME=A,B,C; got 'lam'"),
        ("lam=1..0", "'lam=1..0' is no range"),
        ("lam=a..b", "no numbers around"),
        ("lam=0..1,log", "a logarithmic range begins above 0"),
        ("lam=0..1,square", "is no range"),
        ("lam=1,1", "names a value twice"),
        ("steps=100..200", "steps is not searched; it has a flag of its own"),
        ("gamma=0.9,high", "gamma"),
    ],
)
def test_a_word_that_is_none(word: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=r"--search|gamma") as error:
        parse([word])
    assert complaint in str(error.value)


def test_the_usual_ranges_are_those_the_algorithms_know() -> None:
    assert set(complete({}, ["rbve"], ())) == {"learning_rate", "lam"}
    assert set(complete({}, ["rbve", "cql"], ())) == {"learning_rate", "lam", "alpha"}
    assert set(complete({}, ["rbve"], ["lam"])) == {"learning_rate"}


def test_what_no_algorithm_knows() -> None:
    with pytest.raises(ValueError, match=r"alhpa: neither a field nor a setting.*'alpha'"):
        complete(parse(["alhpa=0.1..1"]), ["cql"], ())


def test_an_algorithm_takes_what_it_knows_and_jobs_take_the_values() -> None:
    names, words = ("rbve", "cql"), ["lam=0.1..1", "alpha=0.1..1", "hidden=8,16x8", "n_step=1..5"]
    space, seen = parse(words), set()
    for seed in range(20):
        tried = suggest(Trial(seed), space, names)
        own = {"rbve": "lam", "cql": "alpha"}[tried["algorithm"]]
        assert set(tried) == {"algorithm", own, "hidden", "n_step"}
        job = Spec.of(path="data", **tried).resolved()
        assert job.network.hidden in ((8,), (16, 8))
        assert job.settings[own] == tried[own]
        seen.add((job.algorithm, job.network.hidden))
    assert len(seen) == 4


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ({"trials": 0}, "trials is 1 or more"),
        ({"reduction": 1}, "reduction is 2 or more"),
        ({"steps": 8, "rungs": 4}, "8 updates are too few for 4 rungs"),
        ({"holdout": 1.0}, "holdout is a share"),
        ({"algorithm": ()}, "algorithm needs"),
    ],
)
def test_options_that_are_none(flags: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        TuneOptions(**flags)


def test_rungs_are_whole_multiples_of_the_first() -> None:
    assert TuneOptions(steps=20_000).rung_steps == [2222, 6666, 20_000]
    assert TuneOptions(steps=100, rungs=1).rung_steps == [100]
