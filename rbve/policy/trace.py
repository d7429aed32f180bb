"""From a function in JAX to a Program.

It is traced at two batch sizes, whose difference tells which sizes grow with the batch. What
depends on constants alone is computed here, once.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from rbve.policy.translate import Builder
from rbve.runtime.program import Operation, Program

# Primes, so that a size that holds one of them as a factor is seen to grow with the batch; small
# enough that networks compute such a batch at once.
_SIZES = (211, 223)
_VARIES = "what the policy computes depends on the batch size; it cannot be shipped"


def trace(
    function: Callable[..., Mapping[str, Any]],
    inputs: Mapping[str, tuple[Sequence[int], Any]],
) -> Program:
    """The program of a function from inputs (B, ...) by name to outputs by name.

    Args:
        function: Takes the inputs by name.
        inputs: Shape, without the batch, and dtype of each.

    Raises:
        ValueError: It computes something that programs cannot.
    """
    first, second = (_traced(function, inputs, size) for size in _SIZES)
    if [op.name for op in first.operations] != [op.name for op in second.operations]:
        raise ValueError(_VARIES)
    pairs = zip(first.operations, second.operations, strict=True)
    operations = tuple(
        Operation(one.name, one.takes, _merged(one.settings, other.settings))
        for one, other in pairs
    )
    for one, other in zip(first.constants, second.constants, strict=True):
        if one.shape != other.shape or not np.array_equal(one, other, equal_nan=True):
            raise ValueError(_VARIES)
    return _without_unused(Program(first.inputs, first.constants, operations, first.outputs))


def _traced(
    function: Callable[..., Mapping[str, Any]], inputs: Mapping[str, Any], size: int
) -> Program:
    names = list(inputs)

    def positional(*values: Any) -> Mapping[str, Any]:
        return function(**dict(zip(names, values, strict=True)))

    shapes = [jax.ShapeDtypeStruct((size, *shape), dtype) for shape, dtype in inputs.values()]
    closed, outs = jax.make_jaxpr(positional, return_shape=True)(*shapes)
    builder = Builder(size, len(names))
    made = builder.call(closed.jaxpr, closed.consts, builder.inputs(shapes))
    results = [builder.whole(value) for value in made]
    # Dicts come out of JAX in the order of their sorted keys.
    outputs = {name: builder.index(each) for name, each in zip(sorted(outs), results, strict=True)}
    return builder.program(tuple(names), outputs)


def _merged(one: Any, other: Any) -> Any:
    """Settings of two batch sizes as settings for any."""
    if isinstance(one, dict):
        return {name: _merged(one[name], other[name]) for name in one}
    if isinstance(one, list) and len(one) == len(other):
        return [_merged(a, b) for a, b in zip(one, other, strict=True)]
    if one == other:
        return one
    if type(one) is not int or type(other) is not int:
        raise ValueError(_VARIES)
    times, rest = divmod(other - one, _SIZES[1] - _SIZES[0])
    if rest:
        raise ValueError("a size does not grow with the batch in proportion; it cannot be shipped")
    return [one - times * _SIZES[0], times]


def _without_unused(program: Program) -> Program:
    """Only what outputs need, numbered anew."""
    inputs, constants = len(program.inputs), len(program.constants)
    base = inputs + constants
    used = set(program.outputs.values())
    for place in range(len(program.operations) - 1, -1, -1):
        if base + place in used:
            used.update(program.operations[place].takes)
    order = [i for i in range(base + len(program.operations)) if i < inputs or i in used]
    place_of = {old: new for new, old in enumerate(order)}
    return Program(
        program.inputs,
        tuple(program.constants[i - inputs] for i in order if inputs <= i < base),
        tuple(
            Operation(op.name, tuple(place_of[i] for i in op.takes), op.settings)
            for op in (program.operations[i - base] for i in order if i >= base)
        ),
        {name: place_of[i] for name, i in program.outputs.items()},
    )
