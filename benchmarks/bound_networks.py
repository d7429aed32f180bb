"""How near updates of MinAtar's network and of R2D2's come to their matrix products alone.

As in bound.py, the bound is a compiled loop of the products of one update in its own shapes, and
nothing else: no drawing of rows, no activations, no loss, no optimiser. Data is random, of the size
of the studies' recordings where that matters (rows are gathered from all of it).
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from timing import Figure, Lap, interleave, lap, ratio

from rbve import api  # first, since it prepares the backend

# isort: split
import jax
import jax.numpy as jnp
import numpy as np

from rbve.data import Dataset, Episode, write
from rbve.spec import Spec
from rbve.training.batches.table import Table
from rbve.training.run import table_for
from rbve.training.update import Member, make_program, member_keys
from rbve.types import Array

BOARD = (10, 10, 4)  # breakout's
ROWS = 200_000
KEPT = 8  # batches that the products take in turns
ACTIONS = 6
STEPS, FEATURES = 100, 128  # of a sequence, and of a step's observation


def measure(quick: bool) -> list[Figure]:
    rounds = 3 if quick else 9
    with tempfile.TemporaryDirectory() as scratch:
        figures = []
        boards = boards_store(Path(scratch) / "boards", ROWS // 10 if quick else ROWS)
        for algorithm, passes in (("bve", 2), ("dqn", 3)):
            spec = Spec.of(algorithm=algorithm, torso="board", batch_size=32, target_period=250)
            words = f"MinAtar's network, {algorithm}, batch 32"
            figures.append(share(words, spec, boards, board_products(32, passes), 500, rounds))
        walks = walks_store(Path(scratch) / "walks")
        for units, updates in ((64, 100), (512, 8)):
            spec = Spec.of(algorithm="bve", memory=units, hidden=(units,), batch_size=8)
            words = f"R2D2's network, bve, {units} units, batch 8"
            made = memory_products(units, 8)
            figures.append(share(words, spec, walks, made, updates, rounds))
    return figures


def share(
    words: str, spec: Spec, store: Path, products: Callable[[int], Any], updates: int, rounds: int
) -> Figure:
    contestants = {
        "products": timed(products, updates),
        "update": timed(real(spec, store), updates),
    }
    laps = interleave(contestants, rounds)
    wall, cpu = ratio(laps["products"], laps["update"])
    note = f"by CPU time {100 * cpu:.0f} %"
    return Figure("bound", f"{words}: share of the products' bound", 100 * wall, "%", note)


def timed(advance: Callable[[int], Any], updates: int) -> Callable[[], Lap]:
    jax.block_until_ready(advance(2))  # compiles
    return lambda: lap(lambda: jax.block_until_ready(advance(updates)))


def real(spec: Spec, store: Path) -> Callable[[int], Any]:
    """Updates as `rbve train` makes them, from a store in memory."""
    spec = spec.resolved()
    table: Table = table_for(spec, [api.load(store)])
    member = Member(
        key=member_keys(0)[1],
        offset=jnp.int32(0),
        size=jnp.int32(table.count[0]),
        g_scale=jnp.float32(table.g_scale[0]),
        learning_rate=jnp.float32(3e-4),
        target_period=jnp.int32(250),
        config=jax.tree.map(jnp.float32, spec.load_config()),
    )
    program = make_program(spec, table.items)
    state = program.init(member_keys(0)[0])
    rows = jax.tree.map(jnp.asarray, table.store)
    compiled = jax.jit(program.advance)
    return lambda updates: compiled(state, rows, member, updates)


def normal(seed: int, *shape: int) -> Array:
    return jax.random.normal(jax.random.key(seed), shape) / math.sqrt(shape[-1])


def in_turns(one: Callable[..., Any], *given: Any) -> Callable[[int], Any]:
    """A compiled loop of `one(k, *given)`, whose results are kept so that none is left out."""

    @jax.jit
    def run(updates: int, *given: Any) -> Any:
        shapes = jax.eval_shape(one, 0, *given)
        start = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
        return jax.lax.fori_loop(0, updates, lambda k, _: one(k % KEPT, *given), start)

    return lambda updates: run(updates, *given)


def turned(weight: Array, pull: Array) -> Array:
    """weightᵀ @ pull, as the fastest way found computes it (rbve/networks/layers.py)."""
    product = jax.lax.dot_general(pull, weight, (((0,), (0,)), ((), ())))
    return jax.lax.optimization_barrier(product).T


def board_products(batch: int, passes: int) -> Callable[[int], Any]:
    """One 3 × 3 convolution of 16 channels, 128 units, a value per action: `passes` forwards, one
    of them backwards too."""
    taps, side, channels, units = 9 * BOARD[-1], BOARD[0] - 2, 16, 128
    flat = channels * side**2
    networks = [
        (normal(k, taps, channels), normal(k + 10, units, flat), normal(k + 20, ACTIONS, units))
        for k in (0, 1)
    ]
    patches = normal(2, KEPT, 2, taps, side, side, batch)

    def forward(network: Sequence[Array], x: Array) -> list[Array]:
        kernel, dense, out = network
        mapped = jax.lax.dot_general(kernel, x, (((0,), (0,)), ((), ())))
        hidden = dense @ mapped.reshape(flat, -1)
        return [mapped, hidden, out @ hidden]

    def one(k: Array, patches: Array, networks: Any) -> Any:
        now, later = patches[k]
        (_, dense, out), target = networks
        mapped, hidden, q = forward(networks[0], now)
        others = [forward(each, later)[-1] for each in (target, networks[0])[: passes - 1]]
        on_hidden = out.T @ q
        on_mapped = turned(dense, on_hidden).reshape(mapped.shape)
        on_kernel = jax.lax.dot_general(now, on_mapped, (((1, 2, 3), (1, 2, 3)), ((), ())))
        return q @ hidden.T, on_hidden @ mapped.reshape(flat, -1).T, on_kernel, others

    return in_turns(one, patches, networks)


def memory_products(units: int, batch: int) -> Callable[[int], Any]:
    """A dense layer, an LSTM over STEPS and dueling streams, forwards for both networks and
    backwards for one. The recurrent products wait for one another, as they have to."""
    wide, total = units + ACTIONS + 1, STEPS * batch

    def network(seed: int) -> tuple[Array, ...]:
        shapes = (
            (units, FEATURES), (4 * units, wide), (4 * units, units),
            (units, units), (units, units), (ACTIONS + 1, units),
        )  # fmt: skip
        return tuple(normal(seed + k, *shape) for k, shape in enumerate(shapes))

    obs = normal(2, KEPT, FEATURES, total)
    extra = normal(3, ACTIONS + 1, total)

    def forward(network: Sequence[Array], x: Array) -> list[Array]:
        torso, inputs, recurrent, value, advantage, out = network
        features = jnp.concatenate([torso @ x, extra])
        driven = jnp.moveaxis((inputs @ features).reshape(-1, STEPS, batch), 1, 0)

        def step(hidden: Array, drive: Array) -> tuple[Array, Array]:
            gates = recurrent @ hidden
            return (gates + drive)[:units], gates

        _, gates = jax.lax.scan(step, jnp.zeros((units, batch)), driven)
        hidden = jnp.moveaxis(gates[:, :units], 1, 0).reshape(units, total)
        streams = value @ hidden, advantage @ hidden
        return [features, hidden, *streams, out @ (streams[0] + streams[1])]

    def one(k: Array, obs: Array, networks: Any) -> Any:
        _, inputs, recurrent, value, advantage, out = networks[0]
        features, hidden, *streams, q = forward(networks[0], obs[k])
        other = forward(networks[1], obs[k])[-1]
        on_streams = out.T @ q
        on_hidden = value.T @ on_streams + advantage.T @ on_streams
        above = jnp.moveaxis(on_hidden.reshape(units, STEPS, batch), 1, 0)
        transposed = jax.lax.optimization_barrier(recurrent.T)

        def back(carry: Array, above: Array) -> tuple[Array, Array]:
            on_gates = jnp.tile(carry + above, (4, 1))
            return transposed @ on_gates, on_gates

        _, on_gates = jax.lax.scan(back, jnp.zeros((units, batch)), above, reverse=True)
        on_driven = jnp.moveaxis(on_gates, 1, 0).reshape(4 * units, total)
        on_features = turned(inputs, on_driven)[:units]
        gradients = (
            on_features @ obs[k].T, on_driven @ features.T, on_driven @ hidden.T,
            on_streams @ hidden.T, on_streams @ hidden.T, q @ (streams[0] + streams[1]).T,
        )  # fmt: skip
        return gradients, other

    return in_turns(one, obs, (network(10), network(20)))


def boards_store(folder: Path, rows: int) -> Path:
    """Random boards, some cells of which are set."""
    rng = np.random.default_rng(0)
    episodes = []
    for _ in range(rows // 200):
        frames = np.where(rng.random((201, *BOARD)) < 0.05, 255, 0).astype(np.uint8)
        actions, rewards = rng.integers(0, ACTIONS, 200), rng.random(200) < 0.05
        episodes.append(Episode.from_steps(frames, actions, rewards.astype(np.float32), True))
    write(Dataset.from_episodes(episodes, ACTIONS), folder)
    return folder


def walks_store(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    episodes = [
        Episode.from_steps(
            rng.normal(size=(STEPS, FEATURES)).astype(np.float32),
            rng.integers(0, ACTIONS, STEPS - 1),
            rng.normal(size=STEPS - 1),
            True,
        )
        for _ in range(100)
    ]
    write(Dataset.from_episodes(episodes, ACTIONS), folder)
    return folder


if __name__ == "__main__":
    from run import show

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    show("bound", measure(parser.parse_args().quick))
