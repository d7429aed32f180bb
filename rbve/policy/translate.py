"""JAX's primitives as the operations of a Program (rbve/runtime/operations.py)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.extend.core import Literal

from rbve.policy.primitives import TRANSLATED, Value, constant, split
from rbve.runtime.operations import make
from rbve.runtime.program import Operation, Program

_UNROLLED = 8  # steps of a scan at most; acting takes one
_CALLS = ("jaxpr", "call_jaxpr", "fun_jaxpr")  # parameters that hold what a primitive calls
_SAME = ("stop_gradient", "optimization_barrier", "copy", "copy_p", "reduce_precision")
_FLOATS_ONLY = ("div", "rem", "integer_pow")
_BOOLS_ONLY = ("and", "or", "not")


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
            return split(self, self.whole(args[0]), params)
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
