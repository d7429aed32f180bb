"""One update, and the compiled loop of many.

The loop is a pure function of (state, table, member): which rows update k sees depends on the seed
and k alone, so a run stopped anywhere and resumed equals one that never stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from rbve import ops
from rbve.algorithms import Algorithm
from rbve.networks import Network, build, flattened
from rbve.training.layout import Layout, Picked
from rbve.training.sequences import SequenceLayout, SequencePicked
from rbve.training.spec import Spec
from rbve.training.views import Pairs, Sequences, of_pairs, of_sequences, remembered
from rbve.training.work import LARGE, Work, of_program
from rbve.types import Array, Batch, Tree

DRAWS = 64  # updates whose rows are drawn at once
RECORDER = 0x5EC0DE  # separates the keys of recorders from those of learners


class TrainState(NamedTuple):
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


class Program(NamedTuple):
    """The pure functions of one Spec."""

    algorithm: Algorithm
    options: Any
    init: Callable[[Array], TrainState]  # key -> state
    unravel: Callable[[Array], Network]
    zeros: Callable[[Member], dict[str, Array]]  # sums of metrics before the first update
    advance: Callable[..., tuple[TrainState, dict[str, Array]]]  # on rows in memory
    advance_given: Callable[..., tuple[TrainState, dict[str, Array]]]  # on batches picked elsewhere
    chosen_values: Callable[..., tuple[Array, Array]]  # of the policy's choices, and weights
    work: Callable[[Member], Work]  # of one update


def member_keys(seed: int) -> tuple[Array, Array, Array]:
    """Keys for (weights, updates, evaluation), one set per seed."""
    weights, updates, evaluation = jax.random.split(jax.random.key(seed), 3)
    return weights, updates, evaluation


def recorder_key(seed: int) -> Array:
    """Root of the keys of an online agent that records: never those of a learner of that seed."""
    return jax.random.fold_in(jax.random.key(seed), RECORDER)


def draw(key: Array, block: Array, count: Array, batch_size: int) -> Array:
    """Rows (DRAWS, B) below count for the updates of one block, by counter alone."""
    bits = jax.random.bits(jax.random.fold_in(key, block), (DRAWS, batch_size), jnp.uint32)
    return ops.scale_to_range(bits, count)


def checked(name: str, returned: Any, items: tuple[int, ...]) -> tuple[Array, dict[str, Array]]:
    """What a loss returned: one value per item, and metrics of as many or of one.

    Looked at while the program is traced. A mean, for one, would train too, with other weights.
    """
    needed = f"the loss of {name} needs to return (loss, metrics): "
    if not isinstance(returned, tuple) or len(returned) != 2 or not isinstance(returned[1], dict):
        raise ValueError(
            f"{needed}an array and a dict of arrays; it returned {described(returned)}"
        )
    loss, metrics = returned
    if jnp.shape(loss) != items or not jnp.issubdtype(jnp.result_type(loss), jnp.floating):
        raise ValueError(
            f"{needed}the loss holds one number per item, floats of shape {items}; it returned "
            f"{described(loss)}"
        )
    for metric, value in metrics.items():
        if jnp.shape(value) not in (items, (1,), ()):
            raise ValueError(
                f"{needed}metrics hold one number per item, shape {items}, or a single one; "
                f"{metric!r} is {described(value)}"
            )
    return loss, metrics


def described(value: Any) -> str:
    if isinstance(value, jax.Array | np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    if isinstance(value, tuple):
        return f"a tuple of {len(value)} ({', '.join(map(described, value))})"
    return f"a {type(value).__name__}"


def make_program(
    spec: Spec, layout: Layout | SequenceLayout, split: Callable[[Tree], Tree] = lambda tree: tree
) -> Program:
    """`split` marks arrays (B, ...) that several devices share (rbve/training/parallel.py)."""
    algorithm, options = spec.load_algorithm(), spec.load_options()
    td = ops.TD(spec.td, bool(spec.rescale))  # type: ignore[arg-type]
    optimiser = optax.scale_by_adam()

    def new_network(key: Array) -> Network:
        shape, count = layout.obs_shape, layout.actions
        return build(
            shape, count, algorithm.head, options, spec.hidden, key, spec.torso, spec.memory
        )

    weights, unravel = flattened(new_network)

    def init(key: Array) -> TrainState:
        params = ravel_pytree(new_network(key))[0]
        return TrainState(
            params,
            params.copy(),
            optimiser.init(params),
            jnp.zeros((), jnp.int32),
            jnp.full((), -1, jnp.int32),
        )

    def mean_loss(
        params: Array,
        target: Network,
        inputs: Pairs | Sequences,
        batch: Batch,
        config: Tree,
        key: Array,
    ) -> tuple[Array, dict[str, Array]]:
        *draws, mixture = jax.random.split(key, 4)
        online = unravel(params)
        if isinstance(inputs, Pairs):
            views = of_pairs(online, target, inputs, draws)
        else:
            views = of_sequences(online, target, inputs, spec.burn_in, draws)
        returned = algorithm.loss(views, batch, config, options, td, mixture)
        value, metrics = checked(algorithm.name, returned, batch.action.shape)
        valid = jnp.sum(batch.weight)
        metrics = {"loss": value, **metrics}
        if isinstance(inputs, Sequences):  # of which some steps do not count
            metrics = {name: jnp.sum(v * batch.weight) / valid for name, v in metrics.items()}
        return jnp.sum(value * batch.weight) / valid, metrics

    # Gradient and per-item metrics of one batch, wherever the batch came from.
    gradient = jax.grad(mean_loss, has_aux=True)

    def apply(state: TrainState, grad: Array, learning_rate: Array) -> tuple[TrainState, Array]:
        """Adam, unless the gradient is not finite: then nothing changes but `diverged_at`."""
        norm2 = jnp.vdot(grad, grad)
        finite = jnp.isfinite(norm2)

        def step() -> tuple[Array, Tree]:
            direction, opt = optimiser.update(grad, state.opt)
            return state.params - learning_rate * direction, opt

        # A branch, not a selection: that would pass over all weights and moments once more.
        params, opt = jax.lax.cond(finite, step, lambda: (state.params, state.opt))
        diverged_at = jnp.where(finite, state.diverged_at, state.step)
        return TrainState(params, state.target, opt, state.step + finite, diverged_at), norm2

    metric_shapes: dict[str, Any] = {}  # traced once: they are the same for every member

    def metric_zeros(member: Member) -> dict[str, Array]:
        if not metric_shapes:
            given = layout.batch(layout.blank(spec.batch_size), member.g_scale)  # type: ignore[arg-type]
            params = jnp.zeros(weights)
            _, shapes = jax.eval_shape(
                mean_loss, params, unravel(params), *given, member.config, member.key
            )
            metric_shapes.update(shapes)
        return {
            "grad_norm2": jnp.zeros(()),
            **{name: jnp.zeros(each.shape, each.dtype) for name, each in metric_shapes.items()},
        }

    def update(
        carry: tuple[TrainState, dict[str, Array]],
        target: Network,
        given: tuple[Pairs | Sequences, Batch],
        member: Member,
        key_loss: Array,
    ) -> tuple[TrainState, dict[str, Array]]:
        """One update with the batch given."""
        state, sums = carry
        key = jax.random.fold_in(key_loss, state.step)
        grad, metrics = gradient(state.params, target, *given, member.config, key)
        state, norm2 = apply(state, grad, member.learning_rate)
        return state, jax.tree.map(jnp.add, sums, {"grad_norm2": norm2, **metrics})

    def running(state: TrainState, stop: Array) -> Array:
        return (state.step < stop) & (state.diverged_at < 0)

    def synced(state: TrainState, member: Member) -> TrainState:
        due = state.step % member.target_period == 0
        target = jax.lax.cond(due, lambda: state.params, lambda: state.target)
        return state._replace(target=target)

    def advance(
        state: TrainState,
        rows: Any,
        member: Member,
        until: Array,
        sums: dict[str, Array] | None = None,
    ) -> tuple[TrainState, dict[str, Array]]:
        """Update up to step `until`; metrics are sums over updates, one entry per item of
        transitions, the mean of sequences. They go on from `sums`, so that it does not matter in
        how many calls the updates are done."""
        key_draws, key_loss = jax.random.split(member.key)

        def segment(carry: tuple[TrainState, dict[str, Array]]) -> Any:
            # Within a segment the target network and the drawn rows are constants, which
            # keeps both out of the inner loop.
            state, sums = carry
            period = member.target_period
            block = state.step // DRAWS
            index = member.offset + draw(key_draws, block, member.size, spec.batch_size)
            stop = jnp.minimum((block + 1) * DRAWS, (state.step // period + 1) * period)
            stop = jnp.minimum(stop, until)
            target = unravel(state.target)

            def one(carry: tuple[TrainState, dict[str, Array]]) -> Any:
                wanted = index[carry[0].step % DRAWS]
                given = layout.batch(split(layout.fetch(rows, wanted)), member.g_scale)
                return update(carry, target, given, member, key_loss)

            state, sums = jax.lax.while_loop(
                lambda carry: running(carry[0], stop), one, (state, sums)
            )
            return synced(state, member), sums

        before = metric_zeros(member) if sums is None else sums
        return jax.lax.while_loop(lambda carry: running(carry[0], until), segment, (state, before))

    def advance_given(
        state: TrainState,
        batches: Picked | SequencePicked,
        member: Member,
        until: Array,
        sums: dict[str, Array] | None = None,
    ) -> tuple[TrainState, dict[str, Array]]:
        """The same, with batches (K, B, ...) for the updates from the state's own on."""
        key_loss = jax.random.split(member.key)[1]
        start = state.step

        def one(carry: tuple[TrainState, dict[str, Array]]) -> Any:
            state = carry[0]
            picked = split(jax.tree.map(lambda column: column[state.step - start], batches))
            given = layout.batch(picked, member.g_scale)
            state, sums = update(carry, unravel(state.target), given, member, key_loss)
            return synced(state, member), sums

        before = metric_zeros(member) if sums is None else sums
        return jax.lax.while_loop(lambda carry: running(carry[0], until), one, (state, before))

    def work(member: Member) -> Work:
        if spec.batch_size * layout.rows_each * weights < LARGE:
            return Work(0, 0)  # tracing takes a while

        def one(member: Member) -> Any:
            params = jnp.zeros(weights)
            given = layout.batch(layout.blank(spec.batch_size), member.g_scale)  # type: ignore[arg-type]
            return gradient(params, unravel(params), *given, member.config, member.key)

        return of_program(jax.make_jaxpr(one)(member))

    @jax.jit
    def chosen_values(params: Array, picked: Any, member: Member) -> tuple[Array, Array]:
        """The value of the action the policy would take, and the weight of each decision."""
        inputs, batch = layout.batch(picked, member.g_scale)
        network, key = unravel(params), jax.random.key(0)
        if isinstance(inputs, Pairs):
            head = network(inputs.obs, key)
        else:
            steps = remembered(network, inputs.seen, spec.burn_in)
            head = network.heads(steps[: inputs.later.shape[0]], key)
        choice = jnp.argmax(algorithm.scores(head, batch.legal, member.config, options), axis=-1)
        value = jnp.take_along_axis(head.q, choice[:, None], axis=1)[:, 0]
        return ops.unscale(value) if spec.rescale else value, batch.weight

    # Drawn once: full optimisation would take longer than it saves. The weights are the same.
    first = jax.jit(init, compiler_options={"xla_backend_optimization_level": 1})
    return Program(
        algorithm=algorithm,
        options=options,
        init=first,
        unravel=unravel,
        zeros=metric_zeros,
        advance=advance,
        advance_given=advance_given,
        chosen_values=chosen_values,
        work=work,
    )
