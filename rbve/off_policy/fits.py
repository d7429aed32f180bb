"""Fits to a log by the trainer of all algorithms: an episode is judged by a fit to other episodes.

Those are the episodes that trained the policy, where a log holds them, else the fits are
cross-fitted over the episodes that judge.
"""

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rbve.data.dataset import Dataset
from rbve.data.manifest import content_fingerprint
from rbve.off_policy.log import DecisionLog
from rbve.parts import default_period
from rbve.policy import Policy
from rbve.policy.outputs import outputs_on
from rbve.spec import Spec
from rbve.sweep.run import run_jobs
from rbve.training.batches import row_bytes
from rbve.training.run import POLICY, Progress

_AT_ONCE = 1 << 29  # bytes of the data of fits that are made together
_HELD = 1 << 31  # bytes of probabilities and values of policies that are judged together
_HORIZONS = 2.5  # e^−2.5: 8% of a value lies beyond
_ROWS_A_STEP = 32  # of a batch of 128: in a fit every row is drawn four times, or it is left out
_FQE, _REGRESSION = "_fqe", "_regression"  # files of rbve/algorithms that only fits use


@dataclass(frozen=True)
class FitPlan:
    """How much a fit takes.

    Attributes:
        steps: Updates of each fit.
        folds: Parts of the episodes, each judged by a fit to the others; where all of them judge.
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


class Rest(NamedTuple):
    """Episodes that judge nobody, which leaves them to fits."""

    log: DecisionLog
    policies: Iterable[np.ndarray]  # (R, A) of its rows, one per policy, made as they are read


def at_once(log: DecisionLog, names: Sequence[str]) -> Iterator[list[str]]:
    """Parts of the names: probabilities and values of every row of so many policies are held
    together, and not of all."""
    held = 2 * 8 * len(log.dataset.action) * log.dataset.num_actions
    count = max(1, _HELD // held)
    return (list(names[k : k + count]) for k in range(0, len(names), count))


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
    rest: Rest | None = None,
) -> list[Fits]:
    """Fitted Q evaluation of every policy (R, A), all of them in one call of the trainer.

    Args:
        log: The episodes that judge.
        policies: On their rows.
        plan: Of the fits.
        on_progress: Called as they go on.
        rest: Other episodes to fit to; None = cross-fitted over those of the log.
    """
    scale = _reward_scale(log if rest is None else rest.log)

    def columns(fitted: DecisionLog, tables: Iterable[np.ndarray]) -> Iterator[Dataset]:
        data = fitted.dataset
        scaled = replace(data, reward=(data.reward / scale).astype(np.float32))
        return (replace(scaled, policy=each.astype(np.float32)) for each in tables)

    judged = columns(log, policies)
    if rest is None:
        parts = _folds(log, plan)
        tasks = (_Task(data, data, parts) for data in judged)
    else:
        parts = [_Part("all", np.arange(rest.log.episodes), np.arange(log.episodes))]
        pairs = zip(columns(*rest), judged, strict=True)
        tasks = (_Task(learned, data, parts) for learned, data in pairs)
    period = _target_period(log, plan.steps)
    found = _fit(tasks, plan, on_progress, algorithm=_FQE, gamma=log.gamma, target_period=period)
    results = []
    for policy, q in zip(policies, found, strict=True):
        q = scale * q
        v_final = (policy * q).sum(axis=1)[log.final_rows]
        results.append(Fits(q[log.rows], v_final))
    return results


def _target_period(log: DecisionLog, steps: int) -> int:
    """Updates between syncs of the target network. Each sync carries values one decision back, and
    what lies beyond the last one is missing; but with too many of them values run away."""
    horizon = float(log.lengths.mean())
    if log.gamma < 1:
        horizon = min(horizon, 1 / (1 - log.gamma))
    return max(1, min(default_period(steps), int(steps / (_HORIZONS * horizon))))


def fit_cloning(
    log: DecisionLog,
    plan: FitPlan,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    crossed: bool = True,
) -> np.ndarray:
    """(R, A) logits of the logged behaviour, low where illegal; not `crossed`, of one fit to all
    episodes."""
    every = np.arange(log.episodes)
    parts = _folds(log, plan) if crossed else [_Part("all", every, every)]
    task = _Task(log.dataset, log.dataset, parts)
    return _fit([task], plan, on_progress, algorithm="bc", gamma=log.gamma)[0]


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
    tasks = [_Task(each, each, _folds(log, plan)) for each in columns]
    fitted = _fit(tasks, plan, on_progress, algorithm=_REGRESSION, gamma=log.gamma)
    return [
        mean + scale * q[log.rows, log.action]
        for (mean, scale), q in zip(units, fitted, strict=True)
    ]


class _Part(NamedTuple):
    """Numbers of the episodes that a network is fitted to, and of those whose outputs it gives."""

    name: str
    fitted: np.ndarray
    judged: np.ndarray


class _Task(NamedTuple):
    """What is fitted for one policy."""

    learned: Dataset
    judged: Dataset
    parts: Sequence[_Part]


def _folds(log: DecisionLog, plan: FitPlan) -> list[_Part]:
    fold = fold_of(log.episodes, plan.folds, plan.seed)
    return [
        _Part(f"{k}of{plan.folds}", np.flatnonzero(fold != k), np.flatnonzero(fold == k))
        for k in range(plan.folds)
    ]


def _fit(
    tasks: Iterable[_Task], plan: FitPlan, on_progress: Any, **fields: Any
) -> list[np.ndarray]:
    """Of each task, (R, A) outputs on the rows that are judged."""
    own: dict[str, Any] = {
        "steps": plan.steps, "hidden": plan.hidden, "memory": plan.memory, "stack": plan.stack,
        "torso": plan.torso, "seed": plan.seed, "learning_rate": plan.learning_rate,
        "every": plan.steps, "n_step": 1, "holdout": 0.0,
        "rescale": False,  # else a fit is of E[h(y)], not of E[y], and low where y varies
        **fields,
    }  # fmt: skip
    outputs: list[np.ndarray] = []
    with _folder(plan.out) as out:
        for some in _in_memory(tasks, _ROWS_A_STEP * plan.steps):
            outputs += _fitted(some, plan, own, out, on_progress)
    return outputs


def _in_memory(tasks: Iterable[_Task], most: int) -> Iterator[list[_Task]]:
    """As many at a time as a device holds: fits from rows on disk take several times as long."""
    some: list[_Task] = []
    held = 0
    for task in tasks:
        size = row_bytes(task.learned) * min(most, len(task.learned.action))
        if some and held + size > _AT_ONCE:
            yield some
            some, held = [], 0
        some.append(task)
        held += size
    if some:
        yield some


def _some(data: Dataset, episodes: np.ndarray, plan: FitPlan) -> np.ndarray:
    """Of the numbered episodes a random choice, where a fit cannot make use of all."""
    order = np.random.default_rng([plan.seed, 23]).permutation(episodes)
    rows = np.cumsum(np.diff(data.offsets)[order])
    count = int(np.searchsorted(rows, _ROWS_A_STEP * plan.steps, "right"))
    return episodes if count >= len(episodes) else np.sort(order[: max(1, count)])


def _fitted(
    tasks: Sequence[_Task], plan: FitPlan, own: dict[str, Any], out: Path, on_progress: Any
) -> list[np.ndarray]:
    jobs, held = [], {}
    for learned, _, parts in tasks:
        mark = _fingerprint(learned)
        for part in parts:
            path = f"{mark}-{part.name}"
            held[path] = learned.select(_some(learned, part.fitted, plan), f"fold {part.name}")
            jobs.append(Spec.of(path=path, fingerprint=path, group=mark, replicate=path, **own))
    folders = iter(run_jobs(jobs, out, on_progress, held))
    outputs = []
    for _, data, parts in tasks:
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
