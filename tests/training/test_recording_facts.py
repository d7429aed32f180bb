"""What rows tell of how data was recorded: equal for replicates, different for other data."""

from dataclasses import replace
from pathlib import Path

import pytest

import rbve
from rbve.data import Dataset
from rbve.parts import DataRef
from rbve.training.measures import facts


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Dataset]:
    folder = tmp_path_factory.mktemp("data")

    def record(name: str, **options: object) -> Dataset:
        given = {"policy": "uniform", "episodes": 20, **options}
        return rbve.record("catch", folder / name, **given)

    return {
        "first": record("dose_5", seed=1),
        "again": record("other", seed=2),
        "noisy": record("dose_50", seed=1, noise=0.25),
        "fewer": record("dose_6", seed=1, episodes=10),
        "kept": record("dose_7", seed=1, keep=0.5),
    }


def told(data: Dataset, ref: DataRef | None = None) -> object:
    return facts(data, "catch", ref)["recording"]


def test_only_the_seed_may_differ(recordings: dict[str, Dataset]) -> None:
    first = told(recordings["first"])
    assert first is not None
    assert told(recordings["again"]) == first
    for name in ("noisy", "fewer", "kept"):
        assert told(recordings[name]) != first, name


def test_what_a_run_keeps_is_no_other_recording(recordings: dict[str, Dataset]) -> None:
    data = recordings["first"]
    ref = DataRef("", keep=0.5, keep_seed=3, side="below", action="executed")
    assert told(ref.of(data), ref) == told(data)


def test_what_was_selected_before_it_was_stored_is_other_data(
    recordings: dict[str, Dataset], tmp_path: Path
) -> None:
    data = recordings["first"]
    below = data.filter_by_return("below")
    assert told(below) != told(data)
    ref = DataRef("", keep=0.5)
    assert told(ref.of(below), ref) == told(below)


def test_nothing_selected_may_be_null(recordings: dict[str, Dataset]) -> None:
    data = recordings["first"]
    assert told(replace(data, provenance={**data.provenance, "select": None})) == told(data)


def test_logs_tell_no_recording(recordings: dict[str, Dataset]) -> None:
    log = Dataset.from_episodes([recordings["first"].episode(0)], 3, {"source": "log.csv"})
    assert told(log) is None


def test_snapshots_of_replicates_are_replicates_other_policies_are_not(
    recordings: dict[str, Dataset],
) -> None:
    def acted(policy: dict[str, object]) -> object:
        about = {"env": "catch", "behaviour": "policy", "seed": 0, "policy": policy}
        return told(Dataset.from_episodes([recordings["first"].episode(0)], 3, about))

    def trained(algorithm: str, seed: int, mark: str) -> object:
        data = {"path": f"data/{seed}", "keep_seed": seed, "fingerprint": mark}
        return acted({"job": {"algorithm": algorithm, "seed": seed, "data": data}})

    snapshot = {"from": "best snapshot of the online agent", "return": 0.5, "job": {"view": {}}}
    assert acted(snapshot) == acted({**snapshot, "return": 0.9})
    assert trained("bc", 1, "aa") == trained("bc", 2, "aa")
    assert trained("bc", 1, "aa") != trained("rbve", 1, "aa")
    assert trained("bc", 1, "aa") != trained("bc", 1, "bb")
