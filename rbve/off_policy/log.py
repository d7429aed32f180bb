"""A log as estimators read it: its decisions one after another, episode by episode, in float64."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from rbve.data.dataset import NO_ACTION, OPTIONAL_COLUMNS, Dataset, take
from rbve.data.inputs import first_rows
from rbve.data.transitions import reward_to_go


@dataclass(frozen=True)
class DecisionLog:
    """Whole episodes from their first decision on. N decisions, E episodes, A actions."""

    dataset: Dataset  # the episodes kept
    gamma: float
    notes: tuple[str, ...] = field(default=())  # what was left out, and why
    numbers: np.ndarray | None = None  # (E,) of the episodes in the store; None = as they are here
    store_rows: np.ndarray | None = None  # (R,) of the rows in the store

    @staticmethod
    def of(dataset: Dataset, gamma: float) -> "DecisionLog":
        """Episodes that can be followed from start to end.

        Raises:
            ValueError: There is none, or gamma is out of bounds.
        """
        if not 0 <= gamma <= 1:
            raise ValueError(f"gamma must lie in [0, 1]; got {gamma}")
        decided = np.ones(len(dataset.action), bool)
        decided[dataset.offsets[1:] - 1] = False
        unknown = decided & (dataset.action < 0)
        with_unknown = np.logical_or.reduceat(unknown, dataset.offsets[:-1])
        whole = dataset.complete & ~with_unknown
        notes = []
        if fragments := int((~dataset.complete).sum()):
            notes.append(
                f"{fragments:,} of {dataset.num_episodes:,} episodes are fragments, which begin or "
                "end inside an episode; left out"
            )
        if some := int((dataset.complete & with_unknown).sum()):
            notes.append(f"{some:,} episodes have decisions without an action; left out")
        if not whole.any():
            raise ValueError(
                "no whole episode is left to estimate from: an estimate follows episodes from "
                "their first decision to their end; convert the log with the column that tells "
                "episodes apart (--episode)"
            )
        blind = ~dataset.terminated & ~dataset.finals_known & whole
        if some := int((blind & (dataset.lengths == 1)).sum()):
            notes.append(
                f"{some:,} of {dataset.num_episodes:,} episodes are one decision, cut before the "
                "log shows what came of it; left out"
            )
            whole &= ~(blind & (dataset.lengths == 1))
        if not whole.any():
            raise ValueError(
                "no episode is left to estimate from: all were cut after one decision, and the log "
                "does not hold what was seen then; name the column that says when episodes end, or "
                "the one of next observations, when converting"
            )
        if not whole.all():
            dataset = dataset.select(np.flatnonzero(whole), "whole episodes")
        if (blind := blind[whole]).any():
            notes.append(
                f"{int(blind.sum()):,} episodes were cut and lack a final observation; their last "
                "decision is left out"
            )
            dataset = _shortened(dataset, blind)
        if cut := int((~dataset.terminated).sum()):
            notes.append(
                f"{cut:,} of {dataset.num_episodes:,} episodes were cut before their end; what "
                "they would have brought is a fitted value"
            )
        return DecisionLog(dataset, gamma, tuple(notes))

    @cached_property
    def rows(self) -> np.ndarray:
        """(N,) rows of the dataset that hold decisions."""
        decided = np.ones(len(self.dataset.action), bool)
        decided[self.final_rows] = False
        return np.flatnonzero(decided)

    @property
    def final_rows(self) -> np.ndarray:
        """(E,) rows of final observations."""
        return self.dataset.offsets[1:] - 1

    @cached_property
    def offsets(self) -> np.ndarray:
        """(E+1,) first decision of each episode, then N."""
        return self.dataset.offsets - np.arange(self.episodes + 1)

    @property
    def episodes(self) -> int:
        return self.dataset.num_episodes

    @property
    def lengths(self) -> np.ndarray:
        return self.dataset.lengths

    @property
    def one_step(self) -> bool:
        return bool((self.lengths == 1).all())

    @property
    def cut(self) -> np.ndarray:
        """(E,) bool, episodes that go on beyond the record."""
        return ~self.dataset.terminated

    @cached_property
    def action(self) -> np.ndarray:
        return self.dataset.action[self.rows].astype(np.int64)

    @cached_property
    def reward(self) -> np.ndarray:
        return self.dataset.reward[self.rows].astype(np.float64)

    @cached_property
    def legal(self) -> np.ndarray | None:
        return None if self.dataset.legal is None else self.dataset.legal[self.rows]

    @cached_property
    def propensity(self) -> np.ndarray | None:
        """(N,) logged probability of the logged action."""
        column = self.dataset.propensity
        return None if column is None else column[self.rows].astype(np.float64)

    @cached_property
    def step(self) -> np.ndarray:
        """(N,) the decision's place in its episode, from 0."""
        return self.rows - first_rows(self.dataset)[self.rows]

    @cached_property
    def discount(self) -> np.ndarray:
        """(N,) γ^t."""
        return self.gamma ** self.step.astype(np.float64)

    @cached_property
    def episode(self) -> np.ndarray:
        """(N,) number of the decision's episode."""
        return np.repeat(np.arange(self.episodes), self.lengths)

    def place(self, decision: int) -> str:
        """Where a decision stands in the store."""
        episode = int(self.episode[decision])
        number = episode if self.numbers is None else int(self.numbers[episode])
        return f"episode {number}, decision {self.step[decision]}"

    def sum(self, values: np.ndarray) -> np.ndarray:
        """(E,) of values (N,)."""
        return np.add.reduceat(values, self.offsets[:-1])

    def first(self, values: np.ndarray) -> np.ndarray:
        return values[self.offsets[:-1]]

    def last(self, values: np.ndarray) -> np.ndarray:
        return values[self.offsets[1:] - 1]

    def cumulative_product(self, values: np.ndarray) -> np.ndarray:
        """(N,) within each episode, from its first decision on."""
        result = np.array(values, np.float64)
        longest_first = np.argsort(-self.lengths, kind="stable")
        start, lengths = self.offsets[:-1][longest_first], self.lengths[longest_first]
        running = len(lengths)
        for step in range(1, int(lengths[0])):
            while lengths[running - 1] <= step:
                running -= 1
            rows = start[:running] + step
            result[rows] *= result[rows - 1]
        return result

    def sum_to_go(self, values: np.ndarray) -> np.ndarray:
        """(N,) Σ_k γ^k x_{t+k} to the end of the episode."""
        column = np.zeros(len(self.dataset.action))
        column[self.rows] = values
        return reward_to_go(column, self.dataset.offsets, self.gamma)[self.rows]

    def before(self, weight: np.ndarray) -> np.ndarray:
        """(N,) the weight one decision earlier, 1 at the first."""
        earlier = np.roll(weight, 1)
        earlier[self.offsets[:-1]] = 1.0
        return earlier

    def per_step(self, values: np.ndarray) -> np.ndarray:
        """(T,) sums over the episodes that run at each step."""
        return np.bincount(self.step, values, int(self.lengths.max()))

    def worth(self, weight: np.ndarray, least: float) -> int:
        """Up to which decision weights (N,) are worth `least` episodes, (Σ w)² / Σ w².

        Episodes that have ended keep their last weight.
        """
        steps = int(self.lengths.max())
        ended = self.last(weight)

        def sums(power: int) -> np.ndarray:
            leaving = np.bincount(self.lengths, ended**power, steps + 1)[:steps]
            return self.per_step(weight**power) + np.cumsum(leaving)

        square = sums(2)
        effective = np.divide(sums(1) ** 2, square, out=np.zeros(steps), where=square > 0)
        lost = effective < least
        return int(lost.argmax()) if lost.any() else steps

    def self_normalised(
        self, weight: np.ndarray, values: np.ndarray, ended: np.ndarray
    ) -> np.ndarray:
        """(E,) influence values of Σ_t γ^t Σ_i w_it x_it / Σ_i w_it, which is their mean.

        An episode that has ended stays in the sums of weights with x = 0 and the weight `ended`
        (E,), that of all its decisions, else long episodes alone would make the later terms.
        """
        steps = int(self.lengths.max())
        leaving = np.bincount(self.lengths, ended, steps + 1)[:steps]
        total = self.per_step(weight) + np.cumsum(leaving)
        # Where every weight is 0 nothing is known; the gates say so.
        inverse = np.divide(1.0, total, out=np.zeros(steps), where=total > 0)
        mean = self.per_step(weight * values) * inverse
        discount = self.gamma ** np.arange(steps)
        running = self.sum(self.discount * weight * (values - mean[self.step]) * inverse[self.step])
        later = np.append(np.cumsum((discount * mean * inverse)[::-1])[::-1], 0.0)
        after_end = -ended * later[self.lengths]
        return (discount * mean).sum() + self.episodes * (running + after_end)


def _shortened(dataset: Dataset, episodes: np.ndarray) -> Dataset:
    """Without the last rows of the given episodes (E,), which are fillers: the observation of
    their last decision becomes the final one."""
    filler = np.zeros(len(dataset.action), bool)
    filler[dataset.offsets[1:][episodes] - 1] = True
    rows, columns = np.flatnonzero(~filler), {}
    for name in ("obs", "action", "reward", *OPTIONAL_COLUMNS, "policy"):
        if (column := getattr(dataset, name)) is not None:
            columns[name] = take(column, rows)
    offsets = np.concatenate([[0], np.cumsum(np.diff(dataset.offsets) - episodes)])
    final = offsets[1:][episodes] - 1
    for name, nothing in (("action", NO_ACTION), ("executed", NO_ACTION), ("reward", 0)):
        if name in columns:
            columns[name][final] = nothing
    return replace(dataset, **columns, offsets=offsets, final_observed=None)
