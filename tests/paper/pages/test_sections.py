"""A study's page: all of it, part of it, and what it says of either."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.reports import embedded_table
from support.studies import make_run, scored, write_study

from rbve import rows
from rbve.paper._pages import datasets, theory
from rbve.paper._pages.gather import gather
from rbve.paper._pages.overview import sections
from rbve.paper._pages.theory import divergence, improvement
from rbve.paper.audits import FILE
from rbve.report import page
from rbve.rows import Row, Run

AUDIT = {
    "fingerprint": "abc",
    "verdict": "look at this",
    "findings": [
        {"name": "few episodes", "level": "look", "seen": "3 <b>", "why": "noise", "remedy": "more"}
    ],
    "notes": [],
    "episodes": 3,
    "transitions": 27,
    "observation": "10 × 5 float32",
    "actions": {"left": 0.25, "stay": 0.75},
    "executed_differs": None,
    "length": {"mean": 9.0},
    "returns": {"mean": 0.3333, "low": -1, "q25": 0, "median": 1, "q75": 1, "high": 1},
    "ends": {"terminated": 3, "at_limit": 3},
}


@pytest.fixture
def parts():
    bsuite = [*scored("rbve", (90.0, 95.0)), *scored("dqn", (20.0, 40.0))]
    bsuite += scored("rbve", (80.0, 70.0), settings={"normalise": "none"})
    shares = [
        make_run("dqn", seed, {"overestimation": 5.0, "normalised_return": 20.0}, data={"keep": k})
        for k in (0.01, 1.0)
        for seed in (0, 1)
    ]
    return {"bsuite": bsuite, "fractions": [*shares, *bsuite[2:4]]}


def built(out: Path):
    runs = rows.find([out])
    found = sections(gather([out], runs))
    text = page.write(found, out / "page.html", "Title", "About").read_text()
    return {each.id: each for each in found}, text


def test_all_of_it(tmp_path, parts):
    write_study(tmp_path, parts)
    found, text = built(tmp_path)
    assert list(found) == [
        "reading",
        "bsuite",
        "bsuite-over-problems",
        "bsuite-training",
        "fractions",
        "data",
        "runs",
    ]
    # Six runs and four more: two of the six belong to both experiments.
    assert '<p class="headline">10 runs.</p>' in found["reading"].body
    assert found["reading"].first
    assert '<a href="page-figures/claims.csv">claims.csv</a> (the claims)' in text
    assert "<td>not run</td><td>–</td>" in found["reading"].after
    assert "so far" not in text
    assert "R-BVE, raw weights, λ .005" in found["bsuite"].after
    assert "Do Q-learning&#39;s values run away" in found["fractions"].body
    assert "In the paper: Figures &#39;Over-estimation" in found["fractions"].body
    assert found["runs"].title == "Every run (10)"
    runs = str(embedded_table(found["runs"].body, "all-runs"))
    assert "rbve train study/data/catch-0/1 --algorithm dqn" in runs
    assert "bsuite, fractions" in runs


def test_sizes_are_of_each_experiment(tmp_path, parts):
    """What one experiment varies is no setting of another."""
    more = [make_run("dqn", 0, {"normalised_return": 1.0}, rate=rate) for rate in (1e-4, 1e-3)]
    write_study(tmp_path, {**parts, "coverage": [*more, parts["bsuite"][2]]})
    found, _ = built(tmp_path)
    lines = found["reading"].after.split('<th scope="row">')[1:]
    sizes = {line.split("</th>")[0]: re.findall(r"<td>(.*?)</td>", line) for line in lines}
    assert sizes["bsuite"][2:8] == ["6 of 6", "2", "1,000", "50 updates", "128", "1"]
    assert sizes["bsuite"][8] == "100 episodes every 50 updates, the last 5 averaged"
    assert sizes["coverage"][2:8] == ["3 of 3", "1", "1,000", "50 updates", "128", "3"]
    assert sizes["minatar"][2:] == ["not run", *["–"] * 6]


def test_headings_say_what_they_are_of(tmp_path, parts):
    own = {
        name: scored("bc", (1.0, 2.0), rate=rate) for name, rate in (("boxing", 0.1), ("doom", 0.2))
    }
    write_study(tmp_path, {**parts, **own})
    found, _ = built(tmp_path)
    titles = [each.title for each in found.values()]
    titles += [chart.title for each in found.values() for chart in each.charts]
    entries = [each.short or each.title for each in found.values()]
    assert len(set(titles)) == len(titles)
    assert len(set(entries)) == len(entries)
    assert found["bsuite-training"].title == "Over training"
    assert found["boxing-training"].title == "Boxing: over training"
    assert found["doom-over-problems"].short == "Doom, over problems"
    assert found["boxing"].charts[0].title == "Boxing: normalised score by method and problem"


def test_part_of_it(tmp_path, parts):
    write_study(tmp_path, parts, missing=1)
    found, _ = built(tmp_path)
    assert "5 of 6 runs so far" in found["bsuite"].body
    assert "<td>5 of 6</td>" in found["reading"].after
    # The raw weights lack dataset 1, so they count one dataset and the others two.
    assert "n = 1 to 2 datasets" in found["bsuite"].charts[0].note


def test_environments_that_do_not_count_are_named(tmp_path, parts):
    write_study(tmp_path, parts)
    file = tmp_path / "experiments" / "bsuite.json"
    reason = "the agent of seed 1 came to 2"
    file.write_text(json.dumps({**json.loads(file.read_text()), "left_out": {"catch": reason}}))
    found, _ = built(tmp_path)
    assert f"catch is left out: {reason}." in found["bsuite"].body


def test_runs_of_no_experiment_are_not_counted_among_its_own(tmp_path, parts):
    write_study(tmp_path, parts)
    left = make_run("bc", 7, {"normalised_return": 1.0}, rate=0.5)
    rows.write(left, tmp_path / "runs" / left.job / "rows.jsonl")
    found, _ = built(tmp_path)
    assert "10 runs, and 1 of no experiment.</p>" in found["reading"].body
    assert found["runs"].title == "Every run (11)"


def test_none_of_it_evaluated_yet(tmp_path, parts):
    begun = make_run("iqn", 0, curve=[(100, "train/loss", 1.0)], settings={"samples": 8})
    write_study(tmp_path, {"bsuite": [begun, *parts["bsuite"]]}, missing=len(parts["bsuite"]))
    found, _ = built(tmp_path)
    assert "0 of 7 runs so far" in found["bsuite"].body
    assert found["bsuite"].charts == ()
    assert found["runs"].title == "Every run (1)"


def test_data_stands_beside_the_papers(tmp_path):
    runs = [
        *scored("bc", (1.0,), data={"env": "cartpole"}, source={"noise": 0.25}),
        make_run(
            "bc", 1, data={"env": "cartpole"}, source={"noise": 0.25}, facts={"transitions": 1100}
        ),
        *scored("bc", (1.0,), data={"env": "cartpole", "keep": 0.5}),
    ]
    write_study(tmp_path, {"bsuite": runs})
    section = datasets.section(gather([tmp_path], rows.find([tmp_path])))
    own, other = section.body.split("<details")
    cells = own.split('<th scope="row">')[1].replace("<td>", "").split("</td>")
    assert cells[0] == "cartpole, noise 0.25</th>2"
    # 900 and 1,100 transitions of 100 episodes; the paper has lines for .2 and .3.
    assert cells[1:7] == [
        "100 of 1,000",
        "1,000 / 1,000",
        "1,000 (900 to 1,100)",
        "649,000 / 607,000",
        "10.0 (9.00 to 11.0)",
        "649 / 607",
    ]
    assert cells[7:10] == ["0.20", "−0.60", "1.00"]
    assert "cartpole, 50%" in other
    assert "No audits" in section.after


def test_audits_are_shown(tmp_path, parts):
    write_study(tmp_path, parts)
    (tmp_path / FILE).write_text(json.dumps({"data/catch-0/0": AUDIT}))
    found, text = built(tmp_path)
    assert (
        "1 recordings, whole, as <code>rbve inspect</code> judges them: 1 look at this"
        in found["data"].after
    )
    audits = str(embedded_table(found["data"].after, "audits"))
    assert "few episodes (look)" in audits
    assert "left 25%, stay 75%" in audits
    assert "3 <b>" not in text


def made(job, spec, measured, facts=None):
    return Run(job, spec, facts or {}, [Row(0, name, value, 1) for name, value in measured.items()])


def test_answers_of_theory_by_hand():
    base = {"w": 1.0, "factor": 1.0}
    runs = [
        made("divergence/q/sgd", {**base, "method": "q", "end": "logged"},
             {"escaped": 1.0, "growth": 1.00891, "growth/closed_form": 1.0089,
              "closed_form_error": 4e-13}, {"limit": 100.0}),
        made("divergence/q/adam", {**base, "method": "q", "end": "logged"}, {"escaped": 0.0}),
        made("divergence/bve/sgd", {**base, "method": "bve", "end": "logged"}, {"escaped": 0.0}),
        made("other", {"w": 2.0, "factor": 1.0, "method": "q", "end": "logged"}, {"escaped": 1.0}),
    ]  # fmt: skip
    words = divergence.answer(runs)
    assert "Q-learning passes |Q| = 100 in 1 of 2 runs, BVE in 0 of 1." in words
    assert "grows by 1.0089 per update" in words
    families = [
        made("a", {}, {"mdps": 10.0, "violations": 0.0}, {"family": "chain"}),
        made("b", {}, {"mdps": 20.0, "violations": 0.0}, {"family": "grid"}),
        made("c", {}, {"mdps": 40.0, "violations": 3.0}, {"family": "walls"}),
    ]
    assert "all 30 processes of 2 families: chain; grid." in improvement.answer(families)
    assert "in 1 families: walls 3 of 40." in improvement.answer(families)


def test_theory_is_read_from_its_rows(tmp_path):
    from rbve.paper.theory import gridworld

    runs = gridworld.run("quick")
    for run in runs:
        rows.write(run, tmp_path / "theory" / "gridworld" / "rows" / f"{run.job}.jsonl")
    (section,) = theory.sections(gather([tmp_path], []))
    assert section.id == "theory-gridworld"
    page.check_names([section])
    names = [each.name for each in section.charts]
    assert names == ["theory-gridworld-policies", "theory-gridworld-layouts"]
    assert "how far is one greedy step" in section.body
    start = {run.spec["policy"]: run.last("start") for run in runs if "policy" in run.spec}
    assert f"optimal {start['optimal']:.2f}" in section.body
