"""Exact values of a tabular MDP, and logs of it: truth that estimates are tested against.

    V(s) = Σ_a π(a | s) Σ_s' P(s' | s, a) (r(s, a, s') + γ V(s')),   0 where the episode is over

is solved as a linear system in float64. A policy is a table (S, A) of probabilities, of which rows
of terminal states are not read. The MDPs are those in full, `rbve.envs.base.MDP`, such as
`rbve.envs.icu_sepsis.tables().mdp`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rbve.data.dataset import NO_ACTION, Dataset
from rbve.data.episode import action_names
from rbve.envs.base import MDP

__all__ = [
    "MDP", "SampledLog", "action_values", "check_policy", "optimal_policy", "sample_log",
    "state_values", "value",
]  # fmt: skip

_SUM = 1e-6  # by which probabilities may miss 1: those of 32 bits do
_BETTER = 1e-12  # policy iteration keeps its action unless another is better by more


def check_policy(mdp: MDP, policy: np.ndarray, masked: bool = False) -> np.ndarray:
    """The table in float64; `masked` refuses probability on actions that are not legal.

    Raises:
        ValueError: It has another shape, or a row is no distribution.
    """
    table = np.asarray(policy, np.float64)
    shape = mdp.transition.shape[:2]
    if table.shape != shape:
        raise ValueError(f"a policy here is a table {shape}, states by actions; got {table.shape}")
    live = ~mdp.terminal
    wrong = ~(np.isfinite(table) & (table >= 0)).all(axis=1)
    wrong |= ~(np.abs(table.sum(axis=1) - 1) <= _SUM)
    for state in np.flatnonzero(wrong & live)[:1]:
        raise ValueError(
            f"state {state}: probabilities of actions are at least 0 and add up to 1; got a sum of "
            f"{table[state].sum():g} and a smallest of {table[state].min():g}"
        )
    if masked and mdp.legal is not None:
        outside = np.where(mdp.legal, 0.0, table).sum(axis=1) * live
        for state in np.flatnonzero(outside > 0)[:1]:
            raise ValueError(
                f"state {state}: probability {outside[state]:.3g} on actions that are not legal; "
                "restrict the table to legal actions, or leave masks out with masks=False"
            )
    return table


def state_values(mdp: MDP, policy: np.ndarray) -> np.ndarray:
    """V of every state, (S,).

    Raises:
        ValueError: The table is no policy, or without a discount some state never ends.
    """
    table = check_policy(mdp, policy)
    live = ~mdp.terminal
    moves = np.matmul(table[:, None, :], mdp.transition)[:, 0]  # (S, S)
    if mdp.gamma >= 1:
        _check_ends(mdp, moves)
    system = np.eye(int(live.sum())) - mdp.gamma * moves[np.ix_(live, live)]
    values = np.zeros(len(live))
    values[live] = np.linalg.solve(system, (table * mdp.expected_reward).sum(axis=1)[live])
    return values


def _check_ends(mdp: MDP, moves: np.ndarray) -> None:
    """ValueError where a state has no way to a terminal one, so that its value is no number."""
    linked, ends = moves > 0, mdp.terminal
    while True:
        more = ends | linked[:, ends].any(axis=1)
        if (more == ends).all():
            break
        ends = more
    if not ends.all():
        raise ValueError(
            f"from state {int(np.argmin(ends))} this policy never ends, and with gamma 1 its value "
            "is not defined; give a gamma below 1"
        )


def action_values(mdp: MDP, values: np.ndarray) -> np.ndarray:
    """Q(s, a) = Σ_s' P(s' | s, a) (r(s, a, s') + γ V(s')), (S, A); 0 at terminal states."""
    after = mdp.transition @ np.where(mdp.terminal, 0.0, values)
    return mdp.expected_reward + mdp.gamma * after * ~mdp.terminal[:, None]


def value(mdp: MDP, policy: np.ndarray) -> float:
    """Expected (discounted) return of an episode from the start distribution."""
    return float(mdp.start @ state_values(mdp, policy))


def optimal_policy(mdp: MDP, worst: bool = False) -> np.ndarray:
    """The best of all policies of legal actions, or the worst, (S, A), by policy iteration.

    Without a discount every policy it comes by has to end.
    """
    states, actions, _ = mdp.transition.shape
    legal = np.ones((states, actions), bool) if mdp.legal is None else mdp.legal
    sign = -1.0 if worst else 1.0
    policy = legal / legal.sum(axis=1, keepdims=True)
    choice: np.ndarray | None = None
    while True:
        q = action_values(mdp, state_values(mdp, policy))
        q = np.where(legal, sign * q, -np.inf)
        best = q.argmax(axis=1)
        if choice is not None:
            better = q.max(axis=1) > q[np.arange(states), choice] + _BETTER
            best = np.where(better, best, choice)
            if (best == choice).all():
                return policy
        choice = best
        policy = np.eye(actions)[choice]


class SampledLog(NamedTuple):
    """Episodes of a known policy."""

    dataset: Dataset  # with propensities, and masks where the MDP has them
    state: np.ndarray  # (R,) int32: the state of each row of the dataset, the final ones too


class _Draws:
    """Draws from many distributions at once, by their cumulative sums laid end to end."""

    def __init__(self, chances: np.ndarray) -> None:
        """`chances` (N, K): rows of zeros are never drawn from."""
        row, self.outcome = np.nonzero(chances)
        counts = np.bincount(row, minlength=len(chances))
        self.last = np.cumsum(counts) - 1
        held = chances[row, self.outcome]
        # Row n lies in (n, n + 1]; a sum per row, so that errors do not add up over rows.
        sums = np.cumsum(chances, axis=1)
        self.ends = row + sums[row, self.outcome] / sums[row, -1]
        self.chance = held / sums[row, -1]

    def __call__(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Indices into `outcome` and `chance`."""
        drawn = np.searchsorted(self.ends, rows + rng.random(len(rows)), side="right")
        return np.minimum(drawn, self.last[rows])  # a number just below 1 may round up


def sample_log(
    mdp: MDP,
    policy: np.ndarray,
    episodes: int,
    seed: int | Sequence[int],
    obs: np.ndarray | None = None,
    actions: Sequence[str] | int | None = None,
    max_steps: int = 500,
    masks: bool = True,
) -> SampledLog:
    """Episodes that a policy plays in an MDP, all at once.

    Args:
        mdp: Where it plays.
        policy: (S, A) probabilities; they become the log's propensities.
        episodes: How many.
        seed: Of NumPy's generator; equal seeds give equal logs.
        obs: (S, ...) what is observed in each state; None = the state one-hot.
        actions: Names of the actions; None = their numbers.
        max_steps: An episode that goes on after so many decisions is truncated.
        masks: Whether the log holds the legal actions, if the MDP knows them.

    Raises:
        ValueError: The table is no policy, or takes actions that the masks forbid.
    """
    masked = masks and mdp.legal is not None
    table = check_policy(mdp, policy, masked)
    if episodes < 1 or max_steps < 1:
        raise ValueError(f"episodes and max_steps are at least 1; got {episodes} and {max_steps}")
    if mdp.start[mdp.terminal].any():
        raise ValueError("an episode cannot start in a terminal state; the start distribution does")
    states, count, _ = mdp.transition.shape
    rng = np.random.default_rng(seed)
    choices = _Draws(np.where(mdp.terminal[:, None], 0.0, table))
    taken = (table > 0) & ~mdp.terminal[:, None]  # only these rows are needed
    place = np.cumsum(taken.ravel()) - 1
    successors = _Draws(mdp.transition[taken])
    starts = _Draws(mdp.start[None])
    reward = np.broadcast_to(mdp.reward, mdp.transition.shape)

    alive = np.arange(episodes)
    state = starts.outcome[starts(np.zeros(episodes, np.int64), rng)]
    lengths, last = np.zeros(episodes, np.int64), np.zeros(episodes, np.int64)
    steps = []
    for _ in range(max_steps):
        drawn = choices(state, rng)
        action = choices.outcome[drawn]
        after = successors.outcome[successors(place[state * count + action], rng)]
        paid = reward[state, action, after]
        steps.append((alive, state, action, choices.chance[drawn], paid))
        lengths[alive] += 1
        last[alive] = after
        going = ~mdp.terminal[after]
        alive, state = alive[going], after[going]
        if not len(alive):
            break

    offsets = np.concatenate([[0], np.cumsum(lengths + 1)])
    rows, final = int(offsets[-1]), offsets[1:] - 1
    columns: dict[str, Any] = {
        "state": np.zeros(rows, np.int32),
        "action": np.full(rows, NO_ACTION, np.int32),
        "propensity": np.ones(rows, np.float32),
        "reward": np.zeros(rows, np.float32),
    }
    for step, (playing, *values) in enumerate(steps):
        here = offsets[playing] + step
        for name, column in zip(columns, values, strict=True):
            columns[name][here] = column
    columns["state"][final] = last
    visited = columns.pop("state")
    seen = np.eye(states, dtype=np.float32) if obs is None else np.asarray(obs, np.float32)
    returns = np.add.reduceat(columns["reward"].astype(np.float64), offsets[:-1])
    dataset = Dataset(
        **columns,
        obs=seen[visited],
        offsets=offsets,
        terminated=mdp.terminal[last],
        complete=np.ones(episodes, bool),
        episode_return=returns,
        actions=action_names(count if actions is None else actions),
        executed=columns["action"].copy(),
        legal=mdp.legal[visited] if masked and mdp.legal is not None else None,
    )
    return SampledLog(dataset, visited)
