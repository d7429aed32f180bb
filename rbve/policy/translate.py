"""JAX's primitives as the operations of a Program (rbve/runtime/operations.py)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal

from rbve.runtime.operations import ELEMENTWISE, make
from rbve.runtime.program import Operation, Program

_UNROLLED = 8  # steps of a scan at most; acting takes one
_CALLS = ("jaxpr", "call_jaxpr", "fun_jaxpr")  # parameters that hold what a primitive calls
_SAME = ("stop_gradient", "optimization_barrier", "copy", "copy_p", "reduce_precision")
_REDUCED = {
    "reduce_sum": "sum", "reduce_max": "amax", "reduce_min": "amin", "reduce_and": "all",
    "reduce_or": "any",
}  # fmt: skip
_FLOATS_ONLY = ("div", "rem", "integer_pow")
_BOOLS_ONLY = ("and", "or", "not")


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


class Builder:
    """Operations in the order of their computation. Numbers of constants are given at the end."""

    def __init__(self, batch: int, inputs: int) -> None:
        self._batch, self._inputs = batch, inputs
        self._operations: list[tuple[str, list[Value], dict[str, Any]]] = []
        self._constants: list[np.ndarray] = []
        self._places: dict[tuple[Any, ...], int] = {}

    def inputs(self, shapes: Sequence[Any]) -> list[Value]:
        return [Value(s.shape, s.shape, s.dtype, made=i) for i, s in enumerate(shapes)]

    def program(self, names: tuple[str, ...], outputs: dict[str, Any]) -> Program:
        listed = [
            (name, [self.index(each) for each in takes], settings)
            for name, takes, settings in self._operations
        ]
        count = len(self._constants)

        def place(index: tuple[str, int]) -> int:
            kind, number = index
            if kind == "constant":
                return self._inputs + number
            return number if number < self._inputs else number + count

        operations = tuple(
            Operation(name, tuple(map(place, takes)), settings) for name, takes, settings in listed
        )
        ends = {name: place(index) for name, index in outputs.items()}
        return Program(names, tuple(self._constants), operations, ends)

    def index(self, value: Value) -> tuple[str, int]:
        if value.array is None:
            return "made", value.made
        key = (value.array.dtype.str, value.array.shape, value.array.tobytes())
        if key not in self._places:
            self._places[key] = len(self._constants)
            self._constants.append(value.array)
        return "constant", self._places[key]

    def add(self, name: str, takes: list[Value], settings: dict[str, Any], out: Value) -> Value:
        """An operation, or its result where all it takes is known and the batch plays no part."""
        known = [each.array for each in takes]
        if all(each is not None for each in known) and not self.grows(out.shape):
            return constant(np.asarray(make(np, name, settings)(*known), out.dtype), out.full)
        self._operations.append((name, takes, settings))
        number = self._inputs + len(self._operations) - 1
        return Value(out.shape, out.full, out.dtype, made=number)

    def whole(self, value: Value) -> Value:
        """With every size written out."""
        if value.shape == value.full:
            return value
        out = Value(value.full, value.full, value.dtype)
        return self.add("broadcast", [value], {"shape": list(value.full)}, out)

    def grows(self, shape: Sequence[int]) -> bool:
        return any(size and size % self._batch == 0 for size in shape)

    def call(self, jaxpr: Any, consts: Sequence[Any], args: Sequence[Value]) -> list[Value]:
        held: dict[Any, Value] = {}

        def read(var: Any) -> Value:
            return constant(var.val) if isinstance(var, Literal) else held[var]

        held.update(zip(jaxpr.constvars, map(constant, consts), strict=True))
        held.update(zip(jaxpr.invars, args, strict=True))
        for eqn in jaxpr.eqns:
            results = self._equation(eqn, [read(var) for var in eqn.invars])
            held.update(zip(eqn.outvars, results, strict=True))
        return [read(var) for var in jaxpr.outvars]

    def _equation(self, eqn: Any, args: list[Value]) -> list[Value]:
        name, params = eqn.primitive.name, eqn.params
        if name == "scan":
            return self._scan(params, args)
        known = [each.array for each in args if each.shape == each.full]
        if len(known) == len(args) and all(each is not None for each in known):
            outs = [var.aval for var in eqn.outvars]
            # What a batch of this size needs is made at every call, from less.
            if name not in TRANSLATED and not any(self.grows(out.shape) for out in outs):
                return _computed(eqn, known)
        for inner in _CALLS:
            if inner in params:
                body = params[inner]
                own = getattr(body, "jaxpr", body)
                return self.call(own, getattr(body, "consts", ()), args)
        if name in _SAME:
            return args
        if name == "split":
            return _split(self, self.whole(args[0]), params)
        if name.startswith(("random_", "threefry")):
            raise ValueError(
                "a head draws random numbers for each row, so that a decision depends on its place "
                "in a batch; give the head a method acting(x), which draws them once"
            )
        if name not in TRANSLATED:
            raise ValueError(
                f"the policy computes {name!r}, which programs of rbve.runtime cannot; ship it as "
                "it is saved, or write that part with other functions of jax.numpy"
            )
        out = eqn.outvars[0].aval
        for only, kind in ((_FLOATS_ONLY, "f"), (_BOOLS_ONLY, "b")):
            if name in only and args[0].dtype.kind != kind:
                raise ValueError(f"the policy computes {name!r} of {args[0].dtype}, which programs "
                                 "of rbve.runtime cannot")  # fmt: skip
        return [TRANSLATED[name](self, args, params, Value(out.shape, out.shape, out.dtype))]

    def _scan(self, params: dict[str, Any], args: list[Value]) -> list[Value]:
        """Its steps one after another."""
        steps, consts, carried = params["length"], params["num_consts"], params["num_carry"]
        if steps > _UNROLLED:
            raise ValueError(f"the policy computes a scan of {steps} steps in one decision")
        fixed, carry = args[:consts], args[consts : consts + carried]
        series = [self.whole(each) for each in args[consts + carried :]]
        body = params["jaxpr"]
        rows: list[list[Value]] = []
        order = range(steps - 1, -1, -1) if params["reverse"] else range(steps)
        for step in order:
            now = [self._step(each, step) for each in series]
            results = self.call(body.jaxpr, body.consts, [*fixed, *carry, *now])
            carry = results[:carried]
            rows.append([self.whole(each) for each in results[carried:]])
        rows = rows[::-1] if params["reverse"] else rows
        return [*carry, *(self._stacked(each) for each in zip(*rows, strict=True))]

    def _step(self, value: Value, step: int) -> Value:
        rest = value.shape[1:]
        settings = {
            "start": [step, *(0 for _ in rest)],
            "stop": [step + 1, *rest],
            "step": [1] * len(value.shape),
        }
        one = value
        if value.shape[0] > 1:
            one = self.add("slice", [value], settings, Value((1, *rest), (1, *rest), value.dtype))
        return self.reshaped(one, rest)

    def _stacked(self, values: Sequence[Value]) -> Value:
        rows = [self.reshaped(each, (1, *each.shape)) for each in values]
        if len(rows) == 1:
            return rows[0]
        shape = (len(rows), *rows[0].shape[1:])
        return self.add("concat", rows, {"axis": 0}, Value(shape, shape, rows[0].dtype))

    def reshaped(self, value: Value, shape: Sequence[int], full: Any = None) -> Value:
        shape = tuple(shape)
        full = shape if full is None else tuple(full)
        if shape == value.shape:
            return Value(shape, full, value.dtype, value.made, value.array)
        out = Value(shape, full, value.dtype)
        return self.add("reshape", [value], {"shape": list(shape)}, out)


def _computed(eqn: Any, arrays: Sequence[Any]) -> list[Value]:
    results = eqn.primitive.bind(*arrays, **eqn.primitive.get_bind_params(eqn.params))
    many = results if eqn.primitive.multiple_results else [results]
    return [constant(each) for each in many]


def _elementwise(name: str) -> Callable[..., Value]:
    def made(builder: Builder, args: list[Value], params: Any, out: Value) -> Value:
        shape = np.broadcast_shapes(*(each.shape for each in args))
        if len(shape) < len(out.full):  # of scalars alone
            shape = (1,) * (len(out.full) - len(shape)) + shape
        return builder.add(name, args, {}, Value(shape, out.full, out.dtype))

    return made


def _select(builder: Builder, args: list[Value], params: Any, out: Value) -> Value:
    which, *cases = args
    if len(cases) != 2 or which.dtype != bool:
        raise ValueError("the policy chooses among more than two arrays at once")
    return _elementwise("where")(builder, [which, cases[1], cases[0]], params, out)


def _clamp(builder: Builder, args: list[Value], params: Any, out: Value) -> Value:
    low, x, high = args
    raised = _elementwise("max")(builder, [x, low], params, out)
    return _elementwise("min")(builder, [raised, high], params, out)


def _rsqrt(builder: Builder, args: list[Value], params: Any, out: Value) -> Value:
    root = _elementwise("sqrt")(builder, args, params, out)
    return _elementwise("div")(builder, [constant(np.ones((), out.dtype)), root], params, out)


def _logistic(builder: Builder, args: list[Value], params: Any, out: Value) -> Value:
    """½ + ½ tanh(½ x)"""
    half = constant(np.asarray(0.5, out.dtype))
    for name, other in (("mul", half), ("tanh", None), ("mul", half), ("add", half)):
        args = [_elementwise(name)(builder, [*args, *([other] if other else [])], params, out)]
    return args[0]


def _round(builder: Builder, args: list[Value], params: Any, out: Value) -> Value:
    if int(params["rounding_method"]) != 1:  # to the nearest, of two equally near to the even
        raise ValueError("the policy rounds away from zero, which programs of rbve.runtime cannot")
    return _elementwise("round")(builder, args, params, out)


def _power(builder: Builder, args: list[Value], params: Any, out: Value) -> Value:
    shape = args[0].shape
    return builder.add(
        "integer_pow", args, {"power": int(params["y"])}, Value(shape, out.full, out.dtype)
    )


def _cast(builder: Builder, args: list[Value], params: Any, out: Value) -> Value:
    (x,) = args
    if x.dtype == out.dtype:
        return x
    settings = {"dtype": np.dtype(out.dtype).name}
    return builder.add("cast", args, settings, Value(x.shape, out.full, out.dtype))


def _broadcast(builder: Builder, args: list[Value], params: Any, out: Value) -> Value:
    (x,), dims = args[:1], params["broadcast_dimensions"]
    shape = [1] * len(out.full)
    for own, dim in enumerate(dims):
        shape[dim] = x.shape[own]
    made = builder.reshaped(x, shape, out.full)
    if made.array is not None and not builder.grows(out.full):
        return constant(np.array(np.broadcast_to(made.array, out.full)))
    return made


def _reshape(builder: Builder, args: list[Value], params: Any, out: Value) -> Value:
    return builder.reshaped(builder.whole(args[0]), out.full)


def _transpose(builder: Builder, args: list[Value], params: Any, out: Value) -> Value:
    (x,), order = args, params["permutation"]
    shape = tuple(x.shape[axis] for axis in order)
    if all(size == 1 for size in x.shape) or tuple(order) == tuple(range(len(order))):
        return builder.reshaped(x, shape, out.full)
    value = Value(shape, out.full, out.dtype)
    return builder.add("transpose", [x], {"axes": list(order)}, value)


def _squeeze(builder: Builder, args: list[Value], params: Any, out: Value) -> Value:
    gone = {axis % len(args[0].shape) for axis in params["dimensions"]}
    shape = [size for axis, size in enumerate(args[0].shape) if axis not in gone]
    return builder.reshaped(args[0], shape, out.full)


def _slice(builder: Builder, args: list[Value], params: Any, out: Value) -> Value:
    x = builder.whole(args[0])
    strides = params["strides"] or (1,) * len(x.shape)
    settings = {
        "start": list(params["start_indices"]),
        "stop": list(params["limit_indices"]),
        "step": list(strides),
    }
    return x if out.shape == x.shape else builder.add("slice", [x], settings, out)


def _split(builder: Builder, value: Value, params: Any) -> list[Value]:
    at, parts, axis = 0, [], params["axis"]
    for size in params["sizes"]:
        start = [0] * len(value.shape)
        limit = list(value.shape)
        start[axis], limit[axis] = at, at + size
        shape = tuple(size if i == axis else each for i, each in enumerate(value.shape))
        own = {"start_indices": start, "limit_indices": limit, "strides": None}
        parts.append(_slice(builder, [value], own, Value(shape, shape, value.dtype)))
        at += size
    return parts


def _pad(builder: Builder, args: list[Value], params: Any, out: Value) -> Value:
    x, filling = builder.whole(args[0]), args[1].array
    widths = params["padding_config"]
    if any(inner for _, _, inner in widths) or filling is None or filling != 0:
        raise ValueError("the policy pads between numbers or with others than zeros")
    settings = {"widths": [[int(low), int(high)] for low, high, _ in widths]}
    return builder.add("pad", [x], settings, out) if any(map(any, widths)) else x


def _reduce(name: str) -> Callable[..., Value]:
    def made(builder: Builder, args: list[Value], params: Any, out: Value) -> Value:
        axes = [int(axis) for axis in params["axes"]]
        return builder.add(name, [builder.whole(args[0])], {"axes": axes}, out)

    return made


def _argument(name: str) -> Callable[..., Value]:
    def made(builder: Builder, args: list[Value], params: Any, out: Value) -> Value:
        axis = int(params["axes"][0])
        found = Value(out.shape, out.full, np.dtype(np.int64))
        found = builder.add(name, [builder.whole(args[0])], {"axis": axis}, found)
        return _cast(builder, [found], {}, out)

    return made


def _cumsum(builder: Builder, args: list[Value], params: Any, out: Value) -> Value:
    if params["reverse"]:
        raise ValueError("the policy computes sums from the end, which programs cannot")
    return builder.add("cumsum", [builder.whole(args[0])], {"axis": int(params["axis"])}, out)


def _concat(builder: Builder, args: list[Value], params: Any, out: Value) -> Value:
    settings = {"axis": int(params["dimension"])}
    return builder.add("concat", [builder.whole(each) for each in args], settings, out)


def _dot(builder: Builder, args: list[Value], params: Any, out: Value) -> Value:
    a, b = (builder.whole(each) for each in args)
    (left, right), (left_batch, right_batch) = params["dimension_numbers"]
    if not left_batch:
        if tuple(left) == (len(a.shape) - 1,) and tuple(right) == (0,) and len(b.shape) <= 2:
            return builder.add("matmul", [a, b], {}, out)
        return builder.add("dot", [a, b], {"axes": [list(left), list(right)]}, out)
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    first = [next(letters) for _ in a.shape]
    second = [next(letters) for _ in b.shape]
    for one, other in (*zip(left, right, strict=True), *zip(left_batch, right_batch, strict=True)):
        second[other] = first[one]
    kept = [first[axis] for axis in left_batch]
    kept += [x for axis, x in enumerate(first) if axis not in {*left, *left_batch}]
    kept += [x for axis, x in enumerate(second) if axis not in {*right, *right_batch}]
    equation = f"{''.join(first)},{''.join(second)}->{''.join(kept)}"
    return builder.add("einsum", [a, b], {"equation": equation}, out)


TRANSLATED: dict[str, Callable[..., Any]] = {
    **{name: _elementwise(name) for name in ELEMENTWISE if name not in ("where", "round")},
    **{name: _reduce(own) for name, own in _REDUCED.items()},
    "add_any": _elementwise("add"), "select_n": _select, "clamp": _clamp, "rsqrt": _rsqrt,
    "logistic": _logistic, "round": _round, "integer_pow": _power, "convert_element_type": _cast,
    "broadcast_in_dim": _broadcast, "reshape": _reshape, "transpose": _transpose,
    "squeeze": _squeeze, "slice": _slice, "pad": _pad, "argmax": _argument("argmax"),
    "argmin": _argument("argmin"), "cumsum": _cumsum, "concatenate": _concat, "dot_general": _dot,
}  # fmt: skip
