"""Does the rule put good policies first? Candidates and checkpoints of `rbve select`, played.

    python benchmarks/ranking.py --problem cartpole-10 catch-10 --seeds 3 --work ranking

Each problem is a log that an online DQN recorded. rbve.select trains its default candidates on 70%
of the episodes and ranks them, five stages of each, by the others; then each is played for its true
return. Beside the rule stand what people choose by without it: TD error, the values a policy claims
where held-out episodes begin, fitted Q evaluation alone, supervised Bellman validation, and chance.
TD error, claimed values and Bellman validation exist only for policies with values, so that every
ranking is given over those policies too. All that takes long is kept in --work and resumed.
"""

import argparse
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ranks import rank_correlation, regret

import rbve
from rbve import backend
from rbve.audit import audit
from rbve.files import write_json
from rbve.off_policy.bellman import Candidate, bellman_errors, empirical_error
from rbve.off_policy.fits import FitPlan
from rbve.off_policy.log import DecisionLog
from rbve.off_policy.options import SelectOptions
from rbve.off_policy.select import Selection, select
from rbve.policy import Policy


class Problem(NamedTuple):
    env: str
    keep: float  # share of the recorded episodes
    steps: int  # updates of each candidate
    fit_steps: int
    recorded: int | None = None  # steps of the online agent; None = the environment's episodes
    epsilon: float = 0.0  # with which policies are judged and played


PROBLEMS = {
    "catch-10": Problem("catch", 0.1, 30_000, 10_000),
    "cartpole-10": Problem("cartpole", 0.1, 30_000, 10_000),
    "cartpole-1": Problem("cartpole", 0.01, 30_000, 10_000),
    "breakout": Problem("minatar:breakout", 1.0, 50_000, 10_000, 400_000),
}


def log_of(problem: Problem, seed: int, work: Path) -> Path:
    path = work / f"{problem.env.replace(':', '-')}-{problem.keep:g}-{seed}"
    if not (path / "manifest.json").exists():
        rbve.record(problem.env, path, seed=seed, keep=problem.keep, steps=problem.recorded)
    return path


def true_returns(
    files: Mapping[str, Path], problem: Problem, episodes: int, kept: Path
) -> dict[str, float]:
    """By playing; what was played before is read from the file `kept`, by the policy's bytes."""
    known = json.loads(kept.read_text()) if kept.exists() else {}
    returns = {}
    for name, file in files.items():
        mark = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
        key = f"{problem.env} {mark} {episodes} {problem.epsilon:g}"
        if key not in known:
            played = rbve.evaluate(file, problem.env, episodes, epsilon=problem.epsilon)
            known[key] = played["return"]
            write_json(kept, known)
        returns[name] = known[key]
    return returns


def claimed(policy: Policy, log: DecisionLog) -> float:
    """The value a policy gives itself where episodes begin."""
    own = Candidate.of(policy, log)
    return float((own.policy * own.q).sum(axis=1)[log.dataset.offsets[:-1]].mean())


def rankings(chosen: Selection, fit: FitPlan | None) -> dict[str, dict[str, float]]:
    """By ranking, a number per policy, of which more is better; some policies have none. Without a
    plan of fits there is no Bellman validation."""
    log = chosen.result.log
    valued = {name: each for name, each in chosen.policies.items() if each.algorithm.values}
    judged = {each.policy: each for each in chosen.result.judgements}
    errors = {} if fit is None else bellman_errors(log, valued, fit)
    found = {
        "the rule": {name: -place for place, name in enumerate(chosen.recommendation.ranking)},
        "FQE": {
            name: next(e.value for e in each.estimates if e.name == "fqe")
            for name, each in judged.items()
        },
        "Bellman validation": {name: -error for name, error in errors.items()},
        "TD error": {
            name: -empirical_error(log, Candidate.of(each, log)) for name, each in valued.items()
        },
        "claimed value": {name: claimed(each, log) for name, each in valued.items()},
    }
    return {name: ranking for name, ranking in found.items() if ranking}


def measured(ranking: Mapping[str, float], truth: Mapping[str, float]) -> dict[str, float]:
    names = [name for name in truth if name in ranking]
    by, true = (np.array([each[name] for name in names]) for each in (ranking, truth))
    by = np.nan_to_num(by, nan=-np.inf)
    return {"rank_correlation": rank_correlation(by, true), "regret_at_1": regret(by, true)}


def figures(chosen: Selection, truth: dict[str, float], fit: FitPlan | None) -> dict[str, Any]:
    every = rankings(chosen, fit)
    with_values = {name: truth[name] for name in every["TD error"]}
    every["at random"] = dict.fromkeys(truth, 0.0)
    return {
        name: {
            "among_all": measured(ranking, truth) if len(ranking) == len(truth) else None,
            "among_those_with_values": measured(ranking, with_values),
        }
        for name, ranking in every.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--seeds", type=int, default=3, help="logs of each problem")
    parser.add_argument("--first", type=int, default=0, help="seed of the first log")
    parser.add_argument("--checkpoints", type=int, default=5)
    parser.add_argument("--episodes", type=int, default=100, help="played for each true return")
    parser.add_argument(
        "--bellman", action=argparse.BooleanOptionalAction, default=True,
        help="supervised Bellman validation, which takes most of the time",
    )  # fmt: skip
    parser.add_argument("--work", type=Path, default=Path("ranking"))
    parser.add_argument("--out", type=Path, default=Path("ranking.json"))
    asked = parser.parse_args()
    backend.prepare()
    rows = []
    for name in asked.problem:
        problem = PROBLEMS[name]
        for seed in range(asked.first, asked.first + asked.seeds):
            path = log_of(problem, seed, asked.work)
            options = SelectOptions(
                steps=problem.steps, checkpoints=asked.checkpoints, fit_steps=problem.fit_steps,
                epsilon=problem.epsilon, seed=seed,
            )  # fmt: skip
            dataset = rbve.load(path)
            verdict = audit(dataset).verdict
            chosen = select(path, dataset, options, asked.work / f"{path.name}-selected")
            kept = asked.work / "returns.json"
            truth = true_returns(chosen.files, problem, asked.episodes, kept)
            fit = FitPlan(problem.fit_steps, seed=seed, out=asked.work / "fits")
            rows.append(
                {
                    "problem": name, "seed": seed, "policies": len(truth), "audit": verdict,
                    "judged_by": chosen.result.episodes,
                    "decision": chosen.recommendation.decision,
                    "behaviour": float(dataset.episode_return.mean()),
                    "best": max(truth.values()), "worst": min(truth.values()),
                    "rankings": figures(chosen, truth, fit if asked.bellman else None),
                }
            )  # fmt: skip
            write_json(asked.out, {"rows": rows})
            show(rows[-1])


def show(row: dict[str, Any]) -> None:
    print(
        f"\n{row['problem']} {row['seed']}: {row['policies']} policies judged by "
        f"{row['judged_by']} episodes; returns {row['worst']:.3g} to {row['best']:.3g}; "
        f"{row['decision']}"
    )
    for name, cells in row["rankings"].items():
        texts = [
            "–" if each is None
            else f"correlation {each['rank_correlation']:+.2f}, regret {each['regret_at_1']:.2f}"
            for each in cells.values()
        ]  # fmt: skip
        print(f"  {name:20s} all: {texts[0]:38s} with values: {texts[1]}", flush=True)


if __name__ == "__main__":
    main()
