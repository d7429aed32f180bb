"""Off-policy estimates against exact values: ICU-Sepsis, logs of the clinicians' policy.

    python benchmarks/ope.py --episodes 1000 10000 --policies 200 --out ope.json

Some 200 policies of many kinds are judged by one log each of 1,000 to 100,000 episodes. Of every
estimator: mean absolute error, rank correlation with the exact values, regret of the policy it
puts first (values scaled to [0, 1] over the policies, as DOPE does), how often its 90% interval
holds the exact value, and the same over the policies whose gates pass. Fits are kept in --fits, so
that the command goes on after an interruption.
"""

import argparse
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from ranks import rank_correlation, regret

from rbve import backend
from rbve.envs import icu_sepsis
from rbve.evaluation import exact
from rbve.files import write_json
from rbve.off_policy.behaviour import Source, behaviour_of
from rbve.off_policy.case import OpeCase
from rbve.off_policy.fits import FitPlan, Fits, at_once, fit_values
from rbve.off_policy.judge import OpePlan, OpeResult, judge
from rbve.off_policy.log import DecisionLog
from rbve.off_policy.rule import ranked_judgements


def policies(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    """(S, A) tables of many kinds, from the clinicians' own to ones far from them."""
    rng = np.random.default_rng([seed, 30])
    known = icu_sepsis.tables()
    mdp, mu = known.mdp, known.admissible_clinicians
    legal = np.ones_like(mu, bool) if mdp.legal is None else mdp.legal.copy()
    legal[mdp.terminal] = True
    uniform = legal / legal.sum(axis=1, keepdims=True)
    best, worst = (exact.optimal_policy(mdp, worst=each) for each in (False, True))
    q_mu = exact.action_values(mdp, exact.state_values(mdp, mu))
    q_best = exact.action_values(mdp, exact.state_values(mdp, best))

    def softmax(q: np.ndarray, temperature: float) -> np.ndarray:
        scaled = np.where(legal, q, -np.inf) / temperature
        shifted = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        return shifted / shifted.sum(axis=1, keepdims=True)

    def noisy(q: np.ndarray, scale: float) -> np.ndarray:
        return q + scale * rng.normal(size=q.shape)

    made: dict[str, np.ndarray] = {"clinicians": mu, "random": uniform}
    made |= {"optimal": best, "worst": worst}
    while len(made) < count:
        share, temperature = rng.uniform(0, 1), 10 ** rng.uniform(-3, -0.5)
        scale = 10 ** rng.uniform(-2.5, -0.5)
        kinds = {
            "towards optimal": (1 - share) * mu + share * best,
            "towards worst": (1 - share) * mu + share * worst,
            "towards random": (1 - share) * mu + share * uniform,
            "one step, noisy": softmax(noisy(q_mu, scale), 1e-6),
            "softmax of Q of the behaviour": softmax(noisy(q_mu, scale / 3), temperature),
            "softmax of Q*": softmax(noisy(q_best, scale / 3), temperature),
            "mixed with a noisy greedy one": (1 - share) * mu
            + share * softmax(noisy(q_mu, scale), 1e-6),
            "sharpened": np.where(legal, mu, 0.0) ** (1 + 3 * share),
            "random deterministic, mixed": (1 - share) * mu
            + share * softmax(rng.normal(size=mu.shape), 1e-6),
        }
        for name, table in kinds.items():
            if len(made) < count:
                total = table.sum(axis=1, keepdims=True)
                made[f"{name} {len(made)}"] = np.where(total > 0, table / total, uniform)
    return made


def measures(result: OpeResult, truth: np.ndarray, td_error: np.ndarray) -> dict[str, Any]:
    """Of every estimator."""
    found = {}
    for place, first in enumerate(result.judgements[0].estimates):
        every = [each.estimates[place] for each in result.judgements]
        value = np.array([each.value for each in every])
        passed = np.array([each.passed for each in every])
        held = np.array(
            [each.interval is not None and each.interval[0] <= v <= each.interval[1]
             for each, v in zip(every, truth, strict=True)]
        )  # fmt: skip
        usable = np.where(np.isfinite(value), value, -np.inf)
        found[first.label] = {
            "mean_error": float(np.nanmean(np.abs(value - truth))),
            "rank_correlation": rank_correlation(usable, truth),
            "regret_at_1": regret(usable, truth),
            "coverage": None if first.interval is None else float(held.mean()),
            "passed": float(passed.mean()),
            "coverage_passed": None
            if first.interval is None or not passed.any()
            else float(held[passed].mean()),
            "mean_error_passed": float(np.abs(value - truth)[passed].mean())
            if passed.any()
            else None,
        }
    places = {each.policy: -k for k, each in enumerate(ranked_judgements(result))}
    guesses = np.array([places[each.policy] for each in result.judgements], float)
    for name, ranked in {"rule": guesses, "TD error": -td_error}.items():
        found[name] = {
            "regret_at_1": regret(ranked, truth),
            "rank_correlation": rank_correlation(ranked, truth),
        }
    any_passed = [each.best is not None for each in result.judgements]
    found["rule"]["passed"] = float(np.mean(any_passed))
    found["at random"] = {
        "regret_at_1": regret(np.zeros(len(truth)), truth),
        "rank_correlation": 0.0,
    }
    return found


def td_errors(log: DecisionLog, tables: Iterable[np.ndarray], fits: Iterable[Fits]) -> np.ndarray:
    """Mean squared Bellman residual of every fit."""
    errors = []
    for table, fit in zip(tables, fits, strict=False):
        case = OpeCase(log, table[log.rows], np.ones(len(log.action)), fit.q, fit.v_final)
        after = np.roll(case.v, -1)
        after[log.offsets[1:] - 1] = 0.0
        residual = case.reward + log.gamma * after - case.q_taken
        errors.append(float((residual**2).mean()))
    return np.array(errors)


def judged(
    log: DecisionLog,
    state: np.ndarray,
    tables: dict[str, np.ndarray],
    plan: OpePlan,
    sources: Sequence[Source],
) -> dict[Source, tuple[OpeResult, np.ndarray]]:
    """By source of propensities, every policy's judgement and TD error."""
    behaviours = {source: behaviour_of(log, plan.fit, source) for source in sources}
    found: dict[Source, tuple[OpeResult, np.ndarray]] = {}
    for names in at_once(log, list(tables)):
        on_rows = {name: tables[name][state] for name in names}
        fits = fit_values(log, list(on_rows.values()), plan.fit)
        errors = td_errors(log, on_rows.values(), fits)
        for source, behaviour in behaviours.items():
            own = replace(plan, propensities=source)
            result = judge(log, on_rows, dict(zip(names, fits, strict=True)), behaviour, own)
            if source in found:
                before, earlier = found[source]
                both = (*before.judgements, *result.judgements)
                found[source] = replace(before, judgements=both), np.append(earlier, errors)
            else:
                found[source] = result, errors
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--policies", type=int, default=200)
    parser.add_argument("--fit-steps", type=int, default=20_000)
    parser.add_argument("--propensities", nargs="+", default=["logged", "estimated"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fits", type=Path, default=Path("ope-fits"))
    parser.add_argument("--out", type=Path, default=Path("ope.json"))
    asked = parser.parse_args()
    backend.prepare()
    known = icu_sepsis.tables()
    tables = policies(asked.policies, asked.seed)
    truth = np.array([exact.value(known.mdp, table) for table in tables.values()])
    rows = []
    for episodes in asked.episodes:
        began = time.process_time()
        played = exact.sample_log(
            known.mdp, known.admissible_clinicians, episodes, [asked.seed, episodes],
            known.features.astype(np.float32), icu_sepsis.ACTIONS,
        )  # fmt: skip
        log = DecisionLog.of(played.dataset, 1.0)
        plan = OpePlan(fit=FitPlan(asked.fit_steps, seed=asked.seed, out=asked.fits))
        by_source = judged(log, played.state, tables, plan, asked.propensities)
        for source, (result, errors) in by_source.items():
            found = measures(result, truth, errors)
            rows.append({"episodes": episodes, "propensities": source, "estimators": found})
            print(f"\n{episodes:,} episodes, propensities {source}, {len(tables)} policies")
            for name, figures in found.items():
                cells = "  ".join(
                    f"{key} {value:.3f}" for key, value in figures.items() if value is not None
                )
                print(f"  {name:10s} {cells}")
            failed: dict[str, int] = {}
            for judgement in result.judgements:
                for gate in judgement.gates:
                    failed[gate.name] = failed.get(gate.name, 0) + (not gate.passed)
            print(f"  gates that failed: {json.dumps(failed)}")
            print(f"  {time.process_time() - began:.0f} CPU seconds")
            write_json(asked.out, {"policies": len(tables), "rows": rows})


if __name__ == "__main__":
    main()
