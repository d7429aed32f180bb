"""Over-estimation from extrapolation (the paper's sketch), from real fits.

One state, ACTIONS actions in a row on [−1, 1], a random smooth Q over them. A function
approximator Q_θ sees the exact Q of a few of them. Nothing bootstraps: what is measured is the
error that one maximum over unobserved actions picks up.

    exceeds         max over unobserved actions of Q_θ  >  max over all actions of Q
    exceeds/clearly the same by more than CLEARLY deviations of Q
    chosen_error    Q_θ(a) − Q(a) at a = argmax Q_θ
    unchosen_error  the same error averaged over all unobserved actions, without a maximum
"""

from functools import partial
from itertools import product
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from rbve.paper.theory import check_scale
from rbve.rows import Row, Run
from rbve.types import Array

QUESTION = (
    "Fitted to the values of observed actions alone, how often does a maximum over unobserved "
    "actions exceed the true maximum?"
)
ACTIONS = 41
OBSERVED = (2, 3, 5, 8, 12, 20, 30)  # actions observed
_WAVES = 3  # of the true Q
_CLEARLY = 0.1  # deviations of Q
HIDDEN, _LEARNING_RATE = (32, 32), 5e-3
_UPDATES = {"quick": 1000, "desk": 2000}
SEEDS = {"quick": 30, "desk": 200}
_EXAMPLES, _EXAMPLE_OBSERVED = 3, 5  # fits shown in full: the first seeds, whatever they look like

Floats = NDArray[np.float64]


class Case(NamedTuple):
    """One random state."""

    q: Floats  # (ACTIONS,) true values: mean 0, deviation 1 over the actions
    observed: NDArray[np.int64]  # sorted


def actions() -> Floats:
    return np.linspace(-1.0, 1.0, ACTIONS)


def draw(seed: int, count: int) -> Case:
    """The same seed has the same Q and nested sets of observed actions."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=_WAVES) / np.arange(1, _WAVES + 1)
    phase = rng.uniform(0, 2 * np.pi, size=_WAVES)
    waves = np.cos(np.pi * np.arange(1, _WAVES + 1)[:, None] * actions() + phase[:, None])
    q = size @ waves
    return Case((q - q.mean()) / q.std(), np.sort(rng.permutation(ACTIONS)[:count]))


def fit_cubic(cases: list[Case], seeds: list[int], updates: int) -> Floats:
    """Least squares on 1, a, a², a³; below four actions the solution of least norm."""
    features = actions()[:, None] ** np.arange(4)
    weights = [np.linalg.lstsq(features[c.observed], c.q[c.observed])[0] for c in cases]
    return np.array(weights) @ features.T


def network(key: Array) -> eqx.nn.MLP:
    return eqx.nn.MLP("scalar", "scalar", HIDDEN[0], len(HIDDEN), key=key)


def train(key: Array, x: Array, y: Array, weight: Array, updates: int) -> Array:
    """Q_θ of all actions after full-batch Adam on (x, y)."""
    params, static = eqx.partition(network(key), eqx.is_array)
    rule = optax.adam(optax.cosine_decay_schedule(_LEARNING_RATE, updates))

    def error(params: eqx.nn.MLP) -> Array:
        return jnp.sum(weight * (jax.vmap(eqx.combine(params, static))(x) - y) ** 2)

    def update(carry: tuple, _: None) -> tuple[tuple, None]:
        params, memory = carry
        change, memory = rule.update(jax.grad(error)(params), memory)
        return (optax.apply_updates(params, change), memory), None

    (params, _), _ = jax.lax.scan(update, (params, rule.init(params)), None, updates)
    return jax.vmap(eqx.combine(params, static))(jnp.asarray(actions(), jnp.float32))


@partial(jax.jit, static_argnums=4)
def _train_all(keys: Array, x: Array, y: Array, weight: Array, updates: int) -> Array:
    return jax.vmap(partial(train, updates=updates))(keys, x, y, weight)


def fit_mlp(cases: list[Case], seeds: list[int], updates: int) -> Floats:
    # Padded to one shape, so that all numbers of observed actions share one compiled program.
    x, y, weight = np.zeros((3, len(cases), max(OBSERVED)), np.float32)
    for k, case in enumerate(cases):
        count = len(case.observed)
        x[k, :count] = actions()[case.observed]
        y[k, :count] = case.q[case.observed]
        weight[k, :count] = 1 / count
    keys = jnp.stack([jax.random.key(seed) for seed in seeds])
    return np.asarray(_train_all(keys, x, y, weight, updates), np.float64)


_FITS = {"mlp": fit_mlp, "cubic": fit_cubic}


def measures(case: Case, fitted: Floats) -> dict[str, float]:
    seen = np.zeros(ACTIONS, bool)
    seen[case.observed] = True
    chosen = int(np.argmax(fitted))
    careful = int(np.argmax(np.where(seen, fitted, -np.inf)))
    error = fitted - case.q
    best = case.q.max()
    return {
        "exceeds": float(fitted[~seen].max() > best),
        "exceeds/clearly": float(fitted[~seen].max() > best + _CLEARLY),
        "chosen_unobserved": float(not seen[chosen]),
        "chosen_error": float(error[chosen]),
        "unchosen_error": float(error[~seen].mean()),
        "regret": float(best - case.q[chosen]),  # of acting greedily
        "regret/observed": float(best - case.q[careful]),  # greedily among observed actions
        "fit_error": float(np.sqrt(np.mean(error[seen] ** 2))),
    }


def _example_rows(index: int, case: Case, fitted: Floats, step: int) -> list[Row]:
    seen = np.isin(np.arange(ACTIONS), case.observed)
    columns = {"a": actions(), "q": case.q, "fit": fitted, "observed": seen.astype(float)}
    return [
        Row(step, f"example/{index}/{name}/{k}", float(value), 1)
        for name, values in columns.items()
        for k, value in enumerate(values)
    ]


def run(scale: str = "desk", seed: int = 0) -> list[Run]:
    scale = check_scale(scale)
    seeds = list(range(seed, seed + SEEDS[scale]))
    facts = {"question": QUESTION, "unit": "deviations of Q over the actions", "clearly": _CLEARLY}
    runs = []
    for name, count in product(_FITS, OBSERVED):
        updates = _UPDATES[scale] if name == "mlp" else 0
        cases = [draw(each, count) for each in seeds]
        fitted = _FITS[name](cases, seeds, updates)
        rows = [
            Row(updates, f"{metric}/{each}", value, 1)
            for each, case, values in zip(seeds, cases, fitted, strict=True)
            for metric, value in measures(case, values).items()
        ]
        for k in range(_EXAMPLES if count == _EXAMPLE_OBSERVED else 0):
            rows += _example_rows(k, cases[k], fitted[k], updates)
        own: dict[str, object] = {"degree": 3}
        if name == "mlp":
            own = {"hidden": list(HIDDEN), "activation": "relu", "optimiser": "adam, cosine decay"}
            own |= {"learning_rate": _LEARNING_RATE, "updates": updates}
        spec = {"experiment": "extrapolation", "approximator": name, **own}
        spec |= {"actions": ACTIONS, "observed": count, "waves": _WAVES}
        spec["seeds"] = [seeds[0], len(seeds)]  # first, how many
        runs.append(Run(f"extrapolation/{name}/{count}", spec, facts, rows))
    return runs
