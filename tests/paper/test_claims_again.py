"""Claims judged again on MinAtar or on levels with memory: which, by which runs, in which cells."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

import pytest
from support.browser import Tab, needs_browser
from support.studies import longer, make_run, scored, steady, write_study

from rbve.paper import experiments
from rbve.paper._pages import claims_table
from rbve.paper.claims import (
    ATARI,
    FOR_ATARI,
    FOR_LAB,
    LAB,
    MEMORY,
    MINATAR,
    Judged,
    all_claims,
    judge_all,
)
from rbve.paper.judging.verdicts import ENOUGH
from rbve.paper.report import write_report
from rbve.report.labels import BEYOND, METHODS
from rbve.rows import Run

TEXT = "Filtered BC performs considerably worse than BVE"
GAMES = ("minatar:breakout", "minatar:space_invaders")
LEVELS = ("collect:few", "collect:many")
BEST = "R-BVE performs best on all DeepMind Lab levels"
COVERAGE = "On a noisy expert's data R-BVE outperforms BC"


def on(env: str, algorithm: str, scores: list[float], keep: float = 0.1) -> list[Run]:
    return scored(algorithm, scores, data={"env": env, "keep": keep})


def leads(level: str, by: dict[str, float]) -> list[Run]:
    """All of a level's episodes: R-BVE at 60 and more, the others so far below it."""
    return [
        run
        for algorithm, gap in {"rbve": 0.0, **by}.items()
        for run in on(level, algorithm, [60 - gap, 61 - gap, 62 - gap, 63 - gap], keep=1.0)
    ]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """BVE is 20 below filtered BC on catch, and 30 and 50 above it on two games; of the levels with
    memory, R-BVE leads on one and is 5 below CQL on the other."""
    folder = tmp_path_factory.mktemp("study")
    bsuite = on("catch", "bve", [30, 31, 32, 33]) + on("catch", "filtered_bc", [50, 51, 52, 53])
    boards = [
        run
        for game, gap in zip(GAMES, (30, 50), strict=True)
        for run in on(game, "bve", [gap + 1, gap + 2, gap + 3, gap + 4])
        + on(game, "filtered_bc", [1, 2, 3, 4])
    ]
    rivals = {"bc": 40.0, "dqn": 30.0, "rdqn": 20.0, "cql": 15.0, "bve": 10.0}
    memory = leads(LEVELS[0], rivals) + leads(LEVELS[1], {**rivals, "cql": -5.0})
    enough(folder, {"bsuite": bsuite, "minatar": boards, "memory": memory})
    return folder


def enough(folder: Path, experiments: Mapping[str, list[Run]]) -> None:
    """Of runs that were trained long enough to be judged."""
    runs = {name: steady(own) for name, own in experiments.items()}
    write_study(folder, runs, checked={name: longer(own) for name, own in runs.items()})


def judged(study: Path) -> dict[str, Judged]:
    from rbve.rows import find

    return {each.claim.text: each for each in judge_all([study], find([study]))}


def test_one_rule_judges_two_kinds_of_data(study: Path) -> None:
    found = judged(study)[TEXT]
    assert (found.judgement.verdict, found.judgement.effects["filtered BC"].value) == (
        "not reproduced",
        -20,
    )
    assert found.claim.again == ("MinAtar", "minatar")
    assert found.again is not None
    assert (found.again.verdict, found.again.effects["filtered BC"].value) == ("reproduced", 40)
    assert found.again.effects["filtered BC"].n == 8


def test_claims_do_not_look_at_methods_beyond_the_paper(tmp_path: Path) -> None:
    """All of the paper's methods, then again with others far above them."""
    experiment = experiments.load("minatar")
    assert isinstance(experiment, experiments.Experiment)
    assert {method.algorithm for method in experiment.methods} > BEYOND
    own = [name for name in METHODS if name not in BEYOND]
    boards = [
        run
        for game in GAMES
        for place, name in enumerate(own)
        for run in on(game, name, [60 - place, 61.5 - place, 62 - place], keep=1.0)
    ]
    others = [
        run for game in GAMES for name in BEYOND for run in on(game, name, [900, 910, 930], 1.0)
    ]
    enough(tmp_path / "without", {"minatar": boards})
    enough(tmp_path / "with", {"minatar": boards + others})
    before, after = (judged(tmp_path / name) for name in ("without", "with"))
    again = {text: each.again for text, each in before.items() if each.again}
    assert sum(each.verdict != "not run" for each in again.values()) > 5
    for text, each in again.items():
        found = after[text].again
        assert found is not None
        assert (found.verdict, found.measured) == (each.verdict, each.measured)


def test_levels_with_memory_beside_the_papers_table(study: Path) -> None:
    best = judged(study)[BEST]
    assert best.claim.again == ("levels with memory", "memory")
    assert best.judgement.verdict == "not run"  # the table agrees, and shows no runs of ours
    assert best.again is not None
    assert best.again.verdict == "partly"  # nine of ten comparisons
    assert "of 10 comparisons 9 clearly for it, 1 clearly against it" in best.again.measured
    assert "on average against BC +40 [+40, +40] (n=8)" in best.again.measured
    assert best.again.effects["CQL, collect:many, 100%"].value == -5
    average = judged(study)["R-BVE outperforms the other approaches on DeepMind Lab"].again
    assert average is not None
    assert (average.verdict, average.effects["CQL"].value) == ("reproduced", 5)
    other = judged(study)["BVE outperforms other offline RL on all DeepMind Lab levels"]
    assert other.judgement.verdict == "not reproduced"
    assert other.again is not None  # above R2D2 and R-R2D2 on both levels, above CQL on one
    assert (other.again.verdict, len(other.again.effects)) == ("partly", 6)
    # R2D2 scores 31.5 on both: below half way.
    poor = judged(study)["R2D2 performs poorly offline, on the data of an online R2D2"].again
    assert poor is not None
    assert (poor.verdict, poor.effects["R2D2"].value) == ("reproduced", 31.5)
    # Judged by the table alone the first time; without runs of its own it has no second verdict.
    coverage = judged(study)[COVERAGE]
    assert coverage.claim.again == ("levels with memory", "memory_coverage")
    assert coverage.again is not None
    assert (coverage.again.verdict, coverage.again.measured) == ("not run", "no runs")


def test_methods_with_memory_go_by_their_own_names(tmp_path: Path) -> None:
    means = {"bc": 80, "dqn": 20, "rdqn": 50, "cql": 0, "bve": 0, "rbve": 0}
    runs = [
        run
        for algorithm, score in means.items()
        for run in scored(
            algorithm,
            [score + seed for seed in range(4)],
            data={"env": LEVELS[0], "keep": 1.0},
            source={"behaviour": "policy", "epsilon": 0.0},
        )
    ]
    enough(tmp_path, {"coverage": runs, "memory_coverage": runs})
    claim = judged(tmp_path)["On a noiseless expert's data BC outperforms all offline RL"]
    assert claim.again is not None
    assert "DDQN +60" in claim.judgement.measured
    assert "R-DQN +30" in claim.judgement.measured
    assert claim.again.measured == claim.judgement.measured.replace("R-DQN", "R-R2D2").replace(
        "DDQN", "R2D2"
    )


def test_a_table_is_no_evidence_of_runs(tmp_path: Path) -> None:
    write_study(tmp_path, {"bsuite": on("catch", "bve", [1.0])})
    found = judged(tmp_path)["BVE outperforms other offline RL on all DeepMind Lab levels"]
    assert found.judgement.verdict == "not reproduced"  # by the paper's table
    assert found.again is not None
    assert found.again.verdict == "not run"


def test_only_claims_about_atari_and_the_lab_are_judged_again(study: Path) -> None:
    for text, each in judged(study).items():
        about = (FOR_ATARI, ATARI, FOR_LAB, LAB)
        assert (each.again is not None) == (each.claim.here in about), text
    missing = judged(study)["A larger λ widens the action gap"].again
    assert missing is not None
    assert missing.verdict == "not run"
    assert judged(study)["R-BVE outperforms all baselines on cartpole"].again is None


def test_every_row_of_the_csv_says_what_was_measured_there(study: Path) -> None:
    text = claims_table.as_csv(list(judged(study).values()))
    rows = list(csv.DictReader(io.StringIO(text)))
    of = {row["claim"]: row for row in rows}
    assert (of[TEXT]["verdict"], of[TEXT]["verdict there"]) == ("not reproduced", "reproduced")
    assert "against filtered BC −20" in of[TEXT]["measured here"]
    assert "against filtered BC +40" in of[TEXT]["measured there"]
    assert {row["judged again on"] for row in rows} == {"MinAtar", "levels with memory", "–"}
    bsuite = of["R-BVE outperforms all baselines on cartpole"]
    assert (bsuite["judged again on"], bsuite["verdict there"]) == ("–", "–")
    assert bsuite["measured there"] == "–"
    assert {row["verdict there"] for row in rows} == {"reproduced", "partly", "not run", "–"}


def test_the_tally_counts_both(study: Path) -> None:
    words = claims_table.tally(list(judged(study).values()))
    atari, lab = (
        sum(claim.here in about for claim in all_claims())
        for about in ((FOR_ATARI, ATARI), (FOR_LAB, LAB))
    )
    assert (atari, lab) == (26, 12)
    assert words.startswith(
        f"{len(all_claims())} claims: 0 reproduced, 1 partly, 9 not reproduced, 0 under-trained, "
    )
    assert (
        f"The {atari} about Atari, on MinAtar: 1 reproduced, 0 partly, 0 not reproduced, "
        f"0 under-trained, {atari - 1} not run. " in words
    )
    assert words.endswith(
        "The 12 about DeepMind Lab, on levels with memory: 2 reproduced, 3 partly, "
        "0 not reproduced, 0 under-trained, 7 not run."
    )


def source_of(data: experiments.Data) -> dict[str, object]:
    """As its recorder leaves it."""
    if data.expert is not None:
        return {"noise": data.noise, "behaviour": "policy", "epsilon": data.expert}
    return {"noise": data.noise}


@pytest.mark.parametrize(
    "name", sorted({*MINATAR.experiments.values(), *MEMORY.experiments.values()})
)
def test_experiments_hold_what_the_rules_ask_for(name: str, tmp_path: Path) -> None:
    """Every claim finds all its runs in what the experiment declares at desk scale."""
    experiment = experiments.load(name)
    assert isinstance(experiment, experiments.Experiment)
    scale = experiment.at(experiments.SCALES["desk"])
    runs = []
    for data in experiment.data:
        kept = {k: v for k, v in asdict(data).items() if k in ("env", "keep", "side", "action")}
        kept["fingerprint"] = str(data.expert)  # another recording
        for method in experiment.methods:
            for tried in method.sweep[: scale.settings]:
                settings = {**method.settings, **tried}
                rate = settings.pop("learning_rate", 3e-4)
                for seed in range(scale.datasets):
                    final = dict.fromkeys(
                        ("normalised_return", "return", "overestimation", "value_error"), 7.0 + seed
                    )
                    final["action_gap"] = 1.0
                    runs.append(
                        make_run(
                            method.algorithm, seed, final, (), rate, settings, data=kept,
                            source=source_of(data),
                        )
                    )  # fmt: skip
    write_study(tmp_path, {name: runs})
    asked = [
        each
        for each in judged(tmp_path).values()
        if each.claim.again and each.claim.again.experiment == name
    ]
    assert asked
    for each in asked:
        assert each.again is not None
        assert each.again.verdict != "not run", each.claim.text
        # Enough datasets of every kind: no verdict is held back for want of them.
        assert min(effect.fewest for effect in each.again.effects.values()) >= ENOUGH


@pytest.fixture(scope="module")
def page(study: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report([study], tmp_path_factory.mktemp("page") / "page.html")


@pytest.fixture
def tab(browser: Tab) -> Iterator[Tab]:
    yield browser
    assert browser.errors == []


@needs_browser
def test_claims_are_filtered_by_what_and_how_they_were_judged_again(tab: Tab, page: Path) -> None:
    tab.open(page)
    for column, value in (("judged again on", "MinAtar"), ("verdict there", "reproduced")):
        tab.run(
            "(() => { const list = [...document.querySelectorAll('.controls label')]"
            f".find(l => l.textContent.startsWith('{column}')).control; list.value = '{value}';"
            "list.dispatchEvent(new Event('change')); })()"
        )
    shown = "[...document.querySelectorAll('table.claims tbody tr')].filter(r => !r.hidden)"
    assert tab.run(f"{shown}.map(r => r.cells[1].textContent)") == [TEXT]
    colours = tab.run(
        f"{shown}.map(r => [r.cells[0], r.cells[8]].map(c => getComputedStyle(c).color))[0]"
    )
    assert colours[0] != colours[1]  # 'not reproduced' and 'reproduced'


@needs_browser
def test_on_a_phone_both_verdicts_stand_in_the_card(tab: Tab, page: Path) -> None:
    tab.open(page, 390, 844)
    assert tab.run("document.documentElement.scrollWidth") == 390
    rows = "[...document.querySelectorAll('table.claims tr')]"
    row = f"{rows}.find(r => r.textContent.includes('{TEXT}'))"
    labels = tab.run(f"[7, 8].map(k => getComputedStyle({row}.cells[k], '::before').content)")
    assert labels == ['"judged again on: "', '"verdict there: "']
    assert tab.run(f"{row}.cells[7].textContent") == "MinAtar"
    assert tab.run(f"{row}.cells[8].textContent") == "reproduced"
    shown = f"[...{row}.cells].filter(c => c.textContent)"
    tops = tab.run(f"{shown}.map(c => c.getBoundingClientRect().top)")
    assert tops == sorted(set(tops))  # one below the other
    once = f"{rows}.find(r => r.textContent.includes('all baselines on cartpole'))"
    dashes = f"[...{once}.cells].filter(c => c.textContent === '–')"
    assert tab.run(f"{dashes}.map(c => c.offsetHeight)") == [0, 0, 0]
