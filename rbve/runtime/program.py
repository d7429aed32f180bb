"""A policy's computation as a short list of array operations, for any batch size.

Values are numbered: inputs, then constants, then the result of every operation. A size that depends
on the batch size B is written [a, b], which is a + b·B.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from rbve.runtime.operations import make

_KEPT = 64  # batch sizes whose functions are kept
_SIZED = ("shape", "start", "stop")  # settings that hold sizes


class Operation(NamedTuple):
    name: str
    takes: tuple[int, ...]
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Program:
    inputs: tuple[str, ...]
    constants: tuple[np.ndarray, ...]
    operations: tuple[Operation, ...]
    outputs: Mapping[str, int]
    _bound: dict[int, Callable[..., Any]] = field(default_factory=dict, compare=False, repr=False)

    def __call__(self, batch: int, **inputs: np.ndarray) -> dict[str, np.ndarray]:
        """Outputs by name, of inputs by name."""
        run = self._bound.get(batch)
        if run is None:
            if len(self._bound) >= _KEPT:
                self._bound.clear()
            run = self._bound[batch] = self.bind(np, batch)
        with np.errstate(all="ignore"):  # as on a device, where infinities are silent
            return run([inputs[name] for name in self.inputs])

    def bind(self, xp: Any, batch: Any) -> Callable[[Sequence[Any]], dict[str, Any]]:
        """The function for one batch size, of the inputs in their order. `xp` is (jax.)numpy, for
        which the size may be a symbol."""
        constants = [xp.asarray(each) for each in self.constants]
        made = [
            (make(xp, each.name, sized(each.settings, batch)), each.takes)
            for each in self.operations
        ]

        def run(inputs: Sequence[Any]) -> dict[str, Any]:
            values = [*inputs, *constants]
            add = values.append
            for function, takes in made:
                add(function(*[values[index] for index in takes]))
            return {name: values[index] for name, index in self.outputs.items()}

        return run

    def to_json(self) -> dict[str, Any]:
        return {
            "inputs": list(self.inputs),
            "operations": [[op.name, list(op.takes), dict(op.settings)] for op in self.operations],
            "outputs": dict(self.outputs),
        }

    @staticmethod
    def from_json(content: Mapping[str, Any], constants: Sequence[np.ndarray]) -> "Program":
        """Of JSON that was checked to have these fields; ValueError where a value is used before
        it is made."""
        inputs = tuple(content["inputs"])
        operations = []
        known = len(inputs) + len(constants)
        for entry in content["operations"]:
            name, takes, settings = entry
            if not all(type(index) is int and 0 <= index < known for index in takes):
                raise ValueError(f"operation {name!r} takes a value that is not there")
            operations.append(Operation(str(name), tuple(takes), settings))
            known += 1
        outputs = dict(content["outputs"])
        if not all(type(index) is int and 0 <= index < known for index in outputs.values()):
            raise ValueError("an output is not there")
        return Program(inputs, tuple(constants), tuple(operations), outputs)


def sized(settings: Mapping[str, Any], batch: Any) -> dict[str, Any]:
    """With the sizes for a batch."""

    def of(size: Any) -> Any:
        if not isinstance(size, list | tuple):
            return size
        fixed, times = size
        grown = batch if times == 1 else times * batch
        return grown + fixed if fixed else grown

    return {
        name: [of(each) for each in value] if name in _SIZED else value
        for name, value in settings.items()
    }
