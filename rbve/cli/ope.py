"""`rbve ope`."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import Positional, arg

from rbve.cli import _console
from rbve.cli._arguments import AlgorithmFile, Json


def command(
    policies: Positional[Annotated[tuple[Path, ...], arg(metavar="POLICY... DATA")]],
    /,
    gamma: float | None = None,
    epsilon: float = 0.0,
    temperature: float = 0.0,
    propensities: Literal["logged", "estimated"] | None = None,
    by: str | None = None,
    interval: Literal["student", "bootstrap", "bernstein"] = "student",
    level: float = 0.9,
    fit_steps: int = 20_000,
    folds: int = 2,
    seed: int = 0,
    seen: bool = False,
    bellman: bool = False,
    html: Path | None = None,
    out: Path | None = None,
    algorithm: AlgorithmFile = None,
    as_json: Json = False,
) -> None:
    """Estimate what saved policies are worth by a log alone, without an environment.

    Every estimator gives a number, an interval over episodes and the difference to what the log's
    own behaviour returned. A number that fails a gate is refused, and the line says why and what
    would help. A policy trained on this store with --holdout is judged by the held-out episodes.

    Exit codes: 0 at least one policy has an estimate, 2 bad input, 3 every estimate was refused.

    Args:
        policies: Files of saved policies or folders of their runs, or tables of probabilities, a
            row per decision of the store in its order and a column per action (.npy, or .csv and
            .parquet with columns named as the actions); then the log, a store.
        gamma: Discount. Default: the one the policies were trained with.
        epsilon: Share of random legal actions when the policies act.
        temperature: Act by softmax(scores / temperature); 0 = by the best action. Of cloning 1
            gives its own probabilities.
        propensities: Logged, or estimated by cloning. Default: logged where the log has them.
        by: Column of the observations: values by its levels too.
        interval: How intervals are made over episodes.
        level: Probability that an interval holds the value.
        fit_steps: Updates of each fit of values and propensities.
        folds: Parts of the episodes; each is judged by fits to the others.
        seed: Seed of folds and fits.
        seen: Judge by episodes that the policies were trained on; values come out too good.
        bellman: Also compare Q-functions by supervised Bellman validation, a fit more for each.
        html: Also write a page with figures.
        out: Folder that keeps the fits, so that the same command goes on after an interruption.
    """
    from rbve import decisions
    from rbve.off_policy.behaviour import updates_of_cloning
    from rbve.off_policy.fits import FitPlan
    from rbve.report import ope_page

    if len(policies) < 2:
        raise ValueError("give one or more policies, then the log: rbve ope POLICY... DATA")
    *files, data = policies
    targets = decisions.named_policies(files, data, algorithm)
    plan = FitPlan(fit_steps, folds)
    fits = folds * len(targets) * (2 if bellman else 1)
    updates = fits * fit_steps + updates_of_cloning(plan)
    count = f"{len(targets)} policies" if len(targets) > 1 else "a policy"
    words = f"fitting values of {count}, and the behaviour"
    with _console.bar(words, updates, "updates") as bar:
        result = decisions.ope(
            data, targets, gamma=gamma, epsilon=epsilon, temperature=temperature,
            propensities=propensities, by=by, interval=interval, level=level, fit_steps=fit_steps,
            folds=folds, seed=seed, seen=seen, bellman=bellman, out=out,
            on_progress=bar.trained,
        )  # fmt: skip
    if as_json:
        print(json.dumps(ope_page.to_json(result)))
    else:
        _show(result)
    if html is not None:
        _console.tell(f"page: {ope_page.write(result, html, str(data))}")
    if not any(each.best for each in result.judgements):
        raise SystemExit(3)


def _show(result: Any) -> None:
    from rich.table import Table
    from rich.text import Text

    from rbve.report.ope_words import acting_words, verdict, with_interval

    out = _console.output()
    _console.show_notes(result.notes)
    own = with_interval(result.behaviour, result.behaviour_interval)
    out.print(Text(
        f"{result.episodes:,} episodes, {result.decisions:,} decisions; discount {result.gamma:g}; "
        f"propensities {result.propensities.source}; {result.level:.0%} intervals"
        + acting_words(result)
    ))  # fmt: skip
    out.print(Text(f"behaviour, the log itself: {own}", style="bold"))
    for judgement in result.judgements:
        title = f"{judgement.policy}: {verdict(judgement)}"
        table = Table("estimator", title=Text(title), title_justify="left")
        for name in ("value", "difference to the behaviour"):
            table.add_column(name, justify="right")
        for each in judgement.estimates:
            if each.passed:
                difference = with_interval(each.difference, each.difference_interval)
                table.add_row(each.label, with_interval(each.value, each.interval), difference)
            else:
                table.add_row(each.label, Text("refused", style="yellow"), ", ".join(each.failed))
        out.print(table)
        failed = {name for each in judgement.estimates for name in each.failed}
        for gate in judgement.gates:
            if gate.name in failed:
                out.print(Text(f"  ✗ {gate.name}: {gate}"))
        error = result.bellman_errors.get(judgement.policy)
        if check := result.values.get(judgement.policy):
            out.print(Text(
                f"  it claims {check.claimed:.4g} where {check.returned:.4g} followed in the log; "
                f"takes {judgement.agreement:.0%} of the logged actions"
                + (f"; Bellman error {error:.4g}" if error is not None else "")
            ))  # fmt: skip
    for group in result.groups:
        cells = ", ".join(f"{name} {with_interval(*own)}" for name, own in group.values.items())
        mine = with_interval(group.behaviour, group.behaviour_interval)
        out.print(Text(f"{result.by} {group.name} ({group.episodes:,}): behaviour {mine}; {cells}"))
