"""Whether runs were long enough to be judged: flat scores, and an order that stays."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cli import run
from support.reports import embedded_table
from support.studies import longer, scored, steady, write_study

from rbve.paper import experiments
from rbve.paper import reproduce as study
from rbve.paper._pages.gather import gather
from rbve.paper.claims import judge_all
from rbve.paper.experiments import Data, Experiment, Method, Scale
from rbve.paper.finals import Final, Problem, finals
from rbve.paper.judging import _rules as rules
from rbve.paper.judging._effects import Pick, Quantity
from rbve.paper.judging.sizes import judged
from rbve.paper.report import write_report
from rbve.paper.results import listed, pack
from rbve.report import statistics
from rbve.rows import find

CATCH = Problem("catch", 0.0, None, 0.1, "all", "chosen")
SHARES = tuple(np.arange(1, 11) / 10)
A, B = Pick("bve"), Pick("dqn")


def everywhere(problem: Problem) -> bool:
    return True


BETTER = rules.better(A, {"DDQN": B}, everywhere)


def trained(
    algorithm: str, paths: list[list[float]], measure: str = "normalised_return", **settings: Any
) -> list[Final]:
    """A run per dataset, of its ten evaluations; the last five are averaged."""
    return [
        Final(
            CATCH, algorithm, json.dumps(settings), seed,
            {measure: float(np.mean(path[5:])), "normalised_return": float(np.mean(path[5:]))},
            evaluations=tuple(
                (share, {measure: value, "normalised_return": value})
                for share, value in zip(SHARES, path, strict=True)
            ),
        )
        for seed, path in enumerate(paths)
    ]  # fmt: skip


def still(*levels: float) -> list[list[float]]:
    return [[level] * 10 for level in levels]


OURS = trained("bve", still(60, 61, 62, 63))
THEIRS = trained("dqn", still(20, 21, 22, 23))
KEPT = trained("bve", still(70)) + trained("dqn", still(25))  # three times as long


def test_flat_and_in_the_same_order_is_judged() -> None:
    found = judged(BETTER, OURS + THEIRS, KEPT)
    assert found.verdict == "reproduced"
    assert found.measured == "against DDQN +40 [+40, +40] (n=4)"
    assert found.size is not None
    assert (found.size.flat, found.size.order) == ("yes", "kept")
    assert [len(curve) for curve in found.size.curves] == [4, 4]


def test_a_score_that_rises_is_under_trained() -> None:
    # Third quarter: evaluations 6 and 7; last: 8, 9 and 10.
    rising = trained("dqn", [[0] * 5 + [10, 12, 18, 20, 22 + seed] for seed in range(4)])
    found = judged(BETTER, OURS + rising, KEPT)
    assert found.verdict == "under-trained"
    # 20 − 11, and a third of 0 to 3 more: 9.5 ± 3.182 · 0.43 / 2.
    assert found.measured.endswith(
        "reproduced at this size, but 1 of 2 scores still change, most DDQN on catch "
        "by +9.5 ± 0.685"
    )
    assert found.effects["DDQN"].value > 0


def test_a_small_change_is_none_however_clear() -> None:
    slow = trained("dqn", [[20.0] * 7 + [24.9] * 3] * 4)
    assert judged(BETTER, OURS + slow, KEPT).verdict == "reproduced"
    faster = trained("dqn", [[20.0] * 7 + [25.1] * 3] * 4)
    assert judged(BETTER, OURS + faster, KEPT).verdict == "under-trained"


def test_noise_alone_is_no_trend() -> None:
    rng = np.random.default_rng(0)
    verdicts = []
    for _ in range(40):
        noisy = [
            trained(name, (level + 8 * rng.normal(size=(4, 10))).tolist())
            for name, level in (("bve", 60), ("dqn", 20))
        ]
        verdicts.append(judged(BETTER, [*noisy[0], *noisy[1]], KEPT).verdict)
    assert verdicts.count("under-trained") <= 6
    assert verdicts.count("reproduced") >= 34


def test_a_wide_interval_does_not_excuse_all_scores() -> None:
    def rise(*by: float) -> list[list[float]]:
        return [[50.0] * 7 + [50.0 + each] * 3 for each in by]

    # +10 on average, from −20 to +40: no clear trend by itself, nor together with a flat one ...
    wide = rise(40, -20, 30, -10)
    high = trained("bve", still(160, 161, 162, 163))
    assert judged(BETTER, high + trained("dqn", wide), KEPT).verdict == "reproduced"
    # ... but two such scores change by 10 points on average, and nobody knows that they are flat.
    both = judged(BETTER, trained("bve", wide) + trained("dqn", wide), KEPT)
    assert both.verdict == "under-trained"
    assert "the 2 scores still change, by +10 on average" in both.measured


def test_one_score_in_twenty_is_left_to_chance() -> None:
    names = [f"x{k}" for k in range(19)]
    rule = rules.better(A, {name: Pick(name) for name in names}, everywhere)
    long_runs = trained("bve", still(70)) + [f for n in names for f in trained(n, still(25))]
    rising = [[20.0] * 7 + [30.0] * 3] * 4
    for count, verdict in ((1, "reproduced"), (2, "under-trained")):
        others = [
            final
            for place, name in enumerate(names)
            for final in trained(name, rising if place < count else still(20, 21, 22, 23))
        ]
        found = judged(rule, OURS + others, long_runs)
        assert found.verdict == verdict
        assert found.size is not None
        assert f"{count} of 20 scores still change" in found.size.flat


def test_an_order_that_turns_over_later_is_under_trained() -> None:
    # As on MinAtar: flat for the whole of the ordinary run, and then it rises past the other.
    late = trained("bve", still(25)) + trained("dqn", [[20.0] * 6 + [60.0] * 4])
    found = judged(BETTER, OURS + THEIRS, late)
    assert found.verdict == "under-trained"
    assert found.measured.endswith(
        "reproduced at this size, but in the run 3 times as long DDQN turns over, from +5 to −35 "
        "on one recording"
    )
    rises = trained("bve", [[0.0] * 3 + [70.0] * 7]) + trained("dqn", still(25))
    against = judged(BETTER, trained("bve", still(0, 1, 2, 3)) + THEIRS, rises)
    assert "not reproduced at this size, but" in against.measured


def test_turning_over_is_more_than_noise() -> None:
    def verdict(now: list[float]) -> str:
        pair = trained("bve", [[0.0] * 7 + now]) + trained("dqn", still(0))
        return judged(BETTER, trained("bve", still(21, 22, 23, 24)) + THEIRS, pair).verdict

    assert verdict([-6, -6, -6]) == "under-trained"
    assert verdict([-4, -4, -4]) == "reproduced"  # within five points of a tie
    assert verdict([-30, -30, 1]) == "reproduced"  # not at every evaluation


def test_the_longer_run_is_set_beside_its_own_first_third() -> None:
    # On recording 0 the order is the other way than on average, and stays so.
    ours = trained("bve", still(10, 61, 62, 63))
    stays = trained("bve", still(12)) + trained("dqn", still(40))
    size = judged(BETTER, ours + THEIRS, stays).size
    assert size is not None
    assert size.order == "kept"
    # λ 1 is reported, and λ 2, first in the sweep, trained longer.
    swept = trained("bve", still(60, 61, 62, 63), lam=1) + trained("bve", still(5, 6, 7, 8), lam=2)
    long_runs = trained("bve", still(6), lam=2) + trained("dqn", still(40))
    assert judged(BETTER, swept + THEIRS, long_runs).verdict == "reproduced"


def test_similar_scores_that_part_are_under_trained() -> None:
    rule = rules.similar(A, {"DDQN": B}, everywhere, 10)
    near = OURS + trained("dqn", still(58, 59, 60, 61))
    for gap, verdict in ((4, "reproduced"), (14, "reproduced"), (16, "under-trained")):
        apart = trained("bve", [[62.0] * 3 + [60.0 + gap] * 7]) + trained("dqn", still(60))
        assert judged(rule, near, apart).verdict == verdict


def test_a_level_that_is_lost_later_is_under_trained() -> None:
    rule = rules.reaches({"BVE": A}, everywhere, 50)
    assert judged(rule, OURS, trained("bve", still(80))).verdict == "reproduced"
    lost = trained("bve", [[60.0] * 3 + [40.0] * 7])
    assert judged(rule, OURS, lost).verdict == "under-trained"
    assert judged(rule, OURS, trained("bve", still(40))).verdict == "reproduced"  # as it was before


def test_values_that_run_away_need_not_be_flat() -> None:
    over = Quantity("overestimation", statistics.logarithm, 0.3)
    rule = rules.better(A, {"DDQN": B}, everywhere, over, -1)

    def run(algorithm: str, error: list[float], count: int) -> list[Final]:
        made = trained(algorithm, still(*[30.0] * count))
        return [
            replace(
                final,
                values={**final.values, "overestimation": error[-1]},
                evaluations=tuple(
                    (share, {**values, "overestimation": value})
                    for (share, values), value in zip(final.evaluations, error, strict=True)
                ),
            )
            for final in made
        ]

    away = [10.0**k for k in range(10)]
    found = run("bve", [1.0] * 10, 4) + run("dqn", away, 4)
    stays = run("bve", [1.0] * 10, 1) + run("dqn", away, 1)
    assert judged(rule, found, stays).verdict == "reproduced"
    # That errors keep their order is for the longer run.
    turned = run("bve", [1.0] * 3 + [1e12] * 7, 1) + run("dqn", away, 1)
    assert judged(rule, found, turned).verdict == "under-trained"


def test_what_is_missing_is_said() -> None:
    none = judged(BETTER, OURS + THEIRS)
    assert none.verdict == "under-trained"
    assert none.measured == (
        "against DDQN +40 [+40, +40] (n=4); reproduced at this size, but the run 3 times as long "
        "is missing"
    )
    half = judged(BETTER, OURS + THEIRS, trained("bve", still(70)))
    assert "is missing for 1 of 2, as DDQN on catch" in half.measured
    blind = [replace(final, evaluations=()) for final in OURS]
    assert (
        "BVE on catch was evaluated too seldom to tell"
        in judged(BETTER, blind + THEIRS, KEPT).measured
    )
    # No runs, no sizes: there is nothing to judge.
    assert judged(BETTER, OURS, KEPT).verdict == "not run"
    assert judged(BETTER, OURS, KEPT).size is None


def test_a_run_that_diverged_keeps_its_last_evaluation() -> None:
    ended = [replace(final, evaluations=final.evaluations[:3]) for final in THEIRS]
    assert judged(BETTER, OURS + ended, KEPT).verdict == "reproduced"


def test_a_part_told_beside_needs_not_be_flat() -> None:
    rising = trained("rem", [[0.0] * 7 + [50.0] * 3] * 4)
    rule = rules.beside(BETTER, "REM", rules.better(A, {"REM": Pick("rem")}, everywhere))
    found = judged(rule, OURS + THEIRS + rising, KEPT)
    assert found.verdict == "reproduced"
    assert "REM: against REM" in found.measured


TEXT = "Filtered BC performs considerably worse than BVE"


def test_longer_runs_tell_of_sizes_and_of_nothing_else(tmp_path: Path) -> None:
    runs = steady([*scored("bve", [60, 61, 62, 63]), *scored("filtered_bc", [20, 21, 22, 23])])
    more = longer(steady([*scored("bve", [95]), *scored("filtered_bc", [1])]))
    folder = tmp_path / "study"
    write_study(folder, {"bsuite": runs}, checked={"bsuite": more})
    kept = tmp_path / "kept"
    assert pack([folder], kept).runs == len(runs) + len(more) == 10
    for each in (folder, kept):
        (found,) = (one for one in judge_all([each], find([each])) if one.claim.text == TEXT)
        assert (found.judgement.verdict, found.judgement.effects["filtered BC"].value) == (
            "reproduced",
            40,
        )
        assert found.judgement.size is not None
        assert found.judgement.size.order == "kept"
        held = gather([each], find([each]))
        assert len(held.of("bsuite")) == 8
        assert held.longer == {run.job for run in more}
    page = write_report([kept], tmp_path / "page.html").read_text()
    assert "8 runs, 2 longer ones that tell whether these were long enough." in page
    assert "bsuite (longer)" in json.dumps(embedded_table(page, "all-runs"))
    figures = tmp_path / "page-figures"
    lines = csv.DictReader(io.StringIO((figures / "sizes.csv").read_text()))
    (line,) = (row for row in lines if row["claim"] == TEXT)
    assert (line["environments"], line["datasets"], line["updates"]) == ("catch", "4", "1,000")
    # 1,000 updates of 128 on 900 transitions.
    assert (line["transitions"], line["passes over them"], line["batch"]) == ("900", "142", "128")
    assert (line["settings tried"], line["scores flat"]) == ("1, not tuned", "yes")
    assert line["order, longer"] == "kept"
    for name in ("summary.csv", "bsuite-scores.csv"):
        assert "95" not in (figures / name).read_text()
    # Without them the same runs are not enough.
    write_study(folder, {"bsuite": runs})
    bare = {one.claim.text: one.judgement for one in judge_all([folder], find([folder]))}
    assert bare[TEXT].verdict == "under-trained"
    assert "the run 3 times as long is missing" in bare[TEXT].measured


TINY = Scale(datasets=2, steps=8, episodes=0.01, settings=2, evaluations=2, longer=3)
SMALL = Experiment(
    question="?",
    data=(Data("catch"), Data("catch", keep=0.5)),
    methods=(Method("bve", sweep=({"learning_rate": 1e-3}, {})), Method("bc")),
)


def test_a_study_trains_the_first_setting_longer_on_the_first_recording(tmp_path: Path) -> None:
    study.record_all(study.recordings([SMALL], TINY), tmp_path)
    study.run({"small": SMALL}, TINY, tmp_path)
    known = json.loads((tmp_path / "experiments" / "small.json").read_text())
    runs = {run.job: run for run in find([tmp_path / "runs"])}
    assert set(runs) == {*known["jobs"], *known["longer"]}
    assert (len(known["jobs"]), len(known["longer"])) == (12, 4)
    ordinary = {job.id: job for job in study.jobs(SMALL, TINY, tmp_path)}
    for job in study.longer_jobs(SMALL, TINY, tmp_path):
        assert (job.steps, job.evaluation.every, job.data.keep_seed) == (24, 4, 0)
        # But for its length it is one of the others, target period and all ...
        twin = job.varied(steps=8).id
        assert twin in ordinary
        # ... and so it begins with the other's evaluations.
        curves = [
            [row for row in runs[each].rows if row.metric == "return" and row.step <= 8]
            for each in (twin, job.id)
        ]
        assert curves[0] == curves[1] != []
        assert job.algorithm == "bc" or job.optimiser.learning_rate == 1e-3
    evaluated = finals(runs[job] for job in known["longer"])
    shares = {tuple(round(6 * share) for share, _ in each.evaluations) for each in evaluated}
    assert shares == {(1, 2, 3, 4, 5, 6)}
    assert study.longer_jobs(SMALL, replace(TINY, longer=0), tmp_path) == []


def test_longer_runs_alone_join_what_was_packed_before(tmp_path: Path) -> None:
    before, more, kept = tmp_path / "before", tmp_path / "more", tmp_path / "kept"
    ordinary = replace(TINY, longer=0)
    study.record_all(study.recordings([SMALL], ordinary), before)
    study.run({"small": SMALL}, ordinary, before)
    pack([before], kept)

    wanted = study.recordings([SMALL], TINY, more, part="longer")
    assert [each.seed for each in wanted] == [0]
    study.record_all(wanted, more)
    study.run({"small": SMALL}, TINY, more, part="longer")
    assert len(find([more / "runs"])) == 4
    pack([kept, more], kept)
    held = listed([kept])["small"]
    assert held.jobs == listed([before])["small"].jobs
    assert held.longer == listed([more])["small"].longer
    assert {run.job for run in find([kept])} == held.jobs | held.longer
    assert len(held.jobs) == 12
    assert len(held.longer) == 4


@pytest.mark.parametrize("name", ["bsuite", "minatar", "memory"])
def test_every_scale_but_quick_asks_whether_it_is_long_enough(name: str) -> None:
    experiment = experiments.load(name)
    assert isinstance(experiment, Experiment)
    times = {scale: experiment.at(size).longer for scale, size in experiments.SCALES.items()}
    assert times == {"quick": 0, "desk": 3, "paper": 3}


def test_a_scale_without_longer_runs_says_so(tmp_path: Path) -> None:
    ended = run("reproduce", "bsuite", "--part", "longer", "--out", tmp_path / "study")
    assert ended.code == 2
    assert "--part longer: there are none at --scale quick" in ended.err
    assert not (tmp_path / "study").exists()
