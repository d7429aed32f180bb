"""Claims in the report: judged by the runs of their experiment, and of no other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.studies import longer, make_run, steady

from rbve.paper.claims import Judged, all_claims, judge_all
from rbve.paper.report import write_report
from rbve.rows import Run, find, write

TEXT = "R-BVE outperforms all baselines on cartpole"


def run(job: str, algorithm: str, seed: int, score: float) -> Run:
    final = {"normalised_return": score, "return": score}
    (made,) = steady([make_run(algorithm, seed, final, data={"env": "cartpole"})])
    return made._replace(job=job)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    jobs, more = [], []
    for algorithm, level in (("rbve", 90), ("dqn", 10), ("cql", 20), ("rem", 30), ("bcq", 40)):
        for seed in range(4):
            job = f"{algorithm}-{seed}"
            made = run(job, algorithm, seed, level + seed)
            write(made, tmp_path / "runs" / job / "rows.jsonl")
            jobs.append(job)
            for each in longer([made]):
                write(each, tmp_path / "runs" / each.job / "rows.jsonl")
                more.append(each.job)
    # Of another experiment: a setting of R-BVE that would spoil the claim.
    for seed in range(4):
        write(run(f"x-{seed}", "rbve", seed, -500), tmp_path / "runs" / f"x-{seed}" / "rows.jsonl")
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "bsuite.json").write_text(
        json.dumps({"jobs": jobs, "longer": more})
    )
    return tmp_path


def judgement(study: Path, text: str) -> Judged:
    found = judge_all([study], find([study]))
    return next(each for each in found if each.claim.text == text)


def test_a_claim_is_judged_by_its_experiment(study: Path) -> None:
    judged = judgement(study, TEXT)
    assert judged.judgement.verdict == "reproduced"
    assert judged.judgement.effects["DDQN"].value == 80
    assert judged.judgement.effects["BCQ"].value == 50
    assert "against DDQN +80 [+80, +80] (n=4)" in judged.judgement.measured
    assert judgement(study, "A larger λ widens the action gap").judgement.verdict == "not run"


def test_the_page_opens_with_the_claims(study: Path, tmp_path: Path) -> None:
    page = write_report([study], tmp_path / "page.html").read_text()
    assert page.index('id="claims"') < page.index('id="runs"')
    # Of those judged by the paper's own tables and text, one is partly so and eight are not.
    # R-BVE leads on cartpole, so on all there is of bsuite, and has no other λ than .005.
    left = len(all_claims()) - 12
    assert (
        f"{len(all_claims())} claims: 3 reproduced, 1 partly, 8 not reproduced, 0 under-trained, "
        f"{left} not run" in page
    )
    again = [claim.again.where for claim in all_claims() if claim.again]
    assert ", on MinAtar: " not in page  # nothing was judged there
    # Those of the main claims stand in cards, the others in the table; sizes tell three again.
    sizes = page.index("Table: sizes")
    assert page[:sizes].count(' class="verdict') == len(all_claims()) + len(again)
    main = [claim for claim in all_claims() if claim.figure]
    assert len(main) == 10
    assert page[:sizes].count('<span class="verdict') == sum(1 + bool(c.again) for c in main)
    assert page[sizes:].count('<td class="verdict reproduced"') == 3
    lines = (tmp_path / "page-figures" / "claims.csv").read_text().splitlines()
    assert lines[0].startswith("verdict,claim,")
    assert len(lines) == len(all_claims()) + 1


def test_without_a_study_there_are_no_claims(study: Path, tmp_path: Path) -> None:
    page = write_report([study / "runs"], tmp_path / "other.html").read_text()
    assert 'id="claims"' not in page


def test_a_damaged_list_of_jobs_is_named(study: Path) -> None:
    (study / "experiments" / "bsuite.json").write_text('{"jobs": 3}')
    with pytest.raises(ValueError, match=r"bsuite\.json: lists no jobs"):
        judge_all([study], [])
