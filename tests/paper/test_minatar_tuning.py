"""Settings tuned on one game's own recording, frozen for the others, and told beside verdicts."""

from __future__ import annotations

import json
from pathlib import Path

import best_settings
import pytest
from support.studies import finals_of, longer, make_run, scored, steady, study_of, write_study

from rbve.paper import experiments
from rbve.paper import reproduce as study
from rbve.paper._pages import sizes_table
from rbve.paper._pages.figures import against
from rbve.paper._pages.gather import gather
from rbve.paper.claims import judge_all
from rbve.paper.experiments import SCALES, Data, Experiment, Method, Scale
from rbve.paper.experiments._methods import TUNED
from rbve.paper.experiments._minatar import FROZEN
from rbve.rows import Run, find

BREAKOUT = "minatar:breakout"
WHOLE = {"env": BREAKOUT, "keep": 1.0}
OTHERS = [n for n in experiments.names() if n.startswith("minatar") and n != "minatar_tuning"]


def load(name: str) -> Experiment:
    found = experiments.load(name)
    assert isinstance(found, Experiment)
    return found


@pytest.mark.parametrize("scale", SCALES)
def test_no_other_experiment_has_the_recording_that_is_tuned_on(scale: str) -> None:
    tuning = study.recordings([load("minatar_tuning")], SCALES[scale])
    assert {(each.env, each.seed) for each in tuning} == {(BREAKOUT, 100)}
    reported = study.recordings([load(name) for name in OTHERS], SCALES[scale])
    assert {each.env for each in reported} >= {BREAKOUT}
    assert not {each.folder(Path()) for each in tuning} & {e.folder(Path()) for e in reported}


def test_three_settings_a_method_as_long_as_what_is_reported() -> None:
    tuning, reported = (load(name).at(SCALES["desk"]) for name in ("minatar_tuning", "minatar"))
    assert (tuning.datasets, tuning.settings, tuning.longer) == (1, 3, 0)
    for name in ("steps", "evaluations", "eval_episodes", "batch_size", "period", "episodes"):
        assert getattr(tuning, name) == getattr(reported, name)
    assert all(len(method.sweep) >= 3 for method in load("minatar_tuning").methods)


@pytest.mark.parametrize("method", TUNED, ids=lambda method: method.algorithm)
def test_what_is_frozen_was_tried(method: Method) -> None:
    tried = [{"learning_rate": 3e-4, **each} for each in method.sweep[:3]]
    assert FROZEN[method.algorithm] in tried


@pytest.mark.parametrize("name", OTHERS)
def test_every_experiment_has_the_frozen_settings(name: str) -> None:
    experiment = load(name)
    assert experiment.tuned == "minatar_tuning"
    for method in experiment.methods:
        frozen = FROZEN[method.algorithm]
        apart = {key for key, value in frozen.items() if method.settings[key] != value}
        assert apart <= {"lam"}  # where λ varies, and with raw weights
        assert method.sweep == ({},)
        made = study.job(study.DataRef("x"), BREAKOUT, method, {}, experiment.at(SCALES["desk"]), 0)
        assert made.optimiser.learning_rate == method.settings["learning_rate"]


def test_seeds_start_where_the_data_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "fingerprint", lambda folder: folder.name)
    scale = Scale(2, 40, 0.01, 2, 2, longer=3)
    own = Experiment(
        question="?",
        data=(Data("catch", first=7),),
        methods=(Method("bve", sweep=({}, {"learning_rate": 1e-3})),),
    )
    wanted = study.recordings([own], scale)
    assert [each.seed for each in wanted] == [7, 8]
    assert [each.seed for each in study.recordings([own], scale, part="longer")] == [7]
    for each in wanted:
        each.folder(tmp_path).mkdir(parents=True)
        (each.folder(tmp_path) / "manifest.json").write_text(json.dumps({"finished": True}))
    assert [job.seed for job in study.jobs(own, scale, tmp_path)] == [7, 7, 8, 8]
    assert [job.seed for job in study.longer_jobs(own, scale, tmp_path)] == [7]
    with pytest.raises(ValueError, match="first is a seed, 0 or more, not -1"):
        Data("catch", first=-1)


def tuned(algorithm: str, scores: dict[float, float]) -> list[Run]:
    """A run for each learning rate, on the recording that is tuned on."""
    return [
        make_run(algorithm, 100, {"normalised_return": score}, rate=rate, data=WHOLE)
        for rate, score in scores.items()
    ]


def test_the_table_says_on_which_game_settings_were_chosen() -> None:
    bve, bc = ([finals_of(scored(name, [60, 61, 62], data=WHOLE))] for name in ("bve", "bc"))
    # make_run's learning rate is 3e-4.
    best = finals_of(tuned("bve", {3e-4: 50, 1e-4: 40, 1e-3: 10}))
    other = finals_of(tuned("bve", {3e-4: 50, 1e-4: 60}))
    assert sizes_table.tried(bve) == "1, not tuned"
    assert sizes_table.tried(bve, []) == "1, not tuned"
    assert sizes_table.tried(bve, best) == "3, on another recording of minatar:breakout"
    assert sizes_table.tried(bve + bc, best) == "1 to 3, on another recording of minatar:breakout"
    assert sizes_table.tried(bve, other) == "1, not the one chosen on minatar:breakout"
    several = [finals_of([*scored("bve", [1, 2]), *scored("bve", [3, 4], rate=1e-3)])]
    assert sizes_table.tried([*several, *bc], best) == "1 to 2, each on the other datasets"


def test_a_study_with_its_tuning(tmp_path: Path) -> None:
    boards = steady(
        [
            *scored("bve", [60, 61, 62], data=WHOLE),
            *scored("filtered_bc", [20, 21, 22], data=WHOLE),
        ]
    )
    choice = [*tuned("bve", {3e-4: 50, 1e-4: 40}), *tuned("filtered_bc", {3e-4: 5, 1e-4: 4})]
    write_study(
        tmp_path,
        {"minatar": boards, "minatar_tuning": choice},
        checked={"minatar": longer(boards)},
    )
    runs = find([tmp_path])
    held = gather([tmp_path], runs)
    lines = [dict(zip(sizes_table.COLUMNS, line, strict=True))
             for line in sizes_table.rows(judge_all([tmp_path], runs), held)]  # fmt: skip
    assert {line["settings tried"] for line in lines} == {
        "2, on another recording of minatar:breakout"
    }
    # The runs it was tuned by are no evidence.
    assert {line["datasets"] for line in lines} == {"3"}


def test_the_tool_prints_lines_of_the_table() -> None:
    runs = [*tuned("bve", {3e-4: 50, 1e-4: 62.5, 1e-3: float("nan")}), *tuned("bc", {3e-4: 7})]
    found = best_settings.lines(study_of(runs, "minatar_tuning"), "minatar_tuning")
    assert '"bve": {"learning_rate": 0.0001},  # 62.5; others 50.0, -inf' in found
    assert '"bc": {"learning_rate": 0.0003},  # 7.0' in found
    assert "# rbve: not run" in found
    with pytest.raises(ValueError, match="divergence has no settings"):
        best_settings.lines(study_of(runs, "minatar_tuning"), "divergence")


def test_the_figure_tells_settings_apart() -> None:
    runs = [*tuned("bve", {3e-4: 50, 1e-4: 40}), *tuned("bc", {3e-4: 7})]
    (chart,) = against.charts("minatar_tuning", load("minatar_tuning"), finals_of(runs))
    assert [series.name for series in chart.panels[0].series] == ["lr=0.0001", "lr=0.0003"]
