"""The Python interface, from a policy to other systems."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

from rbve import backend
from rbve.data import Dataset, load
from rbve.exports import form_for
from rbve.exports._shipment import Shipment
from rbve.off_policy.support import SupportPlan, with_support
from rbve.policy import Policy
from rbve.runtime.saved import policy_file
from rbve.training.run import Progress

__all__ = ["export"]


def export(
    policy: Policy | str | Path,
    out: str | Path,
    *,
    format: str | None = None,
    epsilon: float = 0.0,
    temperature: float = 0.0,
    pixels: bool = False,
    support: Dataset | str | Path | None = None,
    fallback: str | None = None,
    threshold: float = 0.05,
    support_steps: int = 20_000,
    overwrite: bool = False,
    algorithm: str | Path | None = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> None:
    """Write a policy for other systems.

    Args:
        policy: A Policy or its file.
        out: What to write: a name ending in .onnx or .stablehlo, or a folder for rbve.runtime.
        format: Of `out`: "numpy", "onnx" or "stablehlo"; None = by its name.
        epsilon: Share of random legal actions, in the probabilities.
        temperature: The policy acts by softmax(scores / temperature); 0 = by the best action.
        pixels: Observations are bytes from 0 to 255.
        support: The log, to which a model of its behaviour is fitted, so that decisions that it
            gives no support say so.
        fallback: What is done then: an action, or "behaviour", what the log does most often in
            such a state; None = the policy's action all the same.
        threshold: Least probability, in the log, of an action that counts as supported.
        support_steps: Updates of the model.
        overwrite: Replace what is at `out`.
        algorithm: File of a saved policy's algorithm, where it has scores of its own.
        on_progress: Called as the model of the behaviour is fitted.

    Raises:
        ValueError: The policy computes what the form cannot, or `out` exists.
        ImportError: The form needs a package; the message names it.

    Example:
        >>> rbve.export("policy.safetensors", "shipped")
        >>> rbve.runtime.load("shipped").actions
        ('mild', 'none', 'strong')
    """
    backend.prepare()
    path = Path(out)
    form = form_for(path, format)
    if path.exists() and not overwrite:
        raise ValueError(f"{path}: already exists; pass --overwrite or choose another")
    own = policy
    if not isinstance(own, Policy):
        own = Policy.load(policy_file(Path(own)), algorithm)
    if support is not None:
        opened = support if isinstance(support, Dataset) else load(support, verify=False)
        plan = SupportPlan(threshold, fallback, support_steps)
        own = with_support(own, opened, plan, on_progress)
    elif fallback is not None:
        raise ValueError("a fallback needs the log, to tell what it supports: give support too")
    rules = dataclasses.replace(own.decider.rules, epsilon=epsilon, temperature=temperature)
    form.write(Shipment(own, rules, pixels), path)
