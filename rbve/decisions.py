"""The Python interface, from a log to a decision: what policies are worth, and which to deploy."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rbve import backend, runtime, streaming
from rbve.audit import audit
from rbve.data import Dataset, load
from rbve.data.manifest import content_fingerprint, fingerprint
from rbve.exports import form_for
from rbve.exports._shipment import Shipment
from rbve.ope.fits import FitPlan
from rbve.ope.judge import OpePlan, OpeResult
from rbve.ope.options import SelectOptions
from rbve.ope.run import Question, Target, answer
from rbve.ope.select import Selection
from rbve.ope.select import select as selecting
from rbve.ope.support import SupportPlan, with_support
from rbve.ope.targets import Deployment
from rbve.policy import Policy
from rbve.policy.file import policy_file
from rbve.report import card
from rbve.runtime import Decider
from rbve.runtime.folder import DESCRIPTION
from rbve.streaming import Predicted, Prediction
from rbve.training.run import POLICY, Progress

__all__ = ["export", "ope", "predict", "select"]


def ope(
    data: Dataset | str | Path,
    policies: Mapping[str, Target | str | Path] | Target | str | Path,
    *,
    gamma: float | None = None,
    epsilon: float = 0.0,
    temperature: float = 0.0,
    propensities: Any = None,
    by: str | None = None,
    interval: str = "student",
    level: float = 0.9,
    fit_steps: int = 20_000,
    folds: int = 2,
    seed: int = 0,
    seen: bool = False,
    out: str | Path | None = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> OpeResult:
    """What policies are worth by a log alone: estimates, intervals and gates.

    Args:
        data: The log, a Dataset or the path of a store.
        policies: One policy, or several by name. A policy is a Policy, its file, a table of
            probabilities (a row per decision of the log, a column per action), or a function of
            observations (R, ...) and, if it takes a second argument, masks of legal actions, that
            gives such a table.
        gamma: Discount; None = the one the policies were trained with, else 0.99.
        epsilon: Share of random legal actions when trained policies act.
        temperature: Trained policies act by softmax(scores / temperature); 0 = by the best action.
        propensities: "logged" or "estimated"; None = logged where the log has them.
        by: A named column: values by its levels too.
        interval: "student", "bootstrap" or "bernstein", over episodes.
        level: Probability that an interval holds the value.
        fit_steps: Updates of each fit of values and propensities.
        folds: Parts of the episodes; each is judged by fits to the others.
        seed: Of folds and fits.
        seen: Judge by episodes that the policies were trained on; values come out too good.
        out: Folder that keeps the fits, where an interrupted call resumes.
        on_progress: Called as fits go on.

    Returns:
        `behaviour` with its interval and a Judgement per policy: `result["name"].best` is the
        estimate to go by, None if all were refused; `gates` say why.

    Raises:
        ValueError: A policy does not fit the log, propensities or probabilities are none, or the
            policies were trained on these episodes; the message says what to do.
    """
    backend.prepare()
    named = dict(policies) if isinstance(policies, Mapping) else {"policy": policies}
    targets: dict[str, Target] = {
        name: Policy.load(each) if isinstance(each, str | Path) else each
        for name, each in named.items()
    }
    opened = data if isinstance(data, Dataset) else load(data, verify=False)
    mark = content_fingerprint(data) if isinstance(data, Dataset) else fingerprint(Path(data))
    acting = Deployment(epsilon, temperature)
    fit = FitPlan(fit_steps, folds, seed, out=None if out is None else Path(out))
    plan = OpePlan(propensities=propensities, fit=fit, interval=interval, level=level)
    return answer(opened, Question(targets, acting, gamma, by, seen, mark), plan, on_progress)


def select(
    data: str | Path,
    out: str | Path,
    *,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    **options: Any,
) -> Selection:
    """Audit a log, train candidates, judge them and their checkpoints, recommend.

    Args:
        data: Path of a store.
        out: Folder for runs, fits, `card.html` and, if one is recommended, `policy.safetensors`; an
            interrupted call resumes there.
        on_progress: Called as training and fits go on.
        **options: Fields of rbve.ope.options.SelectOptions, the flags of `rbve select`: algorithm,
            steps, checkpoints, holdout, gamma, ...

    Returns:
        `recommendation` (decision, policy, reasons), `result` with every judgement, `policies`.

    Raises:
        ValueError: The audit says not to train on this log, or it cannot judge; the message says
            what to do.
    """
    backend.prepare()
    known = SelectOptions(**options)
    dataset = load(data)
    checked = audit(dataset, known.gamma)
    if checked.verdict == "stop":
        names = ", ".join(each.name for each in checked.findings)
        raise ValueError(
            f"{data}: the audit says not to train on this log ({names}); `rbve inspect {data}` "
            "says what to do about it"
        )
    chosen = selecting(Path(data), dataset, known, Path(out), on_progress)
    card.write(chosen, checked, str(data), Path(out) / "card.html")
    if chosen.recommendation.decision == "deploy":
        chosen.policies[str(chosen.recommendation.policy)].save(Path(out) / POLICY)
    return chosen


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
        legal: Column of legal actions, or a prefix as in "legal:*".
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


def named_policies(files: Sequence[Path], algorithm: str | Path | None = None) -> dict[str, Policy]:
    """Policies by their files, each under a short name of its own."""
    backend.prepare()
    loaded = [Policy.load(policy_file(file), algorithm) for file in files]
    names: dict[str, Policy] = {}
    for file, policy in zip(files, loaded, strict=True):
        folder = file if file.is_dir() else file.parent
        name = policy.algorithm.name
        if name in names or sum(each.algorithm.name == name for each in loaded) > 1:
            name = folder.name or str(file)
        if name in names:
            raise ValueError(f"{file}: given twice, or two policies of one name")
        names[name] = policy
    return names
