"""One update, and the compiled loop of many.

The loop is a pure function of (state, table, member): which rows update k sees depends on the seed
and k alone, so a run stopped anywhere and resumed equals one that never stopped.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from rbve import ops
from rbve.algorithms import Algorithm
from rbve.networks import Network, build, flattened
from rbve.spec import Spec
from rbve.training.optimisers import make_optimiser
from rbve.training.work import LARGE, Work, of_program
from rbve.types import Array, Tree

DRAWS = 64  # updates whose rows are drawn at once
_PROGRAMS = 8  # last ones kept: training again neither traces nor compiles again
_RECORDER = 0x5EC0DE  # separates the keys of recorders from those of learners


class TrainState(NamedTuple):
    """What training changes."""

    params: Array  # (P,) all weights in one vector: one kernel per optimiser step
    target: Array  # (P,)
    opt: Tree
    step: Array  # () int32, updates done
    diverged_at: Array  # () int32, −1 while finite


class Member(NamedTuple):
    """What distinguishes members of one program; all traced."""

    key: Array
    offset: Array  # first row in the table
    size: Array  # rows of its own
    g_scale: Array
    learning_rate: Array
    target_period: Array
    config: Tree  # the algorithm's Config


Sums = dict[str, Array]  # of metrics, over updates
_Carry = tuple[TrainState, Sums]


class Program(NamedTuple):
    """The pure functions of one Spec."""

    algorithm: Algorithm
    options: Any
    init: Callable[[Array], TrainState]  # key -> state
    unravel: Callable[[Array], Network]
    zeros: Callable[[Member], Sums]  # sums of metrics before the first update
    advance: Callable[..., _Carry]  # on a store on the device
    advance_given: Callable[..., _Carry]  # on batches picked elsewhere
    chosen_values: Callable[..., tuple[Array, Array]]  # of the policy's choices, and weights
    work: Callable[[Member], Work]  # of one update


def member_keys(seed: int) -> tuple[Array, Array, Array]:
    """Keys for (weights, updates, evaluation), one set per seed."""
    weights, updates, evaluation = jax.random.split(jax.random.key(seed), 3)
    return weights, updates, evaluation


def recorder_key(seed: int) -> Array:
    """Root of the keys of an online agent that records: never those of a learner of that seed."""
    return jax.random.fold_in(jax.random.key(seed), _RECORDER)


def draw(key: Array, block: Array, count: Array, batch_size: int) -> Array:
    """Rows (DRAWS, B) below count for the updates of one block, by counter alone."""
    bits = jax.random.bits(jax.random.fold_in(key, block), (DRAWS, batch_size), jnp.uint32)
    return ops.scale_to_range(bits, count)


def whole(tree: Tree) -> Tree:
    """Arrays of one device."""
    return tree


def make_program(spec: Spec, items: Any, split: Callable[[Tree], Tree] = whole) -> Program:
    """The compiled parts of training for one Spec and one kind of Items (rbve/training/batches).
    `split` marks arrays (B, ...) that several devices share (run._Team)."""
    return _make_program(_ByProgram(spec.program, spec), spec.load_algorithm(), items, split)


@dataclass(frozen=True)
class _ByProgram:
    """A Spec known by its program alone."""

    program: str
    spec: Spec = field(compare=False)


@functools.lru_cache(maxsize=_PROGRAMS)
def _make_program(
    known: _ByProgram, algorithm: Algorithm, items: Any, split: Callable[[Tree], Tree]
) -> Program:
    spec, options = known.spec, known.spec.load_options()
    polyak = spec.optimiser.polyak
    td = ops.TD(spec.td, bool(spec.network.rescale))

    def new_network(key: Array) -> Any:
        own, parts = spec.network, (items.obs_shape, items.actions, algorithm.head, options)
        return build(*parts, own.hidden, key, own.torso, own.memory)

    weights, unravel = flattened(new_network)
    optimiser = make_optimiser(algorithm.optimiser, options, unravel)

    def init(key: Array) -> TrainState:
        params = ravel_pytree(new_network(key))[0]
        step, diverged_at = jnp.zeros((), jnp.int32), jnp.full((), -1, jnp.int32)
        return TrainState(params, params.copy(), optimiser.init(params), step, diverged_at)

    def mean_loss(
        params: Array, target: Network, picked: Any, member: Member, key: Array
    ) -> tuple[Array, Sums]:
        *draws, key_loss = jax.random.split(key, 4)
        batch = items.batch(picked, member.g_scale)
        views = items.views(unravel(params), target, picked, draws)
        returned = algorithm.loss(views, batch, member.config, options, td, key_loss)
        value, metrics = _checked_loss(algorithm.name, returned, batch.action.shape)
        valid = jnp.sum(batch.weight)
        metrics = {"loss": value, **metrics}
        if items.averaged:
            metrics = {name: jnp.sum(v * batch.weight) / valid for name, v in metrics.items()}
        return jnp.sum(value * batch.weight) / valid, metrics

    # Gradient and metrics of one batch, wherever it came from.
    gradient = jax.grad(mean_loss, has_aux=True)

    def apply(state: TrainState, grad: Array, learning_rate: Array) -> tuple[TrainState, Array]:
        """An optimiser step, unless the gradient is not finite: then only `diverged_at` changes."""
        norm2 = jnp.vdot(grad, grad)
        finite = jnp.isfinite(norm2)

        # A branch, not a selection, which would read and write all weights and moments once more.
        params, opt = jax.lax.cond(
            finite,
            lambda: optimiser.step(state.params, grad, state.opt, learning_rate),
            lambda: (state.params, state.opt),
        )
        target = state.target
        if polyak:
            target = jnp.where(finite, (1 - polyak) * target + polyak * params, target)
        diverged_at = jnp.where(finite, state.diverged_at, state.step)
        return TrainState(params, target, opt, state.step + finite, diverged_at), norm2

    metric_shapes: dict[str, Any] = {}  # traced once: they are the same for every member

    def traced(member: Member) -> Any:
        """Gradient and metrics of a blank batch."""
        params, blank = jnp.zeros(weights), items.blank(spec.sampling.batch_size)
        return gradient(params, unravel(params), blank, member, member.key)

    def metric_zeros(member: Member) -> Sums:
        if not metric_shapes:
            metric_shapes.update(jax.eval_shape(traced, member)[1])
        zeros = {name: jnp.zeros(each.shape, each.dtype) for name, each in metric_shapes.items()}
        return {"grad_norm2": jnp.zeros(()), **zeros}

    def update(carry: _Carry, target: Network, picked: Any, member: Member, key: Array) -> _Carry:
        """One update with the items picked; `key` is the same for all."""
        state, sums = carry
        key = jax.random.fold_in(key, state.step)
        grad, metrics = gradient(state.params, target, picked, member, key)
        state, norm2 = apply(state, grad, member.learning_rate)
        return state, jax.tree.map(jnp.add, sums, {"grad_norm2": norm2, **metrics})

    def running(state: TrainState, stop: Array) -> Array:
        return (state.step < stop) & (state.diverged_at < 0)

    def synced(state: TrainState, member: Member) -> TrainState:
        if polyak:  # the target follows at every update
            return state
        due = state.step % member.target_period == 0
        target = jax.lax.cond(due, lambda: state.params, lambda: state.target)
        return state._replace(target=target)

    def advance(
        state: TrainState, store: Tree, member: Member, until: Array, sums: Sums | None = None
    ) -> _Carry:
        """Update up to step `until` with items of a store on the device.

        Metrics are sums over updates, one entry per item of a batch of transitions, one in all of
        sequences. They go on from `sums`, so it does not matter in how many calls the updates are
        done.
        """
        key_draws, key_loss = jax.random.split(member.key)

        def segment(carry: _Carry) -> _Carry:
            # Within a segment the target network and the drawn rows are constants, which
            # keeps both out of the inner loop.
            state, _ = carry
            period = member.target_period
            block = state.step // DRAWS
            index = member.offset + draw(key_draws, block, member.size, spec.sampling.batch_size)
            stop = jnp.minimum((block + 1) * DRAWS, (state.step // period + 1) * period)
            stop = jnp.minimum(stop, until)
            target = unravel(state.target)

            def one(carry: _Carry) -> _Carry:
                state, _ = carry
                picked = split(items.fetch(store, index[state.step % DRAWS]))
                network = unravel(state.target) if polyak else target
                return update(carry, network, picked, member, key_loss)

            state, sums = jax.lax.while_loop(lambda carry: running(carry[0], stop), one, carry)
            return synced(state, member), sums

        before = metric_zeros(member) if sums is None else sums
        return jax.lax.while_loop(lambda carry: running(carry[0], until), segment, (state, before))

    def advance_given(
        state: TrainState, batches: Tree, member: Member, until: Array, sums: Sums | None = None
    ) -> _Carry:
        """The same, with picked items (K, B, ...) for the updates from the state's own on."""
        key_loss = jax.random.split(member.key)[1]
        start = state.step

        def one(carry: _Carry) -> _Carry:
            state, _ = carry
            picked = split(jax.tree.map(lambda column: column[state.step - start], batches))
            state, sums = update(carry, unravel(state.target), picked, member, key_loss)
            return synced(state, member), sums

        before = metric_zeros(member) if sums is None else sums
        return jax.lax.while_loop(lambda carry: running(carry[0], until), one, (state, before))

    def work(member: Member) -> Work:
        small = spec.sampling.batch_size * items.rows * weights < LARGE  # tracing takes a while
        return Work(0, 0) if small else of_program(jax.make_jaxpr(traced)(member))

    @jax.jit
    def chosen_values(params: Array, picked: Any, member: Member) -> tuple[Array, Array]:
        """The value of the action the policy would take, and the weight of each decision."""
        batch = items.batch(picked, member.g_scale)
        head = items.heads(unravel(params), picked, jax.random.key(0))
        choice = jnp.argmax(algorithm.scores(head, batch.legal, member.config, options), axis=-1)
        value = jnp.take_along_axis(head.q, choice[:, None], axis=1)[:, 0]
        return ops.unscale(value) if spec.network.rescale else value, batch.weight

    return Program(
        algorithm=algorithm,
        options=options,
        # Run once: full optimisation would take longer than it saves. The weights are the same.
        init=jax.jit(init, compiler_options={"xla_backend_optimization_level": 1}),
        unravel=unravel,
        zeros=metric_zeros,
        advance=advance,
        advance_given=advance_given,
        chosen_values=chosen_values,
        work=work,
    )


def _checked_loss(name: str, returned: Any, items: tuple[int, ...]) -> tuple[Array, Sums]:
    """The loss of algorithm `name`: one value per item, and metrics of as many values or of one.

    Checked while the program is traced: a mean, for example, would train too, with other weights.
    """
    needed = f"the loss of {name} needs to return (loss, metrics): "
    if not isinstance(returned, tuple) or len(returned) != 2 or not isinstance(returned[1], dict):
        held = f"it returned {_described(returned)}"
        raise ValueError(f"{needed}an array and a dict of arrays; {held}")
    loss, metrics = returned
    if jnp.shape(loss) != items or not jnp.issubdtype(jnp.result_type(loss), jnp.floating):
        raise ValueError(
            f"{needed}the loss holds one number per item, floats of shape {items}; it returned "
            f"{_described(loss)}"
        )
    for metric, value in metrics.items():
        if jnp.shape(value) not in (items, (1,), ()):
            raise ValueError(
                f"{needed}metrics hold one number per item, shape {items}, or a single one; "
                f"{metric!r} is {_described(value)}"
            )
    return loss, metrics


def _described(value: Any) -> str:
    if isinstance(value, jax.Array | np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    if isinstance(value, tuple):
        return f"a tuple of {len(value)} ({', '.join(map(_described, value))})"
    return f"a {type(value).__name__}"
