"""Q-learning escapes to infinity on three logged transitions (appendix A).

    s1 --a0, r=1--> end,   s1 --a1--> s2,   s2 --a2--> s3     with s1 = 0, s2 = 1, s3 = β_toy

    Q(s, a) = w relu(s) + u1 relu(a[0] − 2s) + u2 relu(a[1] − 2s) + u3 relu(−2s − a[2])

At s2 and s3 only w counts: Q = w and Q = β_toy w. The third transition then pulls w towards
γ β_toy w, away from itself where γ β_toy > 1, and no transition out of s3 corrects it. Each step
multiplies w by 1 + lr (γ β_toy − 1).

The paper's one-hot vectors of a0 and a2 are swapped, else Q(s1, a0) = 0; ∇u3 is 0; the gradients
leave out the square's factor 2 (`factor`). BVE has no target for the third transition, since the
log holds no action in s3: that alone keeps it bounded, as the runs with an `end` of "bootstrap"
show. The losses are the library's own.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from rbve import ops
from rbve.algorithms import NoOptions, bve, dqn
from rbve.paper.theory import check_scale
from rbve.rows import Row, Run
from rbve.types import Array, Batch, Head, Views

QUESTION = (
    "Does Q-learning escape to infinity on a log that holds the whole optimal path, "
    "and does behaviour value estimation stay bounded?"
)
_GAMMA = 0.99
_BETA_TOY = 1.1  # the feature of s3; not the β of the paper's weights
_LEARNING_RATE = 0.1
_MOMENTUM = 0.9
_STEPS = 4000
_POINTS = {"all": 60, "one": 20}  # updates with rows, evenly on a log scale, by Case.batch
_LIMIT = 100.0  # |Q| beyond which a run has escaped; the largest true |Q| is 1
SEEDS = {"quick": 5, "desk": 20}  # of the runs that see one transition per update

_STATES = (0.0, 1.0, _BETA_TOY)  # features of s1, s2, s3
_NEXT = (0, 1, 2)  # state that follows each transition; the first ends, so its entry counts nothing
_ACTIONS = 3
# Hidden units by inputs [s, a[0], a[1], a[2]].
FIRST = ((1.0, 0.0, 0.0, 0.0), (-2.0, 1.0, 0.0, 0.0), (-2.0, 0.0, 1.0, 0.0), (-2.0, 0.0, 0.0, -1.0))

OPTIMISERS: dict[str, Callable[[], optax.GradientTransformation]] = {
    "sgd": lambda: optax.sgd(_LEARNING_RATE),
    "momentum": lambda: optax.sgd(_LEARNING_RATE, momentum=_MOMENTUM),
    "rmsprop": lambda: optax.rmsprop(_LEARNING_RATE),
    "adam": lambda: optax.adam(_LEARNING_RATE),
}
COLUMNS = {"w": 0, "q/s1/a0": 1, "q/s1/a1": 2, "q/s2/a2": 6}  # of a trajectory
_ENDS = ("logged", "terminal", "bootstrap")  # see Case.end


@dataclass(frozen=True)
class Case:
    """One run."""

    method: str  # "q" or "bve"
    optimiser: str = "sgd"
    first_layer: str = "fixed"  # or "learned"
    end: str = "logged"  # of BVE: leave (s2, a2) out, call s3 terminal, or bootstrap from (s3, a2)
    batch: str = "all"  # transitions per update: "all" three, or "one" drawn at random
    w: float = 1.0  # at the start; u1 = u2 = u3 = 0
    factor: float = 1.0  # of the gradient: 1 as printed, 2 as the printed loss has it
    seed: int = 0  # of the draws; idle when all transitions are seen

    @property
    def job(self) -> str:
        plain = asdict(Case(self.method, self.optimiser))
        changed = {k: v for k, v in asdict(self).items() if v != plain[k]}
        if self.batch == "one":
            changed["seed"] = self.seed
        parts = ["divergence", self.method, self.optimiser]
        return "/".join([*parts, *(f"{k}={v}" for k, v in changed.items())])


class Toy(NamedTuple):
    """The weights: hidden units by inputs, and one output weight per hidden unit."""

    first: Array  # (4, 4)
    last: Array  # (4,) w, u1, u2, u3


def q_values(toy: Toy, states: Array) -> Array:
    """Q of every action: (B,) -> (B, 3)."""
    shape = (len(states), _ACTIONS)
    actions = jnp.broadcast_to(jnp.eye(_ACTIONS), (*shape, _ACTIONS))
    inputs = jnp.concatenate([jnp.broadcast_to(states[:, None, None], (*shape, 1)), actions], -1)
    return jax.nn.relu(inputs @ toy.first.T) @ toy.last


def loss(toy: Toy, method: str, discount: Array, weight: Array) -> Array:
    """½ Σ (Q − target)² over the log, by the library's own losses; target network = network."""
    states = jnp.array(_STATES)
    now, after = (
        q_values(toy, states[jnp.array([0, 0, 1])]),
        q_values(toy, states[jnp.array(_NEXT)]),
    )
    after = jax.lax.stop_gradient(after)
    batch = Batch(
        action=jnp.array([0, 1, 2]),
        reward=jnp.array([1.0, 0.0, 0.0]),
        discount=discount,
        next_action=jnp.array([0, 2, 2]),  # the last is not in the log: see Case.end
        has_next_action=jnp.array([False, True, False]),
        g=jnp.zeros(3),
        g_scale=jnp.zeros(()),
        weight=weight,
    )
    views = Views(Head(now, now), Head(after, after), Head(after, after))
    key = jax.random.key(0)  # neither loss draws
    if method == "q":
        options = dqn.Options(double=False)
        each, _ = dqn.loss(views, batch, dqn.Config(), options, ops.TD(), key)
    else:
        each, _ = bve.loss(views, batch, bve.Config(), NoOptions(), ops.TD(), key)
    return 0.5 * jnp.sum(weight * each)


def _trajectory(given: tuple[Array, ...], method: str, optimiser: str) -> Array:
    """w and Q of all states and actions, at the start and after every update: (steps + 1, 10)."""
    w, learned, factor, discount, weights = given
    rule = OPTIMISERS[optimiser]()
    toy = Toy(jnp.array(FIRST), jnp.array([1.0, 0.0, 0.0, 0.0]) * w)

    def seen(toy: Toy) -> Array:
        return jnp.concatenate([toy.last[:1], q_values(toy, jnp.array(_STATES)).ravel()])

    def update(carry: tuple, weight: Array) -> tuple[tuple, Array]:
        toy, memory = carry
        slope = jax.grad(loss)(toy, method, discount, weight)
        slope = Toy(slope.first * learned * factor, slope.last * factor)
        change, memory = rule.update(slope, memory, toy)
        toy = optax.apply_updates(toy, change)
        return (toy, memory), seen(toy)

    _, path = jax.lax.scan(update, (toy, rule.init(toy)), weights)
    return jnp.concatenate([seen(toy)[None], path])


def prepare(case: Case, steps: int) -> tuple[Array, ...]:
    """What distinguishes runs of one program.

    w, whether the first layer learns, factor; (3,) discounts of the transitions; (steps, 3) weights
    of the transitions in each update.
    """
    used = np.ones(3)
    discount = np.array([0.0, _GAMMA, _GAMMA])
    if case.method == "bve" and case.end == "logged":
        used[2] = 0.0
    if case.method == "bve" and case.end == "terminal":
        discount[2] = 0.0
    weight = np.broadcast_to(used, (steps, 3))
    if case.batch == "one":
        rng = np.random.default_rng(case.seed)
        weight = np.eye(3)[rng.choice(np.flatnonzero(used), size=steps)]
    learned = float(case.first_layer == "learned")
    return tuple(map(jnp.asarray, (case.w, learned, case.factor, discount, weight)))


def cases(scale: str, seed: int) -> list[Case]:
    found = []
    for optimiser, first_layer in product(OPTIMISERS, ("fixed", "learned")):
        found.append(Case("q", optimiser, first_layer))
        found += [Case("bve", optimiser, first_layer, end) for end in _ENDS]
    for optimiser, method in product(OPTIMISERS, ("q", "bve")):
        draws = range(seed, seed + SEEDS[scale])
        found += [Case(method, optimiser, batch="one", seed=draw) for draw in draws]
    plain = Case("q")
    found += [replace(plain, w=-1.0), replace(plain, factor=2.0), replace(plain, w=2.0)]
    return [*found, Case("bve", w=2.0)]


def trajectories(wanted: Sequence[Case], steps: int) -> list[NDArray[np.float64]]:
    """In the order of `wanted`; runs of one program together, in double precision."""
    found: dict[Case, NDArray[np.float64]] = {}
    with jax.enable_x64(True):
        for method, optimiser in sorted({(case.method, case.optimiser) for case in wanted}):
            own = [c for c in wanted if (c.method, c.optimiser) == (method, optimiser)]
            stacked = jax.tree.map(lambda *e: jnp.stack(e), *(prepare(c, steps) for c in own))
            program = jax.jit(jax.vmap(partial(_trajectory, method=method, optimiser=optimiser)))
            found |= dict(zip(own, np.asarray(program(stacked)), strict=True))
    return [found[case] for case in wanted]


def rate(case: Case) -> float | None:
    """Factor by which w grows per update in the end, where a closed form is known."""
    pull = case.factor * _LEARNING_RATE * (_GAMMA * _BETA_TOY - 1)
    if case.batch == "one" or case.first_layer == "learned":
        return None
    if case.method == "bve" and case.end != "bootstrap":
        fixed = {"logged": 1.0, "terminal": 1 - case.factor * _LEARNING_RATE}
        return fixed[case.end] if case.optimiser == "sgd" else None
    if case.optimiser == "sgd":
        return 1 + pull
    if case.optimiser == "momentum":  # larger root of z² − (1 + μ + pull) z + μ
        half = (1 + _MOMENTUM + pull) / 2
        return half + math.sqrt(half * half - _MOMENTUM)
    return None


def measures(case: Case, path: NDArray[np.float64]) -> Iterable[Row]:
    finite = np.isfinite(path).all(axis=1)
    last = len(path) - 1 if finite.all() else int(np.argmin(finite)) - 1
    shown = COLUMNS if case.batch == "all" else {"q/s2/a2": COLUMNS["q/s2/a2"]}
    steps = np.geomspace(1, len(path) - 1, _POINTS[case.batch]).round().astype(int)
    for step in sorted({0, last, *(int(k) for k in steps if k <= last)}):
        yield from (Row(step, name, float(path[step, at]), 1) for name, at in shown.items())
    for name, value in summary(case, path[: last + 1]).items():
        yield Row(last, name, value, 1)
    if not finite.all():
        yield Row(last, "overflowed_at", float(last + 1), 1)


def summary(case: Case, path: NDArray[np.float64]) -> dict[str, float]:
    """Over the updates whose values are finite; rates are means over the last half of them."""
    half = len(path) // 2
    start, end = path[-1 - half, COLUMNS["q/s2/a2"]], path[-1, COLUMNS["q/s2/a2"]]
    largest = float(np.abs(path[:, 1:]).max())
    found = {
        "largest": largest,  # |Q| over all updates, states and actions
        "escaped": float(largest > _LIMIT),
        "increment": float(end - start) / half,  # of Q(s2, a2) per update
        "growth": float(abs(end / start) ** (1 / half)) if start else math.nan,
        "greedy/s1": float(np.argmax(path[-1, 1:4])),  # 0 is the optimal action
    }
    if (expected := rate(case)) is not None:
        found["growth/closed_form"] = expected
        if case.optimiser == "sgd":
            exact = case.w * expected ** np.arange(len(path))
            found["closed_form_error"] = float(np.abs(path[:, 0] / exact - 1).max())
    return found


def run(scale: str = "desk", seed: int = 0) -> list[Run]:
    wanted = cases(check_scale(scale), seed)
    settings = {"gamma": _GAMMA, "beta_toy": _BETA_TOY, "learning_rate": _LEARNING_RATE}
    settings |= {"momentum": _MOMENTUM, "steps": _STEPS}
    facts: dict[str, Any] = {"question": QUESTION, "true_q": {"s1/a0": 1.0, "others": 0.0}}
    facts |= {"optimal_action": {"s1": 0}, "limit": _LIMIT}
    paths = zip(wanted, trajectories(wanted, _STEPS), strict=True)
    specs = ({"experiment": "divergence", **asdict(case), **settings} for case in wanted)
    return [
        Run(case.job, spec, facts, list(measures(case, path)))
        for spec, (case, path) in zip(specs, paths, strict=True)
    ]
