"""Claims about Atari, judged on MinAtar beside bsuite: which, by which runs, in which cells."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from support.browser import Tab, needs_browser
from support.studies import make_run, scored, write_study

from rbve import experiments
from rbve.report import claims_table, write_report
from rbve.report.claims import CLAIMS
from rbve.report.claims.claim import ATARI, FOR_ATARI, MINATAR
from rbve.report.claims.judge import Judged, judge_all
from rbve.rows import Run

TEXT = "Monte Carlo returns perform poorly beside BVE"
GAMES = ("minatar:breakout", "minatar:space_invaders")


def on(env: str, algorithm: str, scores: list[float]) -> list[Run]:
    return scored(algorithm, scores, data={"env": env})


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """BVE is 20 below MC on catch, and 30 and 50 above it on two games."""
    folder = tmp_path_factory.mktemp("study")
    bsuite = on("catch", "bve", [30, 31, 32, 33]) + on("catch", "mc", [50, 51, 52, 53])
    boards = [
        run
        for game, gap in zip(GAMES, (30, 50), strict=True)
        for run in on(game, "bve", [gap + 1, gap + 2, gap + 3, gap + 4])
        + on(game, "mc", [1, 2, 3, 4])
    ]
    write_study(folder, {"bsuite": bsuite, "minatar": boards})
    return folder


def judged(study: Path) -> dict[str, Judged]:
    from rbve.rows import find

    return {each.claim.text: each for each in judge_all([study], find([study]))}


def test_one_rule_judges_two_kinds_of_data(study: Path) -> None:
    found = judged(study)[TEXT]
    assert (found.judgement.verdict, found.judgement.effects["MC"].value) == ("not here", -20)
    assert found.minatar is not None
    assert (found.minatar.verdict, found.minatar.effects["MC"].value) == ("reproduced", 40)
    assert found.minatar.effects["MC"].n == 8


def test_claims_about_other_data_are_not_judged_on_minatar(study: Path) -> None:
    for text, each in judged(study).items():
        assert (each.minatar is not None) == (each.claim.here in (FOR_ATARI, ATARI)), text
    missing = judged(study)["A larger λ widens the action gap"].minatar
    assert missing is not None
    assert missing.verdict == "not run"
    assert judged(study)["R-BVE outperforms all baselines on cartpole"].minatar is None


def test_every_row_of_the_csv_has_minatar_cells(study: Path) -> None:
    text = claims_table.as_csv(list(judged(study).values()))
    rows = list(csv.DictReader(io.StringIO(text)))
    of = {row["claim"]: row for row in rows}
    assert (of[TEXT]["verdict"], of[TEXT]["on MinAtar"]) == ("not here", "reproduced")
    assert "against MC -20" in of[TEXT]["measured here"]
    assert "against MC +40" in of[TEXT]["measured on MinAtar"]
    lab = of["On a noisy expert's data R-BVE outperforms BC"]
    assert (lab["on MinAtar"], lab["measured on MinAtar"]) == ("–", "–")
    assert {row["on MinAtar"] for row in rows} == {"reproduced", "not run", "–"}


def test_the_tally_counts_both(study: Path) -> None:
    words = claims_table.tally(list(judged(study).values()))
    atari = sum(claim.here in (FOR_ATARI, ATARI) for claim in CLAIMS)
    assert atari == 20
    assert words.startswith(f"{len(CLAIMS)} claims: 0 reproduced, 1 partly, 4 not here, ")
    assert f"The {atari} about Atari, on MinAtar: 1 reproduced, 0 partly, 0 not here, " in words
    assert words.endswith(f"{atari - 1} not run.")


@pytest.mark.parametrize("name", sorted(set(MINATAR.values())))
def test_minatars_experiments_hold_what_the_rules_ask_for(name: str, tmp_path: Path) -> None:
    """Every claim finds all its runs in what the experiment declares at desk scale."""
    experiment = experiments.load(name)
    assert isinstance(experiment, experiments.Experiment)
    scale = experiment.at(experiments.SCALES["desk"])
    runs = []
    for data in experiment.data:
        kept = {k: v for k, v in asdict(data).items() if k in ("env", "keep", "side", "action")}
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
                            source={"noise": data.noise},
                        )
                    )  # fmt: skip
    write_study(tmp_path, {name: runs})
    asked = [each for each in judged(tmp_path).values() if each.claim.minatar == name]
    assert asked
    for each in asked:
        assert each.minatar is not None
        assert each.minatar.verdict != "not run", each.claim.text


@pytest.fixture(scope="module")
def page(study: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report([study], tmp_path_factory.mktemp("page") / "page.html")


@pytest.fixture
def tab(browser: Tab) -> Iterator[Tab]:
    yield browser
    assert browser.errors == []


@needs_browser
def test_claims_are_filtered_by_minatars_verdict(tab: Tab, page: Path) -> None:
    tab.open(page)
    tab.run(
        "(() => { const list = [...document.querySelectorAll('.controls label')]"
        ".find(l => l.textContent.startsWith('on MinAtar')).control; list.value = 'reproduced';"
        "list.dispatchEvent(new Event('change')); })()"
    )
    shown = "[...document.querySelectorAll('table.claims tbody tr')].filter(r => !r.hidden)"
    assert tab.run(f"{shown}.map(r => r.cells[1].textContent)") == [TEXT]
    colours = tab.run(
        f"{shown}.map(r => [r.cells[0], r.cells[2]].map(c => getComputedStyle(c).color))[0]"
    )
    assert colours[0] != colours[1]  # 'not here' and 'reproduced'


@needs_browser
def test_on_a_phone_both_verdicts_stand_in_the_card(tab: Tab, page: Path) -> None:
    tab.open(page, 390, 844)
    assert tab.run("document.documentElement.scrollWidth") == 390
    rows = "[...document.querySelectorAll('table.claims tr')]"
    row = f"{rows}.find(r => r.textContent.includes('{TEXT}'))"
    label = f"getComputedStyle({row}.cells[2], '::before').content"
    assert tab.run(label) == '"on MinAtar: "'
    assert tab.run(f"{row}.cells[2].textContent") == "reproduced"
    shown = f"[...{row}.cells].filter(c => c.textContent)"
    tops = tab.run(f"{shown}.map(c => c.getBoundingClientRect().top)")
    assert tops == sorted(set(tops))  # one below the other
