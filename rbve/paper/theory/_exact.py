"""Small decision processes in rational numbers: values without rounding, ties that are ties."""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

END = -1  # the state after the last


class Outcome(NamedTuple):
    """What an action may lead to."""

    state: int  # END or an index
    reward: Fraction = Fraction(0)
    chance: Fraction = Fraction(1)


class MDP(NamedTuple):
    moves: list[list[list[Outcome]]]  # by state, action: outcomes whose chances add up to 1
    gamma: Fraction

    @property
    def states(self) -> range:
        return range(len(self.moves))


Policy = list[list[Fraction]]  # chance of each action in each state
Values = list[Fraction]
Table = list[list[Fraction]]  # by state and action
Choices = list[list[int]]  # actions by state


def uniform(mdp: MDP) -> Policy:
    return [[Fraction(1, len(actions))] * len(actions) for actions in mdp.moves]


def only(mdp: MDP, choice: Sequence[int]) -> Policy:
    """The policy that always takes the given action."""
    return [[Fraction(int(k == choice[s])) for k in range(len(mdp.moves[s]))] for s in mdp.states]


def evaluate(mdp: MDP, policy: Policy) -> Values:
    """V = r + γ P V, solved without rounding; the policy must end, or γ be below 1."""
    upper: list[dict[int, Fraction]] = []  # rows of an upper triangle with a diagonal of 1
    right: Values = []
    for s in mdp.states:
        row, value = {s: Fraction(1)}, Fraction(0)  # row s of (I − γ P) V = r
        for share, outcomes in zip(policy[s], mdp.moves[s], strict=True):
            for state, reward, chance in outcomes:
                value += share * chance * reward
                if state != END and share:
                    row[state] = row.get(state, Fraction(0)) - mdp.gamma * share * chance
        for k in range(min(row), s):
            factor = row.pop(k, None)
            if factor:
                value -= factor * right[k]
                for column, entry in upper[k].items():
                    row[column] = row.get(column, Fraction(0)) - factor * entry
        pivot = row.pop(s)
        upper.append({column: entry / pivot for column, entry in row.items() if entry})
        right.append(value / pivot)
    for s in reversed(mdp.states):
        right[s] -= sum(entry * right[column] for column, entry in upper[s].items())
    return right


def action_values(mdp: MDP, values: Values) -> Table:
    """Q(s, a) = Σ chance · (r + γ V(s'))."""

    def worth(outcome: Outcome) -> Fraction:
        after = Fraction(0) if outcome.state == END else values[outcome.state]
        return outcome.chance * (outcome.reward + mdp.gamma * after)

    return [[sum(map(worth, outcomes), Fraction(0)) for outcomes in a] for a in mdp.moves]


def greedy(table: Table) -> Choices:
    """All actions of highest value, so that a tie may be broken either way."""
    return [[k for k, value in enumerate(row) if value == max(row)] for row in table]


def backups(mdp: MDP, allowed: Choices, pick: Callable[[Iterable[Fraction]], Fraction]) -> Values:
    """Values when `pick` (min or max) chooses among allowed actions, over as many steps as states.

    Exact where no state comes back; where states come back and rewards fall only at the end, a
    trajectory that never ends counts 0.
    """
    values = [Fraction(0)] * len(mdp.moves)
    for _ in mdp.states:
        table = action_values(mdp, values)
        after = [pick(table[s][k] for k in allowed[s]) for s in mdp.states]
        if after == values:
            break
        values = after
    return values


def every_action(mdp: MDP) -> Choices:
    return [list(range(len(actions))) for actions in mdp.moves]


def optimal(mdp: MDP, start: Choices) -> Table:
    """Q* by policy iteration from the first of each state's actions in `start`; γ below 1."""
    choice = [actions[0] for actions in start]
    while True:
        table = action_values(mdp, evaluate(mdp, only(mdp, choice)))
        after = [
            old if row[old] == max(row) else row.index(max(row))
            for old, row in zip(choice, table, strict=True)
        ]
        if after == choice:
            return table
        choice = after


class Gap(NamedTuple):
    """One state: how clearly values of the behaviour prefer optimal actions to all others."""

    size: Fraction  # best Q of an optimal action − best Q of another; above 0 where greedy is right
    share: Fraction  # of the larger of the two in size; 0 if both are 0


def gaps(behaviour: Table, best: Table) -> list[Gap]:
    """Of all states where some action is not optimal."""
    found = []
    for q, star in zip(behaviour, best, strict=True):
        right = max(q[k] for k in range(len(q)) if star[k] == max(star))
        others = [q[k] for k in range(len(q)) if star[k] < max(star)]
        if others:
            wrong = max(others)
            scale = max(abs(right), abs(wrong))
            found.append(Gap(right - wrong, (right - wrong) / scale if scale else Fraction(0)))
    return found
