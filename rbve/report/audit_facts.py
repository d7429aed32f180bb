"""Facts of a dataset in words: the same on the terminal and on the page of an audit."""

from rbve.audit import Audit
from rbve.audit.measure import Spread
from rbve.report.marks import thousands


def facts(audit: Audit) -> dict[str, str]:
    """What the data is and what it supports, by name, in the order of pages and terminals."""
    counts, support, weights = audit.counts, audit.support, audit.weights
    above = f"; {100 * counts.above_mean:.3g}% of episodes above the mean" if counts.returns else ""
    known = {
        "Episodes": f"{counts.episodes:,}",
        "Decisions": f"{counts.transitions:,}; R-BVE trains on {weights.rows:,}",
        "Observation": audit.observation,
        "Actions": f"{len(audit.actions)}",
        "Ends": f"{counts.terminated:,} terminated, {counts.truncated:,} truncated",
        "Fragments": f"{counts.fragments:,}" if counts.fragments else "",
        "Without final observation": f"{counts.without_final:,}" if counts.without_final else "",
        "Length": _spread(counts.length),
        "Return": f"{_spread(counts.returns)}{above}",
        f"V̂ at γ = {weights.gamma:g}": _spread(weights.value),
        "Horizon": f"{weights.horizon:,.0f} steps; a first state sees "
        f"{weights.seen_from_start:.0%} of the reward of its episode, {weights.beyond:.0%} of "
        "that from beyond the horizon",
    }
    if counts.executed_differs is not None:
        known["Executed ≠ chosen"] = f"{counts.executed_differs:.1%} of decisions"
    if support.legal_counts is not None:
        forced = f"{support.forced:.1%} of decisions have one only"
        known["Legal actions"] = f"{support.mean_legal:.2f} on average; {forced}"
    regions = f"{len(support.cells)} regions"
    known["Coverage"] = f"{support.coverage:.0%} of state-action space ({regions})"
    known["Entropy of behaviour"] = f"{support.entropy:.0%} of uniform choice"
    if (propensities := support.propensities) is not None:
        entropy = f"entropy {propensities.entropy:.0%} of uniform choice"
        known["Propensities"] = f"mean {propensities.mean:.3f}; {entropy}"
    known |= {f"Rewards one row {side}": verdict for side, verdict in audit.shift.verdicts.items()}
    return {name: text for name, text in known.items() if text}


def _spread(values: Spread | None) -> str:
    if values is None:
        return "unknown"
    low, middle, high = (short(v) for v in (values.low, values.median, values.high))
    mean, deviation = short(values.mean), short(values.deviation)
    return f"mean {mean}, deviation {deviation}, from {low} to {high}, median {middle}"


def short(value: float) -> str:
    """In three digits."""
    return thousands(value, ".3g")
