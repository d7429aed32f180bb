"""`rbve export`."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from rbve.cli import _console
from rbve.cli._arguments import AlgorithmFile
from rbve.exports import FORMS

_FORMS = "; ".join(f"{name}: {FORMS.summary(name)}" for name in FORMS.names())


def command(
    policy: Positional[Annotated[Path, arg(metavar="POLICY")]],
    out: Positional[Annotated[Path, arg(metavar="OUT")]],
    /,
    format: Annotated[
        str | None, arg(help=f"Form, if the ending of OUT does not say. {_FORMS}.", metavar="FORM")
    ] = None,
    epsilon: float = 0.0,
    temperature: float = 0.0,
    pixels: bool = False,
    support: Annotated[Path | None, arg(metavar="DATA")] = None,
    fallback: str | None = None,
    threshold: float = 0.05,
    support_steps: int = 20_000,
    overwrite: bool = False,
    algorithm: AlgorithmFile = None,
) -> None:
    """Write a policy for other systems: ONNX, StableHLO, or a folder that NumPy alone runs.

    What is written takes rows as they stand in the log, and legal actions; it gives the action, Q,
    scores, the probability of each action, the gap to the next best, and whether the data supports
    the decision. A policy with a memory is written as one step, with its state in and out.
    Before anything appears at OUT it has decided as the policy does, on random rows.

        rbve export runs/visits/rbve-1234 visits.onnx

    Args:
        policy: File of a saved policy, or the folder of its run.
        out: What to write: a name ending in .onnx or .stablehlo, a folder for rbve.runtime, or a
            name ending in .safetensors, a policy with its model of the behaviour.
        epsilon: Share of random legal actions, in the probabilities.
        temperature: Act by softmax(scores / temperature), in the probabilities; 0 = by the best
            action. Of cloning 1 gives its own probabilities.
        pixels: Observations are bytes from 0 to 255, as images are. The folder takes both.
        support: The log, a store. A model of its behaviour is fitted and shipped: decisions that
            the log gives no support say so.
        fallback: What is done then: an action, or behaviour, what the log does most often in such
            a state. Default: the policy's action all the same.
        threshold: Least probability, in the log, of an action that counts as supported.
        support_steps: Updates of the model.
        overwrite: Replace what is at OUT.
    """
    from rbve import shipping

    total = support_steps if support is not None else None
    with _console.bar("fitting the behaviour" if total else "", total, "updates") as bar:
        shipping.export(
            policy, out, format=format, epsilon=epsilon, temperature=temperature, pixels=pixels,
            support=support, fallback=fallback, threshold=threshold, support_steps=support_steps,
            overwrite=overwrite, algorithm=algorithm, on_progress=bar.trained,
        )  # fmt: skip
    size = sum(f.stat().st_size for f in (out.iterdir() if out.is_dir() else [out]))
    _console.say(f"{out}: {size:,} bytes")
