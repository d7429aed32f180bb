"""Random decision processes around the lemma of rewards at the end (appendix B, lemma 1).

Its premises: (1) transitions are deterministic; (2) every trajectory is finite; (3) γ = 1; (4) the
reward is 0 until the end and L or H there, L < H; (5) wherever H can be reached, the behaviour
reaches it with a chance above 0. Then one greedy step on the behaviour's values is optimal, ties
broken in any way. Each family keeps all premises, or all but one.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from rbve.paper.theory._exact import END, MDP, Outcome, Policy

STATES, ACTIONS = (3, 12), (2, 3)  # drawn from these ranges, ends included
_ENDING, _GOOD, _UNTAKEN = 0.3, 0.3, 0.4  # chances: that an action ends; ends well; is never taken
_DISCOUNT = Fraction(9, 10)
PREMISES = (
    "deterministic transitions",
    "finite trajectories",
    "no discount",
    "reward at the end alone, L or H",
    "behaviour can succeed wherever success is possible",
)


class Example(NamedTuple):
    mdp: MDP
    behaviour: Policy
    low: Fraction  # L
    high: Fraction  # H


Weights = Callable[[np.random.Generator, int], list[int]]  # of the behaviour's actions


def full(rng: np.random.Generator, count: int) -> list[int]:
    return [int(k) for k in rng.integers(1, 10, size=count)]


def skewed(rng: np.random.Generator, count: int) -> list[int]:
    """Up to a million times rarer than another action."""
    return [10 ** int(k) for k in rng.integers(0, 7, size=count)]


def partial(rng: np.random.Generator, count: int) -> list[int]:
    weights = [0 if rng.random() < _UNTAKEN else int(rng.integers(1, 10)) for _ in range(count)]
    return weights if any(weights) else full(rng, count)


class Family(NamedTuple):
    words: str
    broken: int | None  # index of the premise that fails
    weights: Weights = full
    gamma: Fraction = Fraction(1)
    stochastic: bool = False
    cycles: bool = False
    rewards: bool = False  # on the way
    middle: bool = False  # a third reward at the end


FAMILIES = {
    "full": Family("behaviour takes every action", None),
    "skewed": Family("some actions a million times rarer", None, skewed),
    "partial": Family("behaviour never takes some actions", None, partial),
    "stochastic": Family("stochastic transitions", 0, stochastic=True),
    "cycles": Family("states can come back", 1, cycles=True),
    "discounted": Family("discount of 0.9", 2, gamma=_DISCOUNT),
    "rewards": Family("rewards on the way", 3, rewards=True),
    "middle": Family("three rewards at the end", 3, middle=True),
    "hopeless": Family("behaviour cannot succeed somewhere", 4, partial),
}


def draw(family: Family, rng: np.random.Generator) -> Example:
    """A member that keeps or breaks exactly the premises it should, with a choice that matters."""
    wanted = [index != family.broken for index in range(len(PREMISES))]
    while True:
        example = _propose(family, rng)
        if premises(example) == wanted and matters(example) and ends(example):
            return example


def _propose(family: Family, rng: np.random.Generator) -> Example:
    count = int(rng.integers(STATES[0], STATES[1] + 1))
    actions = int(rng.integers(ACTIONS[0], ACTIONS[1] + 1))
    # Without an end, or with a discount, returns compare with 0: there L = 0 and H = 1.
    plain = family.cycles or family.gamma != 1
    low = Fraction(0) if plain else Fraction(int(rng.integers(-4, 3)), 2)
    high = Fraction(1) if plain else low + Fraction(int(rng.integers(1, 5)), 2)

    def outcome(s: int) -> Outcome:
        if s == count - 1 or rng.random() < _ENDING:
            good = rng.random() < _GOOD
            if family.middle and rng.random() < _GOOD:
                return Outcome(END, (low + high) / 2)
            return Outcome(END, high if good else low)
        after = int(rng.integers(0 if family.cycles else s + 1, count))
        return Outcome(after, Fraction(int(rng.integers(-1, 2)) if family.rewards else 0))

    def outcomes(s: int) -> list[Outcome]:
        if not family.stochastic:
            return [outcome(s)]
        share = Fraction(int(rng.integers(1, 10)), 10)
        return [outcome(s)._replace(chance=c) for c in (share, 1 - share)]

    moves = [[outcomes(s) for _ in range(actions)] for s in range(count)]
    behaviour = []
    for _ in range(count):
        weights = family.weights(rng, actions)
        behaviour.append([Fraction(k, sum(weights)) for k in weights])
    return Example(MDP(moves, family.gamma), behaviour, low, high)


def premises(example: Example) -> list[bool]:
    """Which of PREMISES hold."""
    mdp, behaviour, low, high = example
    every = [o for actions in mdp.moves for outcomes in actions for o in outcomes]
    taken = reaching(mdp, high, behaviour)
    return [
        all(len(outcomes) == 1 for actions in mdp.moves for outcomes in actions),
        _acyclic(mdp),
        mdp.gamma == 1,
        low < high
        and all(o.reward in (low, high) if o.state == END else o.reward == 0 for o in every),
        reaching(mdp, high) <= taken,
    ]


def matters(example: Example) -> bool:
    """Some state can reach H, and there an action after which H is out of reach."""
    able = reaching(example.mdp, example.high)
    return any(
        not any(leads(o, able, example.high) for o in outcomes)
        for s in able
        for outcomes in example.mdp.moves[s]
    )


def ends(example: Example) -> bool:
    """The behaviour can end from everywhere, so that its values exist."""
    states = reaching(example.mdp, None, example.behaviour)
    return len(states) == len(example.mdp.moves)


def reaching(mdp: MDP, reward: Fraction | None, policy: Policy | None = None) -> set[int]:
    """States from which an end with the reward (None: any end) can follow, under the policy."""
    found: set[int] = set()
    while True:
        more = {
            s
            for s in mdp.states
            for k, outcomes in enumerate(mdp.moves[s])
            if policy is None or policy[s][k]
            if any(leads(o, found, reward) for o in outcomes)
        }
        if more == found:
            return found
        found = more


def leads(outcome: Outcome, states: set[int], reward: Fraction | None) -> bool:
    if outcome.state == END:
        return reward is None or outcome.reward == reward
    return outcome.state in states


def _acyclic(mdp: MDP) -> bool:
    """No state comes back: taking away states without successors takes away all."""
    after = {
        s: {o.state for outcomes in mdp.moves[s] for o in outcomes if o.state != END}
        for s in mdp.states
    }
    while after:
        done = {s for s in after if not after[s] & after.keys()}
        if not done:
            return False
        after = {s: states for s, states in after.items() if s not in done}
    return True
