"""What programs can compute of JAX's primitives: a function for each, which adds operations."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from rbve.runtime.operations import ELEMENTWISE

_REDUCED = {
    "reduce_sum": "sum", "reduce_max": "amax", "reduce_min": "amin", "reduce_and": "all",
    "reduce_or": "any",
}  # fmt: skip


@dataclass(frozen=True)
class Value:
    """Of a computation: a constant or the number of what makes it.

    Its `shape` may have ones where `full` is larger: elementwise operations need no more.
    """

    shape: tuple[int, ...]
    full: tuple[int, ...]
    dtype: Any
    made: int = -1  # by the operation of this number; inputs come first
    array: np.ndarray | None = None


def constant(array: Any, full: tuple[int, ...] | None = None) -> Value:
    is_key = jax.dtypes.issubdtype(getattr(array, "dtype", np.float32), jax.dtypes.prng_key)
    known = array if is_key else np.asarray(array)  # keys only enter what is computed here
    return Value(known.shape, known.shape if full is None else full, known.dtype, array=known)


def _elementwise(name: str) -> Callable[..., Value]:
    def made(builder: Any, args: list[Value], params: Any, out: Value) -> Value:
        shape = np.broadcast_shapes(*(each.shape for each in args))
        if len(shape) < len(out.full):  # of scalars alone
            shape = (1,) * (len(out.full) - len(shape)) + shape
        return builder.add(name, args, {}, Value(shape, out.full, out.dtype))

    return made


def _select(builder: Any, args: list[Value], params: Any, out: Value) -> Value:
    which, *cases = args
    if len(cases) != 2 or which.dtype != bool:
        raise ValueError("the policy chooses among more than two arrays at once")
    return _elementwise("where")(builder, [which, cases[1], cases[0]], params, out)


def _clamp(builder: Any, args: list[Value], params: Any, out: Value) -> Value:
    low, x, high = args
    raised = _elementwise("max")(builder, [x, low], params, out)
    return _elementwise("min")(builder, [raised, high], params, out)


def _rsqrt(builder: Any, args: list[Value], params: Any, out: Value) -> Value:
    root = _elementwise("sqrt")(builder, args, params, out)
    return _elementwise("div")(builder, [constant(np.ones((), out.dtype)), root], params, out)


def _logistic(builder: Any, args: list[Value], params: Any, out: Value) -> Value:
    """½ + ½ tanh(½ x)"""
    half = constant(np.asarray(0.5, out.dtype))
    for name, other in (("mul", half), ("tanh", None), ("mul", half), ("add", half)):
        args = [_elementwise(name)(builder, [*args, *([other] if other else [])], params, out)]
    return args[0]


def _round(builder: Any, args: list[Value], params: Any, out: Value) -> Value:
    if int(params["rounding_method"]) != 1:  # to the nearest, of two equally near to the even
        raise ValueError("the policy rounds away from zero, which programs of rbve.runtime cannot")
    return _elementwise("round")(builder, args, params, out)


def _power(builder: Any, args: list[Value], params: Any, out: Value) -> Value:
    shape = args[0].shape
    return builder.add(
        "integer_pow", args, {"power": int(params["y"])}, Value(shape, out.full, out.dtype)
    )


def _cast(builder: Any, args: list[Value], params: Any, out: Value) -> Value:
    (x,) = args
    if x.dtype == out.dtype:
        return x
    settings = {"dtype": np.dtype(out.dtype).name}
    return builder.add("cast", args, settings, Value(x.shape, out.full, out.dtype))


def _broadcast(builder: Any, args: list[Value], params: Any, out: Value) -> Value:
    (x,), dims = args[:1], params["broadcast_dimensions"]
    shape = [1] * len(out.full)
    for own, dim in enumerate(dims):
        shape[dim] = x.shape[own]
    made = builder.reshaped(x, shape, out.full)
    if made.array is not None and not builder.grows(out.full):
        return constant(np.array(np.broadcast_to(made.array, out.full)))
    return made


def _reshape(builder: Any, args: list[Value], params: Any, out: Value) -> Value:
    return builder.reshaped(builder.whole(args[0]), out.full)


def _transpose(builder: Any, args: list[Value], params: Any, out: Value) -> Value:
    (x,), order = args, params["permutation"]
    shape = tuple(x.shape[axis] for axis in order)
    if all(size == 1 for size in x.shape) or tuple(order) == tuple(range(len(order))):
        return builder.reshaped(x, shape, out.full)
    value = Value(shape, out.full, out.dtype)
    return builder.add("transpose", [x], {"axes": list(order)}, value)


def _squeeze(builder: Any, args: list[Value], params: Any, out: Value) -> Value:
    gone = {axis % len(args[0].shape) for axis in params["dimensions"]}
    shape = [size for axis, size in enumerate(args[0].shape) if axis not in gone]
    return builder.reshaped(args[0], shape, out.full)


def _slice(builder: Any, args: list[Value], params: Any, out: Value) -> Value:
    x = builder.whole(args[0])
    strides = params["strides"] or (1,) * len(x.shape)
    settings = {
        "start": list(params["start_indices"]),
        "stop": list(params["limit_indices"]),
        "step": list(strides),
    }
    return x if out.shape == x.shape else builder.add("slice", [x], settings, out)


def split(builder: Any, value: Value, params: Any) -> list[Value]:
    at, parts, axis = 0, [], int(params["axis"])
    for size in map(int, params["sizes"]):
        start = [0] * len(value.shape)
        limit = list(value.shape)
        start[axis], limit[axis] = at, at + size
        shape = tuple(size if i == axis else each for i, each in enumerate(value.shape))
        own = {"start_indices": start, "limit_indices": limit, "strides": None}
        parts.append(_slice(builder, [value], own, Value(shape, shape, value.dtype)))
        at += size
    return parts


def _pad(builder: Any, args: list[Value], params: Any, out: Value) -> Value:
    x, filling = builder.whole(args[0]), args[1].array
    widths = params["padding_config"]
    if any(inner for _, _, inner in widths) or filling is None or filling != 0:
        raise ValueError("the policy pads between numbers or with others than zeros")
    settings = {"widths": [[int(low), int(high)] for low, high, _ in widths]}
    return builder.add("pad", [x], settings, out) if any(map(any, widths)) else x


def _reduce(name: str) -> Callable[..., Value]:
    def made(builder: Any, args: list[Value], params: Any, out: Value) -> Value:
        axes = [int(axis) for axis in params["axes"]]
        return builder.add(name, [builder.whole(args[0])], {"axes": axes}, out)

    return made


def _argument(name: str) -> Callable[..., Value]:
    def made(builder: Any, args: list[Value], params: Any, out: Value) -> Value:
        axis = int(params["axes"][0])
        found = Value(out.shape, out.full, np.dtype(np.int64))
        found = builder.add(name, [builder.whole(args[0])], {"axis": axis}, found)
        return _cast(builder, [found], {}, out)

    return made


def _cumsum(builder: Any, args: list[Value], params: Any, out: Value) -> Value:
    if params["reverse"]:
        raise ValueError("the policy computes sums from the end, which programs cannot")
    return builder.add("cumsum", [builder.whole(args[0])], {"axis": int(params["axis"])}, out)


def _concat(builder: Any, args: list[Value], params: Any, out: Value) -> Value:
    settings = {"axis": int(params["dimension"])}
    return builder.add("concat", [builder.whole(each) for each in args], settings, out)


def _dot(builder: Any, args: list[Value], params: Any, out: Value) -> Value:
    a, b = (builder.whole(each) for each in args)
    (left, right), (left_batch, right_batch) = params["dimension_numbers"]
    matrices = tuple(left) == (len(a.shape) - 1,) and tuple(right) == (0,) and len(b.shape) <= 2
    if matrices and not left_batch:
        return builder.add("matmul", [a, b], {}, out)
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    first = [next(letters) for _ in a.shape]
    second = [next(letters) for _ in b.shape]
    for one, other in (*zip(left, right, strict=True), *zip(left_batch, right_batch, strict=True)):
        second[other] = first[one]
    kept = [first[axis] for axis in left_batch]
    kept += [x for axis, x in enumerate(first) if axis not in {*left, *left_batch}]
    kept += [x for axis, x in enumerate(second) if axis not in {*right, *right_batch}]
    equation = f"{''.join(first)},{''.join(second)}->{''.join(kept)}"
    if left_batch:
        return builder.add("einsum", [a, b], {"equation": equation}, out)
    settings = {"axes": [list(left), list(right)], "equation": equation}
    return builder.add("dot", [a, b], settings, out)


TRANSLATED: dict[str, Callable[..., Any]] = {
    **{name: _elementwise(name) for name in ELEMENTWISE if name not in ("where", "round")},
    **{name: _reduce(own) for name, own in _REDUCED.items()},
    "add_any": _elementwise("add"), "select_n": _select, "clamp": _clamp, "rsqrt": _rsqrt,
    "logistic": _logistic, "round": _round, "integer_pow": _power, "convert_element_type": _cast,
    "broadcast_in_dim": _broadcast, "reshape": _reshape, "transpose": _transpose,
    "squeeze": _squeeze, "slice": _slice, "pad": _pad, "argmax": _argument("argmax"),
    "argmin": _argument("argmin"), "cumsum": _cumsum, "concatenate": _concat, "dot_general": _dot,
}  # fmt: skip
