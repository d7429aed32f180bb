"""How near an update comes to its matrix products alone, and where the rest goes.

The bound is a compiled loop of the products of one update, in the shapes and layouts of the real
one, and nothing else. The rest is found by taking one part at a time out of a copy of the update
loop; `loop` must follow rbve/training/update.py, and its rate beside the real one shows if it does.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import data
from timing import Figure, Lap, interleave, lap, ratio

from rbve import api  # first, since it prepares the backend

# isort: split
import jax
import jax.numpy as jnp
import optax

from rbve import ops
from rbve.spec import Spec
from rbve.training.batches.table import Table, transition_table
from rbve.training.update import DRAWS, Member, draw, make_program, member_keys
from rbve.types import Array

PARTS = ("rows", "loss", "optimiser", "metrics")
WORDS = {
    "rows": "drawing and gathering rows",
    "loss": "loss arithmetic",
    "optimiser": "Adam beyond a plain step",
    "metrics": "metric sums",
}
BATCH, HIDDEN = 128, 56


def measure(quick: bool) -> list[Figure]:
    updates, rounds = (1000, 5) if quick else (2000, 25)
    with tempfile.TemporaryDirectory() as scratch:
        dataset = api.load(data.record(Path(scratch)))
        figures: list[Figure] = []
        for algorithm, passes in (("dqn", 3), ("rbve", 2)):
            figures += measure_one(algorithm, passes, dataset, updates, rounds)
    return figures


def measure_one(
    algorithm: str, passes: int, dataset: Any, updates: int, rounds: int
) -> list[Figure]:
    """`passes`: networks evaluated forwards; R-BVE asks the online network nothing about s'."""
    spec, table, member = set_up(algorithm, dataset)
    contestants = {
        "products": timed(products(table, passes), updates),
        "update": timed(real_update(spec, table, member), updates),
        "copy": timed(loop(spec, table, member, PARTS), updates),
    }
    for part in PARTS:
        kept = tuple(other for other in PARTS if other != part)
        contestants[f"without {part}"] = timed(loop(spec, table, member, kept), updates)
    laps = interleave(contestants, rounds)

    def share(slow: str, fast: str) -> tuple[float, str]:
        wall, cpu = ratio(laps[fast], laps[slow])
        return 100 * wall, f"by CPU time {100 * cpu:.0f} %"

    value, note = share("update", "products")
    figures = [Figure("bound", f"{algorithm}: share of the products' bound", value, "%", note)]
    value, note = share("copy", "update")
    figures.append(
        Figure("bound", f"{algorithm}: update / copy of its loop, time", value, "%", note)
    )
    for part in PARTS:
        wall, cpu = ratio(laps[f"without {part}"], laps["copy"])
        figures.append(
            Figure(
                "bound",
                f"{algorithm}: {WORDS[part]}, of an update",
                100 * (1 - wall),
                "%",
                f"by CPU time {100 * (1 - cpu):.0f} %",
            )
        )
    return figures


def set_up(algorithm: str, dataset: Any, target_period: int = 125) -> tuple[Spec, Table, Member]:
    spec = Spec.of(algorithm=algorithm).resolved()
    loaded = spec.load_algorithm()
    table = transition_table([loaded.keep(dataset)], spec.view, loaded.bootstrap)  # type: ignore[arg-type]
    member = Member(
        key=member_keys(0)[1],
        offset=jnp.int32(0),
        size=jnp.int32(table.count[0]),
        g_scale=jnp.float32(table.g_scale[0]),
        learning_rate=jnp.float32(3e-4),
        target_period=jnp.int32(target_period),
        config=jax.tree.map(jnp.float32, spec.load_config()),
    )
    return spec, table, member


def timed(advance: Callable[[int], Any], updates: int) -> Callable[[], Lap]:
    jax.block_until_ready(advance(DRAWS))  # compiles
    return lambda: lap(lambda: jax.block_until_ready(advance(updates)))


def products(table: Table, passes: int) -> Callable[[int], Any]:
    """Weights (out, in) @ activations (in, B), forwards `passes` times and backwards once."""
    inputs, outputs = math.prod(table.items.obs_shape), table.items.actions
    keys = jax.random.split(jax.random.key(0), 5)
    online = weights(keys[0], inputs, outputs)
    target = weights(keys[1], inputs, outputs)
    # A batch that changes with every update keeps the compiler from moving products out.
    now, later = jax.random.normal(keys[2], (2, DRAWS, inputs, BATCH))

    def forward(layers: list[Array], x: Array) -> list[Array]:
        values = [x]
        for weight in layers:
            values.append(weight @ values[-1])
        return values

    def one(step: Array, _: Any, now: Array, later: Array, online: Any, target: Any) -> Any:
        x, next_x = now[step % DRAWS], later[step % DRAWS]
        values = forward(online, x)
        others = [forward(layers, next_x)[-1] for layers in (target, online)[: passes - 1]]
        back, gradients = values[-1], []
        for depth in (2, 1, 0):
            gradients.append(back @ values[depth].T)
            if depth:
                back = online[depth].T @ back
        return gradients, others

    @jax.jit
    def run(updates: int, now: Array, later: Array, online: Any, target: Any) -> Any:
        args = (now, later, online, target)
        start = jax.tree.map(
            lambda leaf: jnp.zeros(leaf.shape), jax.eval_shape(one, 0, None, *args)
        )
        return jax.lax.fori_loop(0, updates, lambda step, out: one(step, out, *args), start)

    return lambda updates: run(updates, now, later, online, target)


def weights(key: Array, inputs: int, outputs: int) -> list[Array]:
    sizes = [inputs, HIDDEN, HIDDEN, outputs]
    keys = jax.random.split(key, 3)
    return [
        jax.random.normal(k, (b, a)) / a**0.5
        for k, a, b in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def real_update(spec: Spec, table: Table, member: Member) -> Callable[[int], Any]:
    program = make_program(spec, table.items)
    state = program.init(member_keys(0)[0])
    rows = jax.tree.map(jnp.asarray, table.store)
    compiled = jax.jit(program.advance)
    return lambda updates: compiled(state, rows, member, updates)


def neighbours(table: Table, store: Any, start: Array, count: int) -> Any:
    """Transitions from `start` on, their frames and numbers copied in one piece each."""
    blank = table.items.blank(count)
    numbers = jax.lax.dynamic_slice_in_dim(store.numbers, start, count)
    frames = jax.lax.dynamic_slice_in_dim(store.frames, start, 2 * count)
    return blank._replace(numbers=numbers, frames=frames.reshape(blank.frames.shape))


def loop(spec: Spec, table: Table, member: Member, parts: tuple[str, ...]) -> Callable[[int], Any]:
    """The update loop with only some of its parts. What is missing has a cheap stand-in."""
    program = make_program(spec, table.items)
    algorithm, options, td = program.algorithm, program.options, ops.TD(spec.td)
    adam = optax.adam(member.learning_rate)
    rows = jax.tree.map(jnp.asarray, table.store)
    state = program.init(member_keys(0)[0])

    def mean_loss(params: Array, target: Any, picked: Any, key: Array) -> Any:
        batch = table.items.batch(picked, member.g_scale)
        *draws, mixture = jax.random.split(key, 4)
        views = table.items.views(program.unravel(params), target, picked, draws)
        if "loss" in parts:
            value, metrics = algorithm.loss(views, batch, member.config, options, td, mixture)
            return jnp.sum(value * batch.weight) / jnp.sum(batch.weight), {"loss": value, **metrics}
        # Every network's output is used once: all products stay.
        outputs = views.target.q + (views.next.q if spec.algorithm == "dqn" else 0.0)
        value = jnp.sum(views.now.q * outputs, axis=-1)
        return jnp.mean(value), {"loss": value, "td_loss": value, "q": value}

    def step(params: Array, opt: Any, grad: Array) -> tuple[Array, Any, Array]:
        norm2 = jnp.vdot(grad, grad)
        finite = jnp.isfinite(norm2)
        plain = (-member.learning_rate * grad, opt)
        moves, new = adam.update(grad, opt) if "optimiser" in parts else plain
        params, opt = jax.tree.map(
            lambda new, old: jnp.where(finite, new, old),
            (params + moves, new),
            (params, opt),
        )
        return params, opt, norm2

    def segment(block: Array, carry: Any, rows: Any, keys: Array) -> Any:
        params, target, opt, sums = carry
        key_draws, key_loss = keys
        index = (
            draw(key_draws, block, member.size, spec.sampling.batch_size)
            if "rows" in parts
            else None
        )
        network = program.unravel(target)

        def one(k: Array, carry: Any) -> Any:
            params, opt, sums = carry
            if index is None:  # neighbouring rows, by one copy
                start = (k * 37) % (int(table.count[0]) - 2 * spec.sampling.batch_size)
                picked = neighbours(table, rows, start, spec.sampling.batch_size)
            else:
                picked = table.items.fetch(rows, index[k])
            grad, metrics = jax.grad(mean_loss, has_aux=True)(
                params, network, picked, jax.random.fold_in(key_loss, k)
            )
            params, opt, norm2 = step(params, opt, grad)
            if "metrics" in parts:
                sums = jax.tree.map(jnp.add, sums, {"grad_norm2": norm2, **metrics})
            return params, opt, sums

        params, opt, sums = jax.lax.fori_loop(0, DRAWS, one, (params, opt, sums))
        return params, params, opt, sums

    shapes = jax.eval_shape(
        mean_loss,
        state.params,
        program.unravel(state.target),
        table.items.blank(spec.sampling.batch_size),
        member.key,
    )[1]
    sums = {name: jnp.zeros(shape.shape) for name, shape in shapes.items()}
    start = (state.params, state.target, state.opt, {"grad_norm2": jnp.zeros(()), **sums})

    @jax.jit
    def run(blocks: int, start: Any, rows: Any, keys: Array) -> Any:
        return jax.lax.fori_loop(
            0, blocks, lambda block, carry: segment(block, carry, rows, keys), start
        )

    return lambda updates: run(-(-updates // DRAWS), start, rows, jax.random.split(member.key))
