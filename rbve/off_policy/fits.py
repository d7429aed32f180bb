"""Fits to a log by the trainer of all algorithms, cross-fitted: an episode is judged by a fit to
other episodes."""

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rbve.data.dataset import Dataset
from rbve.data.manifest import content_fingerprint
from rbve.off_policy.log import DecisionLog
from rbve.policy import Policy
from rbve.policy.outputs import outputs_on
from rbve.spec import Spec
from rbve.sweep.run import run_jobs
from rbve.training.batches import row_bytes
from rbve.training.run import POLICY, Progress

_AT_ONCE = 1 << 29  # bytes of the data of fits that are made together
_FQE, _REGRESSION = "_fqe", "_regression"  # files of rbve/algorithms that only fits use


@dataclass(frozen=True)
class FitPlan:
    """How much a fit takes.

    Attributes:
        steps: Updates of each fit.
        folds: Parts of the episodes; each is judged by a fit to the others.
        seed: Of folds, weights and batches.
        hidden: Units per dense layer; none = the torso's own.
        memory: Units of an LSTM, for policies that have one.
        stack: Frames joined, for policies that join them.
        torso: As in training.
        learning_rate: Of Adam.
        out: Folder where fits are kept and resumed; None = they are not.
    """

    steps: int = 20_000
    folds: int = 2
    seed: int = 0
    hidden: tuple[int, ...] = ()
    memory: int = 0
    stack: int = 1
    torso: str = "auto"
    learning_rate: float = 3e-4
    out: Path | None = None

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"a fit needs at least one update; got {self.steps}")
        if self.folds < 2:
            raise ValueError(f"cross-fitting needs at least 2 folds; got {self.folds}")

    def suited_to(self, policy: Policy) -> "FitPlan":
        """With the network of a policy, so that a fit sees what the policy sees."""
        own = policy.trained
        return replace(
            self, hidden=policy.hidden, memory=policy.memory, stack=own.stack, torso=policy.torso
        )


@dataclass(frozen=True)
class Fits:
    """Q̂ of one policy on a log, each episode's from other episodes."""

    q: np.ndarray  # (N, A)
    v_final: np.ndarray  # (E,) V̂ of final observations


def fold_of(episodes: int, folds: int, seed: int) -> np.ndarray:
    """(E,) which part each episode is in; parts differ by an episode at most.

    Raises:
        ValueError: There are fewer episodes than parts.
    """
    if episodes < folds:
        raise ValueError(
            f"cross-fitting over {folds} folds needs as many episodes; the log has {episodes}"
        )
    order = np.random.default_rng([seed, 21]).permutation(episodes)
    fold = np.empty(episodes, np.int64)
    fold[order] = np.arange(episodes) % folds
    return fold


def fit_values(
    log: DecisionLog,
    policies: Sequence[np.ndarray],
    plan: FitPlan,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> list[Fits]:
    """Fitted Q evaluation of every policy (R, A), all of them in one call of the trainer."""
    scale = _reward_scale(log)
    scaled = replace(log.dataset, reward=(log.dataset.reward / scale).astype(np.float32))
    columns = [replace(scaled, policy=each.astype(np.float32)) for each in policies]
    fitted = _fit(log, columns, plan, on_progress, algorithm=_FQE, gamma=log.gamma)
    results = []
    for policy, q in zip(policies, fitted, strict=True):
        q = scale * q
        v_final = (policy * q).sum(axis=1)[log.final_rows]
        results.append(Fits(q[log.rows], v_final))
    return results


def fit_cloning(
    log: DecisionLog,
    plan: FitPlan,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    crossed: bool = True,
) -> np.ndarray:
    """(R, A) logits of the logged behaviour, low where illegal; not `crossed`, of one fit to all
    episodes."""
    parts = None if crossed else _all_of(log)
    fields = {"algorithm": "bc", "gamma": log.gamma}
    return _fit(log, [log.dataset], plan, on_progress, parts, **fields)[0]


def fit_numbers(
    log: DecisionLog,
    numbers: Sequence[np.ndarray],
    plan: FitPlan,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> list[np.ndarray]:
    """Regressions of numbers (N,), one per decision, on state and action; (N,) of logged pairs."""
    columns, units = [], []
    for each in numbers:
        mean, scale = float(each.mean()), float(each.std()) or 1.0
        column = np.zeros((len(log.dataset.action), log.dataset.num_actions), np.float32)
        column[log.rows + 1, 0] = (each - mean) / scale
        columns.append(replace(log.dataset, policy=column))
        units.append((mean, scale))
    fitted = _fit(log, columns, plan, on_progress, algorithm=_REGRESSION, gamma=log.gamma)
    return [
        mean + scale * q[log.rows, log.action]
        for (mean, scale), q in zip(units, fitted, strict=True)
    ]


class _Part(NamedTuple):
    """Episodes that a network is fitted to, and those whose outputs it gives."""

    name: str
    fitted: np.ndarray
    judged: np.ndarray


def _folds(log: DecisionLog, plan: FitPlan) -> list[_Part]:
    fold = fold_of(log.episodes, plan.folds, plan.seed)
    return [
        _Part(f"{k}of{plan.folds}", np.flatnonzero(fold != k), np.flatnonzero(fold == k))
        for k in range(plan.folds)
    ]


def _all_of(log: DecisionLog) -> list[_Part]:
    every = np.arange(log.episodes)
    return [_Part("all", every, every)]


def _fit(
    log: DecisionLog,
    columns: Sequence[Dataset],
    plan: FitPlan,
    on_progress: Any,
    parts: Sequence[_Part] | None = None,
    **fields: Any,
) -> list[np.ndarray]:
    """Of each dataset, (R, A) outputs of networks; cross-fitted unless `parts` says otherwise."""
    own: dict[str, Any] = {
        "steps": plan.steps, "hidden": plan.hidden, "memory": plan.memory, "stack": plan.stack,
        "torso": plan.torso, "seed": plan.seed, "learning_rate": plan.learning_rate,
        "every": plan.steps, "n_step": 1, "holdout": 0.0,
        "rescale": False,  # else a fit is of E[h(y)], not of E[y], and low where y varies
        **fields,
    }  # fmt: skip
    chosen = parts or _folds(log, plan)
    outputs: list[np.ndarray] = []
    with _folder(plan.out) as out:
        for some in _in_memory(columns):
            outputs += _fitted(some, chosen, own, out, on_progress)
    return outputs


def _in_memory(columns: Sequence[Dataset]) -> Iterator[Sequence[Dataset]]:
    """As many at a time as a device holds: fits from rows on disk take several times as long."""
    each = max(1, row_bytes(columns[0]) * len(columns[0].action)) if columns else 1
    count = max(1, _AT_ONCE // each)
    for start in range(0, len(columns), count):
        yield columns[start : start + count]


def _fitted(
    columns: Sequence[Dataset],
    parts: Sequence[_Part],
    own: dict[str, Any],
    out: Path,
    on_progress: Any,
) -> list[np.ndarray]:
    jobs, held = [], {}
    for data in columns:
        mark = _fingerprint(data)
        for part in parts:
            path = f"{mark}-{part.name}"
            held[path] = data.select(part.fitted, f"fold {part.name}")
            jobs.append(Spec.of(path=path, fingerprint=path, group=mark, replicate=path, **own))
    folders = iter(run_jobs(jobs, out, on_progress, held))
    outputs = []
    for data in columns:
        values = np.empty((len(data.action), data.num_actions))
        for part in parts:
            network = Policy.load(next(folders) / POLICY)
            judged = np.zeros(data.num_episodes, bool)
            judged[part.judged] = True
            found = outputs_on(network, data.select(part.judged, f"fold {part.name}"))
            rows = np.repeat(judged, np.diff(data.offsets))
            values[rows] = found.q if network.algorithm.values else found.scores
        outputs.append(values)
    return outputs


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    if out is not None:
        yield out
        return
    with tempfile.TemporaryDirectory() as scratch:
        yield Path(scratch)


def _fingerprint(data: Dataset) -> str:
    """Of what a fit learns from, the policy too."""
    policy = b"" if data.policy is None else np.ascontiguousarray(data.policy).tobytes()
    text = content_fingerprint(data).encode()
    return hashlib.sha256(text + hashlib.sha256(policy).digest()).hexdigest()[:16]


def _reward_scale(log: DecisionLog) -> float:
    """The deviation of rewards-to-go: fits learn values of about 1, whatever the rewards' unit."""
    g = log.sum_to_go(log.reward)
    return float(g.std()) or float(np.abs(g).max()) or 1.0
