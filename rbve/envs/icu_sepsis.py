"""ICU-Sepsis: treating sepsis, an MDP of 716 states made from MIMIC-III (arXiv:2406.05646).

Its package `icu-sepsis` 2.0.1 holds the MDP as arrays; they are read, nothing of it is imported.

    states     713 of a patient; then death (713), survival (714), and what follows both (715)
    actions    25: five levels of fluids × five of vasopressors, id = 5 · fluids + vasopressors. The
               package does not name the axes; the one that is mostly 0 is taken for vasopressors
    legal      the admissible actions, those the hospital's records show often enough: 1 to 13,
               3.1 on average. Any other acts like a random admissible one (the package's default)
    reward     1 on survival, else 0; with γ = 1 a policy's value is the share of survivors
    ends       death and survival terminate; after 500 steps, the package's limit, truncation

Observation: the 47 features of the state, standardised ('icu_sepsis', 'icu_sepsis:features'), or
the state one-hot ('icu_sepsis:states'). After the end features are 0.
"""

import functools
import importlib.metadata
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from rbve.envs._host import check_option
from rbve.envs.base import MDP, Env, Step

STATES, LEVELS = 716, 5
DEATH, SURVIVAL, AFTER = 713, 714, 715
MAX_STEPS = 500
ACTIONS = tuple(f"fluids{f}-vaso{v}" for f in range(LEVELS) for v in range(LEVELS))
_OBSERVATIONS = ("features", "states")
_INSTALL = 'pip install "rbve[icu]"'
_ASSETS = "icu_sepsis/envs/assets"


class Tables(NamedTuple):
    """The arrays of the package; S = 716 states, A = 25 actions."""

    mdp: MDP
    clinicians: np.ndarray  # (S, A) as estimated; 12% of their decisions are not admissible
    admissible_clinicians: np.ndarray  # (S, A) the same among admissible actions, for masked logs
    features: np.ndarray  # (S, 47)
    sofa: np.ndarray  # (S,) how ill patients are, 0 to 24: mean SOFA score


@functools.cache
def tables() -> Tables:
    """Read once: 100 MB in memory. ImportError where the package is not installed."""
    try:
        folder = Path(str(importlib.metadata.distribution("icu-sepsis").locate_file(_ASSETS)))
    except importlib.metadata.PackageNotFoundError:
        raise ImportError(f"icu_sepsis needs the arrays of icu-sepsis; {_INSTALL}") from None
    with np.load(folder / "dynamics.npz", allow_pickle=False) as arrays:
        transition, rewards = arrays["tx_mat"], arrays["r_mat"]
        start, clinicians = arrays["d_0"], arrays["expert_policy"]
        features, sofa = arrays["state_cluster_centers"], arrays["sofa_scores"]
    reward = rewards[0, 0]  # by the state that is reached
    terminal = np.arange(len(start)) >= DEATH
    if transition.shape != (STATES, len(ACTIONS), STATES) or (rewards[~terminal] != reward).any():
        raise ValueError(f"{folder}: not the arrays of icu-sepsis 2.0.1; {_INSTALL}")
    legal = _read_legal(folder / "admissible_actions.txt")
    mdp = MDP(transition, reward[None, None], start / start.sum(), terminal, legal)
    allowed = np.where(legal, clinicians, 0.0)
    allowed[terminal] = 1.0  # nobody decides there; the package has zeros
    allowed /= allowed.sum(axis=1, keepdims=True)
    return Tables(mdp, clinicians, allowed, features, sofa)


def _read_legal(file: Path) -> np.ndarray:
    """A line of counts, then for each state its admissible actions."""
    legal = np.zeros((STATES, len(ACTIONS)), bool)
    for state, line in enumerate(file.read_text("utf-8").splitlines()[1 : STATES + 1]):
        legal[state, [int(action) for action in line.split()]] = True
    return legal


class State(NamedTuple):
    state: Array  # int32
    clock: Array  # int32: steps taken


class _Compact(NamedTuple):
    """What the environment draws from: the successors of each (state, action) that can be."""

    start: np.ndarray  # (S,) cumulative
    row: np.ndarray  # (S, A) int32: inadmissible actions of a state share one
    cumulative: np.ndarray  # (rows, K): above 1 behind the last successor
    successor: np.ndarray  # (rows, K) int32
    legal: np.ndarray  # (S, A)
    reward: np.ndarray  # (S,) by the state that is reached
    observation: np.ndarray | None  # (S, D); None = one-hot


@functools.cache
def _compact(observation: str) -> _Compact:
    known = tables()
    legal = known.mdp.legal
    assert legal is not None
    inadmissible = np.argmin(legal, axis=1)  # the first, of equal ones
    representative = np.where(legal, np.arange(len(ACTIONS)), inadmissible[:, None])
    pairs = np.arange(STATES)[:, None] * len(ACTIONS) + representative
    distinct, row = np.unique(pairs, return_inverse=True)
    chances = known.mdp.transition.reshape(-1, STATES)[distinct]
    width = int((chances > 0).sum(axis=1).max())
    successor = np.argsort(chances == 0, axis=1, kind="stable")[:, :width]  # possible ones first
    ordered = np.take_along_axis(chances, successor, axis=1)
    cumulative = np.cumsum(ordered, axis=1) / ordered.sum(axis=1, keepdims=True)
    last = (ordered > 0).sum(axis=1) - 1
    cumulative[np.arange(width) >= last[:, None]] = 2.0
    return _Compact(
        start=np.cumsum(known.mdp.start),
        row=row.reshape(legal.shape).astype(np.int32),
        cumulative=cumulative,
        successor=successor.astype(np.int32),
        legal=legal,
        reward=known.mdp.reward[0, 0],
        observation=known.features if observation == "features" else None,
    )


def _observe(known: _Compact, state: Array) -> Array:
    if known.observation is None:
        return (jnp.arange(STATES) == state).astype(float)
    return jnp.asarray(known.observation)[state]


def reset(known: _Compact, key: Array) -> tuple[State, Array]:
    begun = jnp.sum(jax.random.uniform(key) >= jnp.asarray(known.start))
    state = jnp.minimum(begun, DEATH - 1).astype(jnp.int32)
    return State(state, jnp.int32(0)), _observe(known, state)


def step(known: _Compact, state: State, action: Array, key: Array) -> tuple[State, Step]:
    action = jnp.asarray(action, jnp.int32)
    row = jnp.asarray(known.row)[state.state, action]
    place = jnp.sum(jax.random.uniform(key) >= jnp.asarray(known.cumulative)[row])
    after = State(jnp.asarray(known.successor)[row, place], state.clock + 1)
    ended = after.state >= DEATH
    over = state.state >= DEATH
    return after, Step(
        obs=_observe(known, after.state),
        reward=jnp.where(over, 0.0, jnp.asarray(known.reward)[after.state]),
        terminated=ended,
        truncated=(after.clock >= MAX_STEPS) & ~ended,
        executed=action,
    )


def legal_actions(known: _Compact, state: State) -> Array:
    return jnp.asarray(known.legal)[state.state]


@functools.cache  # the same observation gives the identical functions: compiled code is shared
def make(observation: str = "features") -> Env:
    wrong = f"icu_sepsis has no observation '{observation}'"
    check_option(wrong, "icu_sepsis", observation, _OBSERVATIONS)
    known = _compact(observation)
    size = STATES if known.observation is None else known.observation.shape[1]
    functions = functools.partial(reset, known), functools.partial(step, known)
    legal = functools.partial(legal_actions, known)
    return Env(f"icu_sepsis:{observation}", (size,), ACTIONS, MAX_STEPS, *functions, legal)
