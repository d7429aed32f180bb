"""An estimate of what one update costs, from the shapes in its program, made before training.

Operations of products and convolutions are counted; every iteration of a loop adds its overhead.
The estimate is for CPUs and good to a factor of a few.
"""

import itertools
import math
import os
import warnings
from typing import Any, NamedTuple

from rbve import backend
from rbve.spec import Spec

SPEED = 2e10  # floating-point operations a second
_TURN = 4e4  # operations that take as long as a loop's step to its next iteration
_SLOW_UPDATE, _LONG_RUN = 0.5, 3600.0  # seconds; a run beyond both is warned of
LARGE = 1e7  # rows of a batch times weights; no update below is slow


class Work(NamedTuple):
    operations: float
    bytes: float  # of results that are kept for the gradient, about


def of_program(program: Any) -> Work:
    operations = held = 0.0
    for equation in program.eqns:
        turns = equation.params.get("length", 1) if equation.primitive.name == "scan" else 1
        held_by = (v if isinstance(v, tuple | list) else (v,) for v in equation.params.values())
        for value in itertools.chain(*held_by):
            inner = value if hasattr(value, "eqns") else getattr(value, "jaxpr", None)
            if not hasattr(inner, "eqns"):
                continue
            work = of_program(inner)
            operations += turns * work.operations
            held += work.bytes
        sizes = [math.prod(each.aval.shape) for each in equation.outvars]
        operations += sum(sizes)
        name = equation.primitive.name
        if name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            shape = equation.invars[0].aval.shape
            operations += 2 * sizes[0] * math.prod(shape[axis] for axis in contracted)
        elif name == "conv_general_dilated":
            kernel = equation.invars[1].aval.shape
            outputs = kernel[equation.params["dimension_numbers"].rhs_spec[0]]
            operations += 2 * sizes[0] * math.prod(kernel) / outputs
        elif name == "scan":
            operations += turns * _TURN
        if name in ("dot_general", "conv_general_dilated", "scan"):
            held += 4 * sum(sizes)
    return Work(operations, held)


def check_work(spec: Spec, work: Work, rows: int) -> None:
    """Refuse updates that do not fit this computer's memory; warn of runs that take hours. `rows`
    are those of one sequence, 1 without memory."""
    if backend.platform() != "cpu":
        return
    remedies = [f"a --batch-size below {spec.sampling.batch_size}"]
    if "samples" in spec.settings:
        remedies.insert(0, f"--set samples=8 for {spec.settings['samples']} quantiles")
    if spec.network.memory and not spec.sampling.sequence:
        whole = f"not on whole episodes ({rows:,} rows)"
        remedies.insert(0, f"train on windows with --sequence 200 --burn-in 40, {whole}")
    advice = "; or ".join(remedies) if len(remedies) > 1 else f"give {remedies[0]}"
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if work.bytes > memory:
        raise ValueError(
            f"one update of {spec.algorithm_name} on this data needs about "
            f"{work.bytes / 2**30:,.0f} GiB, and this computer has {memory / 2**30:,.0f}; {advice}"
        )
    seconds = work.operations / SPEED
    if seconds > _SLOW_UPDATE and seconds * spec.steps > _LONG_RUN:
        warnings.warn(
            f"one update of {spec.algorithm_name} on this data takes about {seconds:,.1f} s on a "
            f"processor, {spec.steps:,} of them about {seconds * spec.steps / 3600:,.0f} hours; "
            f"{advice}",
            stacklevel=2,
        )
