"""The theory experiments: their question, the answer in numbers, the figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from rbve.paper import experiments
from rbve.paper.pages import theory_figures
from rbve.paper.pages.html import paragraph
from rbve.paper.pages.theory_canvas import keyed
from rbve.paper.results import theory_runs
from rbve.report.chart import minus
from rbve.report.page import Section
from rbve.report.table import number
from rbve.rows import Run


def sections(paths: Sequence[Path]) -> list[Section]:
    runs = theory_runs(paths)
    known = {name: experiments.load(name) for name in experiments.names() if name in runs}
    return [
        section(name, experiment, runs[name])
        for name, experiment in known.items()
        if isinstance(experiment, experiments.Theory)
    ]


def section(name: str, experiment: experiments.Theory, runs: Sequence[Run]) -> Section:
    answer = ANSWERS.get(experiment.module)
    body = paragraph(str(runs[0].facts.get("question", experiments.summary(name))), "headline")
    body += paragraph(f"In the paper: {experiment.paper}. {len(runs):,} runs.", "muted")
    if answer is not None:
        body += paragraph(answer(runs))
    title = experiments.summary(name).partition(":")[0]
    return Section(
        f"theory-{name}",
        f"Theory: {title.lower()}",
        body,
        theory_figures.charts(experiment.module, runs),
        short=title,
        pictures=theory_figures.pictures(experiment.module, runs),
    )


def divergence(runs: Sequence[Run]) -> str:
    plain = [run for run in runs if run.spec["w"] == 1 and run.spec["factor"] == 1]

    def escaped(method: str, end: str) -> str:
        own = [r for r in plain if (r.spec["method"], r.spec["end"]) == (method, end)]
        return f"{sum(r.last('escaped') == 1 for r in own)} of {len(own)}"

    sgd = next(
        (r for r in plain if r.job == "divergence/q/sgd" and r.last("growth/closed_form")), None
    )
    growth = ""
    if sgd is not None:
        error = minus(f"{sgd.last('closed_form_error'):.0e}")
        growth = (
            f" With plain gradient steps w grows by {sgd.last('growth'):.4f} per update, as the "
            f"closed form says ({sgd.last('growth/closed_form'):.4f}; largest relative error "
            f"{error})."
        )
    return (
        f"Q-learning passes |Q| = {plain[0].facts['limit']:g} in {escaped('q', 'logged')} runs, "
        f"BVE in {escaped('bve', 'logged')}.{growth} BVE stays bounded only because the log holds "
        f"no action in s3: made to bootstrap there, it escapes in {escaped('bve', 'bootstrap')}."
    )


def extrapolation(runs: Sequence[Run]) -> str:
    parts = []
    for name, words in (("mlp", "network"), ("cubic", "cubic")):
        own = [run for run in runs if run.spec["approximator"] == name]
        if not own:
            continue
        few, many = (f(own, key=lambda run: run.spec["observed"]) for f in (min, max))
        parts.append(
            f"of a {words}'s fit to {few.spec['observed']} of {few.spec['actions']} actions "
            f"{share(few, 'exceeds'):.0%} (by more than "
            f"{few.facts['clearly']:g} σ: {share(few, 'exceeds/clearly'):.0%}), fitted to "
            f"{many.spec['observed']} {share(many, 'exceeds'):.0%} "
            f"({share(many, 'exceeds/clearly'):.0%})"
        )
    return (
        "How often the maximum lies at an unobserved action and above the true maximum: "
        + "; ".join(parts)
        + f" (n = {runs[0].spec['seeds'][1]} random states each)."
    )


def share(run: Run, metric: str) -> float:
    return float(np.mean(list(keyed(run, f"{metric}/", numbers=True).values())))


def improvement(runs: Sequence[Run]) -> str:
    checked = [(str(r.facts["family"]), r.last("mdps"), r.last("violations")) for r in runs]
    held = [each for each in checked if each[2] == 0]
    broken = [each for each in checked if each[2]]
    words = "; ".join(f"{name} {bad:,.0f} of {count:,.0f}" for name, count, bad in broken)
    return (
        f"One greedy step is optimal in all {sum(each[1] or 0 for each in held):,.0f} processes of "
        f"{len(held)} families: {'; '.join(each[0] for each in held)}. It fails for some way to "
        f"break ties in {len(broken)} families: {words}."
    )


def gridworld(runs: Sequence[Run]) -> str:
    start = {run.spec["policy"]: run.last("start") for run in runs if "policy" in run.spec}
    drawn = sorted((run for run in runs if "layouts" in run.spec), key=lambda r: -r.spec["trap"])
    shares = "; ".join(
        f"{run.last('close'):.0%} where a trap costs {-run.spec['trap']:g}" for run in drawn
    )
    count = drawn[0].spec["layouts"] if drawn else 0
    near = f"{runs[0].facts['near']:.0%}" if "near" in runs[0].facts else "95%"
    values = ", ".join(f"{name} {number(value, 2)}" for name, value in start.items())
    return (
        f"Value at the start of the layout shown: {values}. The layout was chosen to show this. Of "
        f"{count:,} random layouts, one greedy step has at least "
        f"{near} of the optimal value in {shares}."
    )


ANSWERS: dict[str, Callable[[Sequence[Run]], str]] = {
    "divergence": divergence,
    "extrapolation": extrapolation,
    "improvement": improvement,
    "gridworld": gridworld,
}
