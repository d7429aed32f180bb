"""The published tables of obp (Saito et al., arXiv:2008.07146), remade from their definitions.

    python benchmarks/bandits.py --runs 30 --out bandits.json

Two one-step logs of which the true value is known, new ones in every run, and the relative error
|V̂ − V| / V of every estimator that suits them, averaged over runs, beside the figures of obp's
README files (st-tech/zr-obp, examples/multiclass and examples/synthetic).

`synthetic`: x ~ N(0, I₅), 30 actions, clicks with probability

    q(x, a) = σ(z),    z = θ·x̃ + η·φ̃(a) + x̃ᵀ M φ̃(a), standardised over all rows and actions

with x̃ = (1, x), φ̃(a) = (1, one-hot a), entries of θ, η and M uniform in [−1, 1]. The behaviour is
softmax(−3 q): it prefers what is worse. The policy is softmax(p), p being the probabilities of a
multinomial regression that predicts the logged action from x in another log of the same size,
rows weighted by reward / propensity. 10,000 rows; q̂ is a logistic regression on (x, one-hot a),
3-fold cross-fitted. Needs no scikit-learn: both regressions are written out below.

`digits`: scikit-learn's images of digits, 30% to train classifiers, 70% as the log. An action is a
class, the reward 1 for the right one. The behaviour takes a logistic regression's class with .4 and
else any; the policy a random forest's with .9 and else any; q̂ is gradient boosting, 3-fold.

A spread is the standard deviation over runs. How far ours and theirs lie apart is told in spreads
of theirs, and in standard errors of the difference of the two means, which is stricter.

obp tries thresholds of 10 and more for Switch-DR, which no weight of `synthetic` reaches: its
figure there is DR's. Ours begin at 1. Both are shown.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rbve.data.dataset import NO_ACTION, Dataset
from rbve.data.episode import action_names
from rbve.files import write_json
from rbve.off_policy import estimators
from rbve.off_policy.case import OpeCase
from rbve.off_policy.estimators import _slope
from rbve.off_policy.log import DecisionLog

Published = dict[str, tuple[float, float]]  # mean and deviation over runs
THEIRS: dict[str, tuple[int, Published]] = {  # runs, figures
    "synthetic": (
        20,
        {
            "DM": (0.074390, 0.024525),
            "IPW": (0.009481, 0.006899),
            "SNIPW": (0.006665, 0.004541),
            "DR": (0.006175, 0.004245),
            "SNDR": (0.006118, 0.003997),
            "Switch-DR": (0.006175, 0.004245),
            "DRos": (0.021951, 0.013337),
        },
    ),
    "digits": (
        30,
        {
            "DM": (0.436541, 0.017629),
            "IPW": (0.030288, 0.024506),
            "SNIPW": (0.022764, 0.017917),
            "DR": (0.016156, 0.012679),
            "SNDR": (0.022082, 0.016865),
            "Switch-DR": (0.034657, 0.018575),
            "DRos": (0.015868, 0.012537),
        },
    ),
}
_GRID = (10.0, 50.0, 100.0, 500.0, 1_000.0, 5_000.0, 10_000.0, np.inf)  # of thresholds in obp
_PENALTY = 100.0  # C of scikit-learn: weight of the likelihood against |w|² / 2
_FOLDS = 3


class Bandit(NamedTuple):
    """A log of one-step episodes, a policy, and the truth about it."""

    context: np.ndarray  # (N, D)
    action: np.ndarray  # (N,)
    reward: np.ndarray  # (N,)
    propensity: np.ndarray  # (N,) of the logged action
    policy: np.ndarray  # (N, A)
    q: np.ndarray  # (N, A) cross-fitted
    value: float  # of the policy, on these contexts


def case_of(bandit: Bandit) -> OpeCase:
    """As the estimators read it."""
    count, actions = bandit.policy.shape
    decided = np.arange(2 * count) % 2 == 0  # each decision is followed by a final row
    action = np.full(2 * count, NO_ACTION, np.int32)
    reward, propensity = np.zeros(2 * count, np.float32), np.ones(2 * count, np.float32)
    action[decided], reward[decided] = bandit.action, bandit.reward
    propensity[decided] = bandit.propensity
    dataset = Dataset(
        obs=np.repeat(bandit.context.astype(np.float32), 2, axis=0),
        action=action,
        executed=action.copy(),
        reward=reward,
        propensity=propensity,
        offsets=2 * np.arange(count + 1),
        terminated=np.ones(count, bool),
        complete=np.ones(count, bool),
        episode_return=bandit.reward.astype(np.float64),
        actions=action_names(actions),
    )
    return OpeCase(DecisionLog.of(dataset, 1.0), bandit.policy, bandit.propensity, bandit.q)


def estimates(case: OpeCase) -> dict[str, float]:
    """By every estimator of one-step logs, under the name that the literature on bandits has."""
    values = {}
    for name in estimators.suited(case.log):
        module = estimators.load(name)
        label = module.ESTIMATOR.one_step_label or module.ESTIMATOR.label
        values[label] = float(module.estimate(case).mean())
    return values


def with_their_grid(case: OpeCase) -> dict[str, float]:
    """Switch-DR and DRos by our SLOPE, among the thresholds that obp tries."""
    weight, residual = case.weight, case.reward - case.q_taken

    def switch(threshold: float) -> np.ndarray:
        return case.v + np.where(weight <= threshold, weight, 0.0) * residual

    def shrink(lam: float) -> np.ndarray:
        shrunk = lam * weight / (weight**2 + lam) if np.isfinite(lam) else weight
        return case.v + shrunk * residual

    return {
        f"{label}, obp's grid": float(_slope.choose(_GRID, estimate).mean())
        for label, estimate in (("Switch-DR", switch), ("DRos", shrink))
    }


def softmax(scores: np.ndarray) -> np.ndarray:
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def sigmoid(scores: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-scores))


def draw(probabilities: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(N,) one index from each row."""
    ends = np.cumsum(probabilities, axis=1)
    drawn = (ends < rng.random((len(ends), 1)) * ends[:, -1:]).sum(axis=1)
    return np.minimum(drawn, probabilities.shape[1] - 1)


def with_action(context: np.ndarray, action: np.ndarray, actions: int) -> np.ndarray:
    """(N, D + A) what a model of rewards reads."""
    return np.concatenate([context, np.eye(actions)[action]], axis=1)


def logistic_regression(
    inputs: np.ndarray, label: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """Probability of label 1, by Newton steps: min |w|²/2 + C Σ log loss, the bias free."""
    columns = np.concatenate([inputs, np.ones((len(inputs), 1))], axis=1)
    penalty = np.append(np.ones(inputs.shape[1]), 1e-9) / _PENALTY
    weight = np.zeros(columns.shape[1])
    for _ in range(100):
        chance = sigmoid(columns @ weight)
        slope = columns.T @ (chance - label) + penalty * weight
        curvature = (columns * (chance * (1 - chance))[:, None]).T @ columns
        step = np.linalg.solve(curvature + np.diag(penalty), slope)
        weight -= step
        if np.abs(step).max() < 1e-8:
            break
    return lambda rows: sigmoid(rows @ weight[:-1] + weight[-1])


def multinomial_regression(
    inputs: np.ndarray, label: np.ndarray, rows: np.ndarray, classes: int
) -> Callable[[np.ndarray], np.ndarray]:
    """Probabilities of classes, by L-BFGS, `rows` the weights of the rows."""
    from scipy.optimize import minimize

    columns = np.concatenate([inputs, np.ones((len(inputs), 1))], axis=1)
    target, shape = np.eye(classes)[label], (columns.shape[1], classes)
    penalised = np.ones(shape)
    penalised[-1] = 0.0
    scale = _PENALTY * rows.sum()

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weight = flat.reshape(shape)
        chance = softmax(columns @ weight)
        likely = np.log(np.maximum(chance[np.arange(len(label)), label], 1e-300))
        slope = _PENALTY * columns.T @ (rows[:, None] * (chance - target)) + penalised * weight
        loss = -_PENALTY * (rows * likely).sum() + (penalised * weight**2).sum() / 2
        return float(loss / scale), slope.ravel() / scale

    start = np.zeros(shape[0] * shape[1])
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 2000})
    weight = found.x.reshape(shape)
    return lambda rows: softmax(rows @ weight[:-1] + weight[-1])


def cross_fit(
    context: np.ndarray,
    action: np.ndarray,
    reward: np.ndarray,
    actions: int,
    rng: np.random.Generator,
    fit: Callable[[np.ndarray, np.ndarray], Callable[[np.ndarray], np.ndarray]],
) -> np.ndarray:
    """(N, A) q̂ of every action, each row by a model fitted to the other folds."""
    fold = rng.permutation(len(action)) % _FOLDS
    q = np.empty((len(action), actions))
    for held in range(_FOLDS):
        train, test = fold != held, fold == held
        predict = fit(with_action(context[train], action[train], actions), reward[train])
        for each in range(actions):
            taken = np.full(int(test.sum()), each)
            q[test, each] = predict(with_action(context[test], taken, actions))
    return q


def synthetic(seed: int, rows: int = 10_000, actions: int = 30, dims: int = 5) -> Bandit:
    """As the docstring of this file defines it."""
    rng = np.random.default_rng([seed, 40])
    theta, eta = rng.uniform(-1, 1, dims + 1), rng.uniform(-1, 1, actions + 1)
    both = rng.uniform(-1, 1, (dims + 1, actions + 1))
    features = np.concatenate([np.ones((actions, 1)), np.eye(actions)], axis=1)  # φ̃

    def log() -> tuple[np.ndarray, ...]:
        context = rng.normal(size=(rows, dims))
        x = np.concatenate([np.ones((rows, 1)), context], axis=1)
        score = (x @ theta)[:, None] + features @ eta + x @ both @ features.T
        mean = sigmoid((score - score.mean()) / score.std())
        behaviour = softmax(-3 * mean)
        action = draw(behaviour, rng)
        here = np.arange(rows)
        reward = (rng.random(rows) < mean[here, action]).astype(np.float64)
        return context, mean, action, reward, behaviour[here, action]

    context, _, action, reward, propensity = log()
    learned = multinomial_regression(context, action, reward / propensity, actions)
    context, mean, action, reward, propensity = log()
    policy = softmax(learned(context))
    q = cross_fit(context, action, reward, actions, rng, logistic_regression)
    value = float((policy * mean).sum(axis=1).mean())
    return Bandit(context, action, reward, propensity, policy, q, value)


def digits(seed: int) -> Bandit:
    """As the docstring of this file defines it."""
    try:
        from sklearn.datasets import load_digits
        from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise SystemExit(
            "digits needs scikit-learn: pip install scikit-learn, or --only synthetic"
        ) from None
    rng = np.random.default_rng([seed, 41])
    images, label = load_digits(return_X_y=True)
    order = rng.permutation(len(label))
    train, rest = np.split(order, [len(label) - int(np.ceil(0.7 * len(label)))])
    context, right, actions = images[rest], label[rest], 10

    def mixed(classifier: Any, share: float) -> np.ndarray:
        chosen = classifier.fit(images[train], label[train]).predict(context)
        return share * np.eye(actions)[chosen] + (1 - share) / actions

    trees = {"n_estimators": 30, "max_depth": 5, "min_samples_leaf": 10, "random_state": 12345}
    behaviour = mixed(LogisticRegression(C=_PENALTY, max_iter=10_000), 0.4)
    policy = mixed(RandomForestClassifier(**trees), 0.9)
    action = draw(behaviour, rng)
    reward = (action == right).astype(np.float64)

    def boosted(inputs: np.ndarray, label: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        model = GradientBoostingClassifier(learning_rate=0.01, **trees).fit(inputs, label)
        return lambda rows: model.predict_proba(rows)[:, 1]

    here = np.arange(len(action))
    q = cross_fit(context, action, reward, actions, rng, boosted)
    value = float(policy[here, right].mean())
    return Bandit(context, action, reward, behaviour[here, action], policy, q, value)


MAKERS: dict[str, Callable[[int], Bandit]] = {"synthetic": synthetic, "digits": digits}


def errors(bandit: Bandit) -> dict[str, float]:
    """|V̂ − V| / V."""
    case = case_of(bandit)
    found = estimates(case) | with_their_grid(case)
    return {label: abs(value - bandit.value) / bandit.value for label, value in found.items()}


def table(name: str, runs: list[dict[str, float]]) -> list[dict[str, Any]]:
    """A row per estimator: ours, theirs, and how far apart."""
    their_runs, figures = THEIRS[name]
    rows = []
    for label in runs[0]:
        ours = np.array([run[label] for run in runs])
        theirs, spread = figures[label.split(",")[0]]
        own = float(ours.std(ddof=1))
        apart = abs(float(ours.mean()) - theirs)
        rows.append(
            {
                "estimator": label,
                "ours": float(ours.mean()),
                "spread": own,
                "theirs": theirs,
                "their_spread": spread,
                "ratio": float(ours.mean()) / theirs,
                "spreads_apart": apart / spread,
                "errors_apart": apart / (own**2 / len(ours) + spread**2 / their_runs) ** 0.5,
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--only", choices=list(MAKERS))
    parser.add_argument("--out", type=Path, default=Path("bandits.json"))
    asked = parser.parse_args()
    if asked.runs < 2:
        parser.error("a spread needs 2 runs or more")
    results = {}
    for name, make in MAKERS.items():
        if asked.only not in (None, name):
            continue
        began = time.process_time()
        runs = [errors(make(seed)) for seed in range(asked.runs)]
        rows = table(name, runs)
        results[name] = {"runs": asked.runs, "their_runs": THEIRS[name][0], "rows": rows}
        print(f"\n{name}, {asked.runs} runs of ours, {THEIRS[name][0]} of theirs")
        print(
            "| estimator | ours | spread | obp's | spread | ratio | spreads apart | errors apart |"
        )
        print("|---|---:|---:|---:|---:|---:|---:|---:|")
        for row in rows:
            figures = f"{row['ours']:.4f} | {row['spread']:.4f} | {row['theirs']:.4f} | "
            figures += f"{row['their_spread']:.4f} | {row['ratio']:.2f} | "
            figures += f"{row['spreads_apart']:.1f} | {row['errors_apart']:.1f}"
            print(f"| {row['estimator']} | {figures} |")
        print(f"{time.process_time() - began:.0f} CPU seconds")
        write_json(asked.out, results)


if __name__ == "__main__":
    main()
