"""A Program as ONNX nodes, one or a few for each operation."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rbve.runtime.program import Operation, Program

_PLAIN = {
    "neg": "Neg", "exp": "Exp", "log": "Log", "tanh": "Tanh", "sqrt": "Sqrt", "abs": "Abs",
    "sign": "Sign", "floor": "Floor", "ceil": "Ceil", "round": "Round", "not": "Not", "cos": "Cos",
    "sin": "Sin", "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "max": "Max",
    "min": "Min", "pow": "Pow", "eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater",
    "ge": "GreaterOrEqual", "and": "And", "or": "Or", "where": "Where", "matmul": "MatMul",
}  # fmt: skip
_REDUCTIONS = {
    "sum": "ReduceSum", "amax": "ReduceMax", "amin": "ReduceMin", "all": "ReduceMin",
    "any": "ReduceMax",
}  # fmt: skip
_END = np.iinfo(np.int64).max
# Of TensorProto.
TYPES = {"bool": 9, "uint8": 2, "int32": 6, "int64": 7, "float32": 1, "float64": 11, "string": 8}


class Nodes:
    """Nodes and constants under names of their own."""

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}
        self._count = 0
        self.batch = ""  # name of the batch size, (1,) int64

    def add(self, kind: str, takes: Sequence[str], domain: str = "", **settings: Any) -> str:
        """A node; the name of its output."""
        self._count += 1
        name = f"{kind.lower()}_{self._count}"
        node = self._onnx.helper.make_node(kind, list(takes), [name], domain=domain, **settings)
        self.nodes.append(node)
        return name

    def constant(self, value: Any, dtype: Any = None) -> str:
        array = np.asarray(value, dtype)
        name = f"constant_{len(self.constants)}"
        whole = np.array(array, order="C")
        self.constants[name] = self._onnx.numpy_helper.from_array(whole, name)
        return name

    def cast(self, name: str, dtype: str) -> str:
        return self.add("Cast", [name], to=TYPES[dtype])

    def concat(self, names: Sequence[str], axis: int) -> str:
        return self.add("Concat", names, axis=axis) if len(names) > 1 else names[0]

    def shape(self, sizes: Sequence[Any], fill: bool = True) -> str:
        """Sizes as a tensor. `fill`: one that grows with the batch is what is left."""
        grown = [size for size in sizes if not isinstance(size, int)]
        if not grown:
            return self.constant(list(sizes), np.int64)
        if fill and len(grown) == 1:
            return self.constant([s if isinstance(s, int) else -1 for s in sizes], np.int64)
        parts = []
        for size in sizes:
            if isinstance(size, int):
                parts.append(self.constant([size], np.int64))
                continue
            fixed, times = size
            own = self.batch
            if times != 1:
                own = self.add("Mul", [own, self.constant([times], np.int64)])
            if fixed:
                own = self.add("Add", [own, self.constant([fixed], np.int64)])
            parts.append(own)
        return self.add("Concat", parts, axis=0)

    def program(self, program: Program, inputs: Mapping[str, str]) -> dict[str, str]:
        """The names of its outputs, given those of its inputs."""
        names = [inputs[name] for name in program.inputs]
        names += [self.constant(each) for each in program.constants]
        for operation in program.operations:
            names.append(self._operation(operation, [names[i] for i in operation.takes]))
        return {name: names[index] for name, index in program.outputs.items()}

    def _operation(self, operation: Operation, takes: list[str]) -> str:
        name, settings = operation.name, operation.settings
        if name in _PLAIN:
            return self.add(_PLAIN[name], takes)
        if name in _REDUCTIONS:
            return self._reduced(name, takes[0], settings["axes"])
        if name not in _OTHERS:
            raise ValueError(f"the policy computes {name!r}, which has no form in ONNX here")
        return _OTHERS[name](self, takes, settings)

    def _reduced(self, name: str, x: str, axes: Sequence[int]) -> str:
        """Of booleans through whole numbers, which ONNX can compare."""
        logical = name in ("all", "any")
        x = self.cast(x, "int32") if logical else x
        found = self.add(_REDUCTIONS[name], [x, self.constant(list(axes), np.int64)], keepdims=0)
        return self.cast(found, "bool") if logical else found


_Settings = Mapping[str, Any]


def _not_equal(nodes: Nodes, takes: list[str], settings: _Settings) -> str:
    return nodes.add("Not", [nodes.add("Equal", takes)])


def _finite(nodes: Nodes, takes: list[str], settings: _Settings) -> str:
    bad = nodes.add("Or", [nodes.add("IsNaN", takes), nodes.add("IsInf", takes)])
    return nodes.add("Not", [bad])


def _square(nodes: Nodes, takes: list[str], settings: _Settings) -> str:
    return nodes.add("Mul", [takes[0], takes[0]])


def _log1p(nodes: Nodes, takes: list[str], settings: _Settings) -> str:
    return nodes.add("Log", [nodes.add("Add", [takes[0], nodes.constant(1, np.float32)])])


def _expm1(nodes: Nodes, takes: list[str], settings: _Settings) -> str:
    return nodes.add("Sub", [nodes.add("Exp", takes), nodes.constant(1, np.float32)])


def _power(nodes: Nodes, takes: list[str], settings: _Settings) -> str:
    return nodes.add("Pow", [takes[0], nodes.constant(settings["power"], np.float32)])


def _cast(nodes: Nodes, takes: list[str], settings: _Settings) -> str:
    return nodes.cast(takes[0], settings["dtype"])


def _reshape(nodes: Nodes, takes: list[str], settings: _Settings) -> str:
    return nodes.add("Reshape", [takes[0], nodes.shape(settings["shape"])])


def _broadcast(nodes: Nodes, takes: list[str], settings: _Settings) -> str:
    return nodes.add("Expand", [takes[0], nodes.shape(settings["shape"], fill=False)])


def _transpose(nodes: Nodes, takes: list[str], settings: _Settings) -> str:
    return nodes.add("Transpose", takes, perm=list(settings["axes"]))


def _slice(nodes: Nodes, takes: list[str], settings: _Settings) -> str:
    stops = [each if isinstance(each, int) else _END for each in settings["stop"]]
    if any(not isinstance(each, int) and each[0] for each in settings["stop"]):
        raise ValueError("the policy takes a part of a batch; it has no form in ONNX here")
    axes = range(len(stops))
    tensors = (settings["start"], stops, axes, settings["step"])
    return nodes.add("Slice", [takes[0], *(nodes.constant(list(t), np.int64) for t in tensors)])


def _pad(nodes: Nodes, takes: list[str], settings: _Settings) -> str:
    low, high = zip(*settings["widths"], strict=True)
    return nodes.add("Pad", [takes[0], nodes.constant([*low, *high], np.int64)])


def _argument(kind: str) -> Callable[[Nodes, list[str], _Settings], str]:
    return lambda nodes, takes, settings: nodes.add(kind, takes, axis=settings["axis"], keepdims=0)


def _cumsum(nodes: Nodes, takes: list[str], settings: _Settings) -> str:
    return nodes.add("CumSum", [takes[0], nodes.constant(settings["axis"], np.int64)])


def _concat(nodes: Nodes, takes: list[str], settings: _Settings) -> str:
    return nodes.add("Concat", takes, axis=settings["axis"])


def _einsum(nodes: Nodes, takes: list[str], settings: _Settings) -> str:
    return nodes.add("Einsum", takes, equation=settings["equation"])


_OTHERS: dict[str, Callable[[Nodes, list[str], _Settings], str]] = {
    "ne": _not_equal, "is_finite": _finite, "square": _square, "log1p": _log1p, "expm1": _expm1,
    "integer_pow": _power, "cast": _cast, "reshape": _reshape, "broadcast": _broadcast,
    "transpose": _transpose, "slice": _slice, "pad": _pad, "argmax": _argument("ArgMax"),
    "argmin": _argument("ArgMin"), "cumsum": _cumsum, "concat": _concat, "einsum": _einsum,
    "dot": _einsum,
}  # fmt: skip
