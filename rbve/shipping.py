"""The Python interface, from a policy to other systems: exports, and files of decisions."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

from rbve import backend, runtime, streaming
from rbve.data import Dataset, load
from rbve.exports import form_for
from rbve.exports._shipment import Shipment
from rbve.off_policy.support import SupportPlan, with_support
from rbve.policy import Policy
from rbve.policy.file import policy_file
from rbve.runtime import Decider
from rbve.runtime.folder import DESCRIPTION
from rbve.streaming import Predicted, Prediction
from rbve.training.run import Progress

__all__ = ["export", "predict"]


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


def predict(
    policy: Policy | Decider | str | Path,
    rows: str | Path,
    out: str | Path,
    *,
    keep: Sequence[str] | None = None,
    legal: str | None = None,
    values: bool = False,
    on_error: str = "stop",
    prefix: str = "policy_",
    overwrite: bool = False,
    algorithm: str | Path | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Predicted:
    """Decide for every row of a CSV or Parquet file, and write the decisions as Parquet.

    Args:
        policy: A Policy or its file, or what rbve.runtime.load reads.
        rows: File with the columns that the policy takes.
        out: Parquet file to write.
        keep: Columns of `rows` that are carried through; None = all.
        legal: Column of legal actions, or a prefix as in `legal:*`.
        values: Also write the value of every action.
        on_error: "stop" at a row that is none, or "skip" it.
        prefix: Of the names of the columns that are added.
        overwrite: Replace what is at `out`.
        algorithm: File of a saved policy's algorithm, where it has scores of its own.
        on_progress: Called as rows are written, with how much was read of how much.

    Returns:
        How many rows were written, lack support and were skipped, and the first of these by line.

    Raises:
        ValueError: A column or row is not what the policy takes.
    """
    if on_error not in ("stop", "skip"):
        raise ValueError(f"on_error is 'stop' or 'skip'; got {on_error!r}")
    if isinstance(policy, str | Path):
        place = Path(policy)
        if (place / DESCRIPTION).is_file():
            policy = runtime.load(place)
        else:
            policy = Policy.load(policy_file(place), algorithm)
    decider = policy.decider if isinstance(policy, Policy) else policy
    kept = None if keep is None else tuple(keep)
    plan = Prediction(kept, legal, values, on_error == "skip", prefix)
    return streaming.predict(decider, Path(rows), Path(out), plan, overwrite, on_progress)
