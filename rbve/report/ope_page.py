"""What policies are worth by a log, as one self-contained HTML page, and as JSON."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from markupsafe import escape

from rbve.off_policy.judge import OpeResult, PolicyJudgement, ValueEstimate
from rbve.report import page
from rbve.report.chart import Chart, Mark, Panel, Point, Series
from rbve.report.ope_behaviour import behaviour_section
from rbve.report.ope_confounding import confounding_section
from rbve.report.ope_words import (
    BLUE,
    GREY,
    acting_words,
    html_table,
    number,
    refusal,
    verdict,
    with_interval,
)  # fmt: skip
from rbve.report.page import Section


def to_json(result: OpeResult) -> dict[str, Any]:
    """Everything but the influence values; numbers that are not finite are None."""
    content: dict[str, Any] = {
        "gamma": result.gamma, "acting": result.acting,
        "level": result.level, "interval": result.interval,
        "episodes": result.episodes, "decisions": result.decisions,
        "behaviour": {"value": result.behaviour, "interval": result.behaviour_interval},
        "propensities": {
            "source": result.propensities.source, **asdict(result.propensities.calibration),
        },
        "notes": list(result.notes),
        "policies": {each.policy: _policy_json(each, result) for each in result.judgements},
    }  # fmt: skip
    if result.by:
        content["by"] = {"column": result.by, "groups": [asdict(each) for each in result.groups]}
    return _plain(content)


def _policy_json(judgement: PolicyJudgement, result: OpeResult) -> dict[str, Any]:
    estimates = {
        each.label: {
            "value": each.value, "interval": each.interval, "difference": each.difference,
            "difference_interval": each.difference_interval, "passed": each.passed,
            "failed": list(each.failed),
        }
        for each in judgement.estimates
    }  # fmt: skip
    best = judgement.best
    own = result.values.get(judgement.policy)
    return {
        "estimate": None if best is None else best.label,
        "estimates": estimates,
        "gates": [asdict(gate) for gate in judgement.gates],
        "agreement": judgement.agreement,
        "confounding": [each._asdict() for each in judgement.confounding],
        "breakdown": judgement.breakdown,
        "values": None if own is None else {**asdict(own), "overestimation": own.overestimation},
        "bellman_error": result.bellman_errors.get(judgement.policy),
    }


def _plain(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _plain(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    return content.item() if hasattr(content, "item") else content


def write(result: OpeResult, path: str | Path, title: str) -> Path:
    """Write the page; figures and their numbers lie beside it."""
    about = (
        f"{result.episodes:,} episodes, {result.decisions:,} decisions; discount {result.gamma:g}; "
        f"{result.level:.0%} intervals ({result.interval}) over episodes; propensities "
        f"{result.propensities.source}{acting_words(result)}."
    )
    return page.write(sections(result), Path(path), f"What policies are worth: {title}", about)


def sections(result: OpeResult) -> list[Section]:
    return [
        _summary(result), _estimates(result), _gates(result), *_groups(result), *_values(result),
        *confounding_section(result), behaviour_section(result),
    ]  # fmt: skip


def candidate_lines(result: OpeResult, ranking: Sequence[str], most: int = 12) -> list[str]:
    """Candidates in their order, a line each."""
    lines = []
    for name in ranking[:most]:
        judgement = result[name]
        best = judgement.best
        if best is None:
            failed = ", ".join(gate.name for gate in judgement.refusing)
            lines.append(f"  {name}: refused ({failed})")
        else:
            difference = with_interval(best.difference, best.difference_interval)
            lines.append(f"  {name}: {with_interval(best.value, best.interval)}, {difference} more")
    if len(ranking) > most:
        lines.append(f"  and {len(ranking) - most} more, in the card")
    return lines


def _summary(result: OpeResult) -> Section:
    rows = [
        (
            judgement.policy,
            "–" if (best := judgement.best) is None else with_interval(best.value, best.interval),
            "–" if best is None else with_interval(best.difference, best.difference_interval),
            "–" if best is None else best.label,
            verdict(judgement),
        )
        for judgement in result.judgements
    ]
    own = with_interval(result.behaviour, result.behaviour_interval)
    rows.insert(0, ("behaviour (the log itself)", own, "", "mean return", ""))
    body = html_table(("policy", "value", "difference to the behaviour", "by", "verdict"), rows)
    notes = "".join(f"<li>{escape(note)}</li>" for note in result.notes)
    body += f"<ul>{notes}</ul>" if notes else ""
    return Section("summary", "What they are worth", body, first=True)


def _estimates(result: OpeResult) -> Section:
    """Rows per policy and estimator: those that passed in colour, refused ones in grey."""
    panels = []
    for judgement in result.judgements:
        kinds = (("passed its gates", BLUE, True), ("refused", GREY, False))
        series = []
        for name, colour, passed in kinds:
            points = tuple(
                _point(each, refusal(judgement, each))
                for each in judgement.estimates
                if each.passed == passed
            )
            if points:
                series.append(Series(name, colour, points, marker="dot" if passed else "ring"))
        mark = Mark(result.behaviour, "behaviour")
        panels.append(Panel(judgement.policy, tuple(series), (mark,)))
    chart = Chart(
        "estimates-by-estimator", "Estimates by estimator",
        f"Dot: estimate; bar: {result.level:.0%} interval over episodes; ring: refused by a gate; "
        "line: what the log's own behaviour returned.",
        "rows", "", "value", tuple(panels), same_y=True, x_scale="category",
    )  # fmt: skip
    rows = [
        (
            judgement.policy, each.label, with_interval(each.value, each.interval),
            with_interval(each.difference, each.difference_interval),
            "yes" if each.passed else "no", refusal(judgement, each),
        )
        for judgement in result.judgements
        for each in judgement.estimates
    ]  # fmt: skip
    heads = ("policy", "estimator", "number", "difference to the behaviour", "passed", "why not")
    after = f"<details><summary>All numbers</summary>{html_table(heads, rows)}</details>"
    after += (
        "<p class='muted'>A refused number is shown for diagnosis and is no estimate. FQE and DM, "
        "Switch-DR and DRos have no interval: of their bias the spread over episodes tells nothing."
        "</p>"
    )
    return Section("estimates", "Estimates", "", (chart,), after)


def _point(estimate: ValueEstimate, note: str) -> Point:
    low, high = estimate.interval or (None, None)
    return Point(estimate.label, estimate.value, low, high, note=note)


def _gates(result: OpeResult) -> Section:
    """What failed; what passed is folded away."""
    failed, passed = (
        [(judgement.policy, gate.name, str(gate))
         for judgement in result.judgements
         for gate in judgement.gates
         if gate.passed == kind]
        for kind in (False, True)
    )  # fmt: skip
    body = "<p>Every gate passed.</p>"
    if failed:
        heads = ("policy", "gate that failed", "what was found, and what would help")
        body = html_table(heads, failed)
    table = html_table(("policy", "gate that passed", "what was found"), passed)
    folded = f"<details><summary>Passed ({len(passed)})</summary>{table}</details>"
    return Section("gates", "Gates", body, after=folded if passed else "")


def _groups(result: OpeResult) -> list[Section]:
    if not result.groups:
        return []
    rows = []
    for group in result.groups:
        own = with_interval(group.behaviour, group.behaviour_interval)
        cells = [
            with_interval(*group.values[each.policy]) if each.policy in group.values else "–"
            for each in result.judgements
        ]
        rows.append((group.name, f"{group.episodes:,}", own, *cells))
    heads = (result.by, "episodes", "behaviour", *(each.policy for each in result.judgements))
    return [Section("groups", f"By {result.by}", html_table(heads, rows))]


def _values(result: OpeResult) -> list[Section]:
    if not result.values:
        return []
    errors = result.bellman_errors
    rows = [
        (name, number(own.claimed), number(own.returned), number(own.overestimation),
         number(own.error), number(own.gap), *([number(errors.get(name))] if errors else []))
        for name, own in result.values.items()
    ]  # fmt: skip
    heads = ("policy", "value it claims", "return that followed", "difference", "error of Q of the "
             "logged action (RMS)", "action gap",
             *(["Bellman error, validated"] if errors else []))  # fmt: skip
    panels = []
    for name, own in result.values.items():
        points = tuple(Point(q, g, note=f"{n:,} decisions") for q, g, n in own.bins)
        ends = sorted(q for q, _, _ in own.bins)
        ideal = tuple(Point(x, x) for x in (ends[:1] + ends[-1:]))
        series = (Series("tenths of the decisions", BLUE, points),
                  Series("right values", GREY, ideal, dash=1))  # fmt: skip
        panels.append(Panel(name, series))
    chart = Chart(
        "values-against-returns", "Q of logged actions against the return that followed",
        "Each dot is a tenth of the held-out decisions by Q. Below the dashed line the policy "
        "promises more than followed.",
        "lines", "Q(s, a) of the logged action", "return that followed", tuple(panels),
    )  # fmt: skip
    return [Section("values", "What the policies claim", html_table(heads, rows), (chart,))]
