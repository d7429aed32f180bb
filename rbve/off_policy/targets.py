"""Policies to be judged, as probabilities (R, A) of every row of a log.

A trained policy acts greedily, ε-greedily or by a softmax of its values; cloning by its own
probabilities if asked. Anyone else's policy comes as a table of probabilities or a function.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rbve.data.dataset import Dataset
from rbve.policy import Policy
from rbve.policy.outputs import Outputs, outputs_on
from rbve.policy.support import Support
from rbve.runtime.outcome import weigh

_SUM = 1e-3  # how far probabilities may be from 1 together


@dataclass(frozen=True)
class Deployment:
    """How a trained policy is put to use.

    Attributes:
        epsilon: Share of random legal actions.
        temperature: 0 = the best action; else actions by softmax(scores / temperature). Of cloning
            1 gives its own probabilities.
    """

    epsilon: float = 0.0
    temperature: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon <= 1:
            raise ValueError(f"epsilon is a share from 0 to 1; got {self.epsilon:g}")
        if not self.temperature >= 0 or not np.isfinite(self.temperature):
            raise ValueError(f"temperature is 0 or more; got {self.temperature:g}")

    @property
    def words(self) -> str:
        way = f"softmax at {self.temperature:g}" if self.temperature else "greedy"
        return f"{way}, ε {self.epsilon:g}" if self.epsilon else way


def probabilities(
    target: Policy | np.ndarray | Callable[..., Any],
    dataset: Dataset,
    acting: Deployment | None = None,
) -> np.ndarray:
    """π(· | s) of every row, float64, each row summing to 1.

    Args:
        target: A policy; a table (R, A) or (N, A) of the rows or the decisions of the log in their
            order; or a function of observations (R, ...) and, if it takes a second argument, the
            masks (R, A) of legal actions.
        dataset: The log.
        acting: How a trained policy acts; the others say it themselves.

    Raises:
        ValueError: They are no probabilities, or do not fit the log; the message says where.
    """
    if isinstance(target, Policy):
        outputs, legal = outputs_on(target, dataset), legal_actions(dataset)
        if target.support is not None and target.support.fallback is not None:
            table = _behaviour(target.support, dataset, legal)
            return _with_fallback(target, dataset, outputs, table, acting or Deployment())
        return of_scores(outputs.scores, legal, acting or Deployment())
    if acting is not None:
        raise ValueError("epsilon and temperature are of trained policies; a table has its own")
    table = _called(target, dataset) if callable(target) else np.asarray(target)
    return _checked(table, dataset)


def _with_fallback(
    policy: Policy, dataset: Dataset, outputs: Outputs, behaviour: np.ndarray, acting: Deployment
) -> np.ndarray:
    """Of a policy that does something else where the log gives it no support, as when shipped."""
    legal = legal_actions(dataset)
    inside = np.ones(len(legal), bool)
    if policy.features is not None:
        inside = policy.decider.encoded(dataset.obs[:])[1]
    rules = dataclasses.replace(
        policy.decider.rules, epsilon=acting.epsilon, temperature=acting.temperature
    )
    scores = np.where(legal, outputs.scores, np.float32(-1e30))
    known = {"scores": scores, "q": outputs.q, "behaviour": behaviour}
    table = weigh(np, known, legal, inside, rules)["probabilities"].astype(np.float64)
    return table / table.sum(axis=1, keepdims=True)


def _behaviour(support: Support, dataset: Dataset, legal: np.ndarray) -> np.ndarray:
    """(R, A) what the log does, by the model that a policy is shipped with."""
    logits = outputs_on(support.behaviour, dataset).scores.astype(np.float64)
    return of_scores(logits, legal, Deployment(temperature=support.temperature))


def of_scores(scores: np.ndarray, legal: np.ndarray, acting: Deployment) -> np.ndarray:
    """Of what a policy maximises (R, A)."""
    scores = np.where(legal, scores.astype(np.float64), -np.inf)
    if acting.temperature:
        shifted = (scores - scores.max(axis=1, keepdims=True)) / acting.temperature
        chosen = np.exp(shifted)
        chosen /= chosen.sum(axis=1, keepdims=True)
    else:
        chosen = np.zeros_like(scores)
        chosen[np.arange(len(scores)), scores.argmax(axis=1)] = 1.0
    random = legal / legal.sum(axis=1, keepdims=True)
    return (1 - acting.epsilon) * chosen + acting.epsilon * random


def legal_actions(dataset: Dataset) -> np.ndarray:
    """(R, A) bool; all of them without masks."""
    shape = (len(dataset.action), dataset.num_actions)
    if dataset.legal is None:
        return np.ones(shape, bool)
    legal = np.asarray(dataset.legal)
    # Final rows may say that nothing is legal any more.
    return np.where(legal.any(axis=1, keepdims=True), legal, True)


def _called(function: Callable[..., Any], dataset: Dataset) -> np.ndarray:
    import inspect

    obs: Any = dataset.obs[:]
    parameters = inspect.signature(function).parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    given = (obs, legal_actions(dataset)) if len(positional) > 1 else (obs,)
    return np.asarray(function(*given))


def _checked(table: np.ndarray, dataset: Dataset) -> np.ndarray:
    rows, decisions, actions = len(dataset.action), dataset.num_transitions, dataset.num_actions
    if table.ndim != 2 or table.shape[1] != actions or len(table) not in (rows, decisions):
        raise ValueError(
            f"a policy's probabilities have shape ({decisions}, {actions}), a row per decision and "
            f"a column per action, or ({rows}, {actions}) with final observations; got "
            f"{table.shape}"
        )
    if table.dtype.kind not in "biuf":
        raise ValueError(f"probabilities are numbers; got {table.dtype}")
    table = table.astype(np.float64)
    decided = np.ones(rows, bool)
    decided[dataset.offsets[1:] - 1] = False
    read = decided.copy()  # rows whose probabilities enter an estimate
    with_finals = len(table) == rows
    number = np.arange(rows) if with_finals else np.cumsum(decided) - 1  # in the table
    table = table[number]  # final rows of cut episodes take the last decision's
    if with_finals:
        read[dataset.offsets[1:][~dataset.terminated & dataset.finals_known] - 1] = True
    known = table[read]
    illegal = np.where(legal_actions(dataset)[read], 0.0, known).sum(axis=1) > _SUM
    faults = {
        "a probability is negative or no number": ~(np.isfinite(known) & (known >= 0)).all(axis=1),
        "probabilities sum to {:.4g}, not 1": np.abs(known.sum(axis=1) - 1) > _SUM,
        "the policy takes an illegal action": illegal,
    }
    for words, bad in faults.items():
        if bad.any():
            first = int(np.argmax(bad))
            row = int(np.flatnonzero(read)[first])
            raise ValueError(
                f"{_place(dataset, row)}: {words.format(known[first].sum())} (row {number[row]:,}, "
                f"{int(bad.sum()):,} such); mend what made the probabilities"
            )
    table = np.where(np.isfinite(table) & (table >= 0), table, 0.0)  # rows that nobody reads
    total = table.sum(axis=1, keepdims=True)
    return np.divide(table, total, out=np.full_like(table, 1 / actions), where=total > 0)


def _place(dataset: Dataset, row: int) -> str:
    episode = int(np.searchsorted(dataset.offsets, row, side="right")) - 1
    if row == dataset.offsets[episode + 1] - 1:
        return f"episode {episode}, final observation"
    return f"episode {episode}, decision {row - int(dataset.offsets[episode])}"
