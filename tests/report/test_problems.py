"""Which runs make a problem, which of its runs share a dataset, and what intervals are over."""

import math

import pytest
from support.reports import FACTS, add_run, finals

from rbve import rows
from rbve.report import write_report
from rbve.report.summary import group
from rbve.report.words import headline
from rbve.rows import Row


def test_kinds_of_data_make_problems(tmp_path):
    recording = FACTS["recording"]
    kinds = [
        ({"side": "below", "keep": 0.01}, {}),
        ({}, {"noise": 0.25}),
        ({}, {"noise": 0.5}),
        ({"path": "one/catch/3"}, {"agent": {"steps": 1}}),
        ({"path": "other/catch/7"}, {"agent": {"steps": 2}}),
        ({"path": "other/catch/8"}, {"agent": {"steps": 2}}),
        ({}, {"behaviour": "policy", "epsilon": 0.1, "keep": 0.5}),
        ({}, {"behaviour": "uniform", "epsilon": 0.0}),
    ]
    for data, made in kinds:
        facts = {"recording": {**recording, **made}}
        add_run(tmp_path, "bve", data={"keep": 1.0} | data, facts=facts)
    assert [problem.label for problem in group(rows.find([tmp_path]))] == [
        "catch · 1% of episodes · below mean",
        "catch · noise 0.25",
        "catch · noise 0.5",
        "catch · one/catch/3",
        "catch · other/catch",
        "catch · policy ε 0.1 · 50% recorded",
        "catch · uniform",
    ]


def test_replicates_are_never_guessed_from_names(tmp_path):
    """Logs whose folders differ in a number are different data; recordings need not look alike."""
    for name in ("dose_5", "dose_50", "dose-seed1", "dose-seed2"):
        data = {"path": f"data/{name}", "keep": 1.0}
        add_run(tmp_path / "logs", "bve", env=None, data=data, facts={"recording": None})
    for name in ("first", "second"):
        add_run(tmp_path / "own", "bve", data={"path": f"data/{name}"})
    logs, own = (group(rows.find([tmp_path / name])) for name in ("logs", "own"))
    assert [(problem.label, problem.methods[0].n) for problem in logs] == [
        ("dose-seed1 · data only", 1),
        ("dose-seed2 · data only", 1),
        ("dose_5 · data only", 1),
        ("dose_50 · data only", 1),
    ]
    assert [(problem.label, len(problem.datasets)) for problem in own] == [
        ("catch · 10% of episodes", 2)
    ]


def test_one_folder_with_two_contents_is_two_datasets(tmp_path):
    for mark in ("aa", "bb"):
        data = {"path": "data/dose", "fingerprint": mark}
        add_run(tmp_path, "bve", env=None, data=data, facts={"recording": None})
    assert [problem.label for problem in group(rows.find([tmp_path]))] == [
        "dose · 10% of episodes · data only · data/dose · aa",
        "dose · 10% of episodes · data only · data/dose · bb",
    ]


def test_rows_of_earlier_studies_are_read_by_the_studys_own_folders(tmp_path):
    """They tell no recording: only the exact name `rbve reproduce` gives makes replicates."""

    def add(path, seed, **source):
        made = {"behaviour": "online dqn", "noise": 0.25, "epsilon": None, "keep": 1.0} | source
        data = {"path": path, "keep_seed": seed, "keep": 1.0}
        add_run(tmp_path, "bve", data=data, facts={"recording": None, "source": made})

    for seed in (0, 1):
        add(f"study/data/catch-0.25/{seed}", seed)
        add(f"study/data/catch-0.25-expert-0.1/{seed}", seed, behaviour="policy", epsilon=0.1)
        add(f"study/data/catch-0.5/{seed}", seed)  # not the noise it was recorded with
        add(f"study/data/catch-0.25-r2d2/{seed + 5}", seed)  # not its seed
    found = {problem.label: len(problem.datasets) for problem in group(rows.find([tmp_path]))}
    assert found == {
        "catch · noise 0.25": 2,
        "catch · noise 0.25 · policy ε 0.1": 2,
        "catch · 0": 1,
        "catch · 1": 1,
        "catch · 5": 1,
        "catch · 6": 1,
    }


def test_seeds_on_one_dataset_are_not_datasets(tmp_path):
    for dataset, mean in enumerate((0.0, 0.5, 1.0)):
        for seed in range(5):
            run = add_run(tmp_path / "many", "bve", dataset, id=f"{dataset}-{seed}")
            run.append([Row(300, "return", mean, 9), *finals({"return": mean + 0.01 * seed})])
    for seed in range(5):
        run = add_run(tmp_path / "one", "bve", 0, id=f"job-{seed}")
        run.append(finals({"return": 0.1 * seed}))
    (many,), (one,) = (group(rows.find([tmp_path / name])) for name in ("many", "one"))
    found = many.methods[0].estimates["return"]
    reach = 4.302653 * 0.5 / math.sqrt(3)
    assert (found.low, found.high) == pytest.approx((0.52 - reach, 0.52 + reach))
    assert many.methods[0].curve[-1][1].datasets == 3
    words = "95% Student interval over 3 datasets, the runs on each averaged first"
    assert words in write_report([tmp_path / "many"], tmp_path / "many.html").read_text()
    alone = "95% Student interval over 5 runs on one dataset, so it tells nothing of other data"
    assert alone in write_report([tmp_path / "one"], tmp_path / "one.html").read_text()
    assert "All its runs share one dataset" in headline(one)[1]
