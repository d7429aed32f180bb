"""Where a policy differs from the log, what that is worth, and decisions one by one."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rbve.data.inputs import seen
from rbve.off_policy.behaviour import BehaviourPolicy
from rbve.off_policy.fits import Fits
from rbve.off_policy.groups import members_by
from rbve.off_policy.log import DecisionLog
from rbve.policy import Policy
from rbve.policy.outputs import outputs_on

_NEIGHBOURS = 3
_SEARCHED = 20_000  # decisions among which neighbours are looked for
_LISTED = 12


@dataclass(frozen=True)
class Change:
    """Decisions in which the log took one action and the policy takes another."""

    logged: str
    chosen: str
    decisions: int
    share: float  # of all decisions
    gain: float  # mean Q̂(s, chosen) − Q̂(s, logged), of the fitted values
    support: float  # mean probability with which the behaviour takes the chosen one


@dataclass(frozen=True)
class Neighbour:
    """A logged decision in a similar state."""

    distance: float  # in deviations, mean over the columns
    action: str
    followed: float  # discounted return that followed


@dataclass(frozen=True)
class Explained:
    """One held-out decision."""

    place: str  # episode and step
    observation: dict[str, str]
    logged: str
    chosen: str
    scores: dict[str, float]  # what the policy maximises, best first
    gap: float
    support: float
    neighbours: tuple[Neighbour, ...]


@dataclass(frozen=True)
class ActionsOfGroup:
    """How often each action is taken in the decisions of a subgroup."""

    name: str
    decisions: int
    logged: dict[str, float]  # shares
    chosen: dict[str, float]


@dataclass(frozen=True)
class Details:
    agreement: float
    logged_actions: dict[str, float]  # shares
    chosen_actions: dict[str, float]
    changes: tuple[Change, ...]  # most frequent first
    least_supported: tuple[Explained, ...]
    examples: tuple[Explained, ...]
    groups: tuple[ActionsOfGroup, ...] = ()


def details_of(
    policy: Policy,
    log: DecisionLog,
    behaviour: BehaviourPolicy,
    fits: Fits,
    seed: int,
    by: str | None = None,
) -> Details:
    """Of a policy that takes its best action; actions by the levels of a column too."""
    outputs = outputs_on(policy, log.dataset)
    scores = outputs.scores[log.rows]
    names = log.dataset.actions
    index = np.arange(len(log.action))
    chosen = scores.argmax(axis=1)
    support = behaviour.every[index, chosen]
    order = np.argsort(support, kind="stable")
    some = np.random.default_rng([seed, 22]).choice(
        len(index), min(_LISTED // 2, len(index)), replace=False
    )
    explain = _Explainer(policy, log, scores, chosen, support)
    return Details(
        agreement=float((chosen == log.action).mean()),
        logged_actions=_shares(log.action, names),
        chosen_actions=_shares(chosen, names),
        changes=_changes(log, chosen, support, fits, names),
        least_supported=tuple(explain(int(k)) for k in order[:_LISTED]),
        examples=tuple(explain(int(k)) for k in np.sort(some)),
        groups=() if by is None else tuple(_actions_by(log, by, chosen, names)),
    )


def _actions_by(
    log: DecisionLog, column: str, chosen: np.ndarray, names: tuple[str, ...]
) -> Iterator[ActionsOfGroup]:
    for name, members in members_by(log, column):
        inside = members[log.episode]
        logged, other = (_shares(each[inside], names) for each in (log.action, chosen))
        yield ActionsOfGroup(name, int(inside.sum()), logged, other)


def _shares(action: np.ndarray, names: tuple[str, ...]) -> dict[str, float]:
    counts = np.bincount(action, minlength=len(names)) / max(len(action), 1)
    return {name: float(share) for name, share in zip(names, counts, strict=True)}


def _changes(
    log: DecisionLog, chosen: np.ndarray, support: np.ndarray, fits: Fits, names: tuple[str, ...]
) -> tuple[Change, ...]:
    index = np.arange(len(chosen))
    gain = fits.q[index, chosen] - fits.q[index, log.action]
    differs = chosen != log.action
    pair = log.action * len(names) + chosen
    kinds, counts = np.unique(pair[differs], return_counts=True)
    changes = []
    for k in np.argsort(-counts, kind="stable")[:_LISTED]:
        members = differs & (pair == kinds[k])
        logged, other = divmod(int(kinds[k]), len(names))
        changes.append(
            Change(
                names[logged], names[other], int(counts[k]), float(counts[k] / len(chosen)),
                float(gain[members].mean()), float(support[members].mean()),
            )
        )  # fmt: skip
    return tuple(changes)


class _Explainer:
    def __init__(
        self,
        policy: Policy,
        log: DecisionLog,
        scores: np.ndarray,
        chosen: np.ndarray,
        support: np.ndarray,
    ) -> None:
        self.log, self.scores, self.chosen, self.support = log, scores, chosen, support
        self.policy = policy
        step = max(1, len(log.rows) // _SEARCHED)
        self.searched = np.arange(0, len(log.rows), step)
        flat = self._inputs(self.searched)
        self.scale = np.where(flat.std(axis=0) > 0, flat.std(axis=0), 1.0)
        self.flat = flat / self.scale
        self.g = log.sum_to_go(log.reward)

    def _inputs(self, decisions: np.ndarray) -> np.ndarray:
        obs = seen(self.log.dataset, self.log.rows[decisions])
        return obs.reshape(len(obs), -1).astype(np.float32)

    def __call__(self, decision: int) -> Explained:
        log, names = self.log, self.log.dataset.actions
        scores = self.scores[decision]
        legal = np.ones(len(names), bool) if log.legal is None else log.legal[decision]
        order = [int(k) for k in np.argsort(-scores) if legal[k]]
        gap = float(scores[order[0]] - scores[order[1]]) if len(order) > 1 else 0.0
        return Explained(
            place=log.place(decision),
            observation=_readable(log, decision),
            logged=names[log.action[decision]],
            chosen=names[self.chosen[decision]],
            scores={names[k]: float(scores[k]) for k in order[:5]},
            gap=gap,
            support=float(self.support[decision]),
            neighbours=self._neighbours(decision),
        )

    def _neighbours(self, decision: int) -> tuple[Neighbour, ...]:
        log = self.log
        own = self._inputs(np.array([decision]))[0] / self.scale
        distance = np.abs(self.flat - own).mean(axis=1)
        distance[log.episode[self.searched] == log.episode[decision]] = np.inf
        nearest = np.argsort(distance, kind="stable")[:_NEIGHBOURS]
        return tuple(
            Neighbour(
                float(distance[k]),
                log.dataset.actions[log.action[self.searched[k]]],
                float(self.g[self.searched[k]]),
            )
            for k in nearest
            if np.isfinite(distance[k])
        )


def _readable(log: DecisionLog, decision: int) -> dict[str, str]:
    """The row as the log has it, where it has columns; else its first numbers."""
    row = np.asarray(log.dataset.obs[log.rows[decision]])
    features = log.dataset.features
    if features is None:
        flat = row.reshape(-1)
        shown = {str(k): f"{float(value):.3g}" for k, value in enumerate(flat[:8])}
        return shown | ({"…": f"{flat.size} numbers"} if flat.size > 8 else {})
    cells = {}
    for feature, value in zip(features.columns, row.tolist(), strict=True):
        if value != value:
            cells[feature.name] = "missing"
        elif feature.kind == "category":
            cells[feature.name] = feature.categories[int(value)]
        else:
            cells[feature.name] = f"{value:.4g}"
    return cells
