"""Claims of theory and of the paper's tables: verdicts on runs made up to pass and to fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rbve import rows
from rbve.paper.claims import judge_all, lab, tables, theory
from rbve.rows import Row, Run


def run(values: dict[str, float], **spec: Any) -> Run:
    return Run("x", spec, {}, [Row(0, name, value, 1) for name, value in values.items()])


def case(
    method: str, escaped: float, end: str = "logged", batch: str = "all", w: float = 1.0
) -> Run:
    spec = {"method": method, "end": end, "batch": batch, "w": w, "factor": 1.0}
    return run({"escaped": escaped}, **spec)


def test_divergence() -> None:
    out, out_by_one = case("q", 1), case("q", 1, batch="one")
    assert theory.escapes([out, out_by_one]).verdict == "reproduced"
    assert theory.escapes([out]).verdict == "not run"
    assert theory.escapes([out, case("q", 0, batch="one")]).verdict == "partly"
    assert theory.escapes([case("q", 0), case("q", 0, batch="one")]).verdict == "not reproduced"
    # Not of the remark's premise, w > 0.
    assert theory.escapes([out, out_by_one, case("q", 0, w=-1.0)]).verdict == "reproduced"
    loose = case("bve", 1, "bootstrap")
    judged = theory.stays([case("bve", 0), case("bve", 0, batch="one"), loose])
    assert judged.verdict == "reproduced"
    assert "bounded in 2 of 2 set-ups" in judged.measured
    assert "escapes in 1 of 1" in judged.measured
    assert theory.stays([case("bve", 0), case("bve", 1)]).verdict == "partly"
    assert theory.stays([case("bve", 1), loose]).verdict == "not reproduced"
    assert theory.stays([loose]).verdict == "not run"


def test_extrapolation_needs_errors_above_0_and_above_the_mean_error() -> None:
    def fit(chosen: list[float], unchosen: float) -> Run:
        values = {f"chosen_error/{k}": value for k, value in enumerate(chosen)}
        values |= {f"unchosen_error/{k}": unchosen for k in range(len(chosen))}
        # 'exceeds/clearly/0' begins like 'exceeds/' and must not be counted with it.
        values |= {"exceeds/0": 1.0, "exceeds/1": 0.0, "exceeds/clearly/0": 0.0}
        return run(values, approximator="cubic", observed=2)

    good = fit([1.0, 1.2, 0.8, 1.1], 0.1)
    judged = theory.extrapolates([good])
    assert judged.verdict == "reproduced"
    assert "above every true value in 50%" in judged.measured
    assert theory.extrapolates([good, fit([1.0, 1.2], 2.0)]).verdict == "partly"
    assert theory.extrapolates([fit([-1.0, 1.0], -2.0)]).verdict == "not reproduced"


def test_one_violation_refutes_a_lemma() -> None:
    judge = theory.without_violation("chain")
    clean = run({"violations": 0, "mdps": 9}, family="chain")
    broken = run({"violations": 1, "mdps": 9}, family="chain")
    other = run({"violations": 5, "mdps": 9}, family="chain/biased")
    assert judge([clean, other]).verdict == "reproduced"
    assert judge([clean, broken]).verdict == "not reproduced"
    assert judge([other]).verdict == "not run"


def test_grid_world() -> None:
    def world(random: float, one_step: float, optimal: float) -> list[Run]:
        values = {"random": random, "one step": one_step, "optimal": optimal}
        return [run({"value/0/0": value}, policy=name) for name, value in values.items()]

    assert theory.one_step(world(-9, 42, 42.3)).verdict == "reproduced"
    assert theory.one_step(world(-9, 42.3, 42.3)).verdict == "partly"  # optimal: no gap left
    assert theory.one_step(world(-9, 30, 42.3)).verdict == "partly"
    assert theory.one_step(world(9, -3, 42.3)).verdict == "not reproduced"
    layouts = [
        run({"close": close}, trap=trap, layouts=500) for trap, close in ((-1, 0.9), (-9, 0.1))
    ]
    assert "traps of -1 90% of 1" in theory.not_rare(layouts).measured
    assert theory.not_rare(layouts).verdict == "partly"
    assert theory.not_rare(layouts[:1]).verdict == "reproduced"


def test_statements_the_tables_contradict() -> None:
    verdicts = {claim.text: claim.judge([]) for claim in (*tables.CLAIMS, *lab.CLAIMS)}
    levels = verdicts["BVE outperforms other offline RL on all DeepMind Lab levels"]
    assert levels.verdict == "not reproduced"
    assert "many: BVE 23.7 < CQL 23.8" in levels.measured
    assert "few: BVE 7.6 < R2D2 8.5" in levels.measured
    agreed = [claim.text for claim in lab.CLAIMS if verdicts[claim.text].verdict == "not run"]
    assert len(agreed) == len(lab.CLAIMS) - 2
    assert "R-BVE performs best on all DeepMind Lab levels" in agreed
    # The four levels and the four lines of an expert: BC wins two of the latter.
    competitive = verdicts["BVE is still very competitive on DeepMind Lab"]
    assert competitive.verdict == "not reproduced"
    assert "mean of 8 lines: BVE 9.98 < BC 12.8" in competitive.measured
    assert "BVE 9.98 < CQL 12" in competitive.measured
    assert lab.not_poor("R-BVE") == []
    assert (
        "6 levels × 5 seeds make 30" in verdicts["25 agents were recorded per bsuite game"].measured
    )
    shares = verdicts["10% of the recorded bsuite data is used"]
    assert shares.verdict == "partly"
    assert "for cartpole: cartpole 1000 of 1000, catch 200 of 2000" in shares.measured
    own = {text: found.measured for text, found in verdicts.items()}
    assert "40 million each" in own["Training runs on seekavoid_arena_01 took 50 million steps"]
    learns = own["Online DQN on bsuite learns once 20,000 steps are recorded"]
    assert "2000 episodes of 9 steps, 18,000 in all" in learns
    significant = verdicts["R-BVE outperforms the others significantly over 37 Atari games"]
    assert significant.verdict == "not run"
    assert "R-BVE 109.1, R-DQN 108.2" in significant.measured


def test_theory_is_judged_by_the_rows_of_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "theory" / "improvement" / "rows"
    rows.write(run({"violations": 0, "mdps": 9}, family="chain"), folder / "a" / "chain.jsonl")
    found = {each.claim.text: each.judgement.verdict for each in judge_all([tmp_path], [])}
    assert found["Chain under uniform behaviour: one greedy step is optimal"] == "reproduced"
    assert found["The same holds in two dimensions"] == "not run"
    assert judge_all([tmp_path / "theory"], []) == []
