"""An audit of logged data: what it holds, what is wrong with it, whether to train on it.

Counts are exact. Observations are read in full up to a gigabyte, else in random stretches; regions
of the state space and regressions rest on a seeded sample. The result says what was read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rbve.audit import columns, ends, measure, sample, shift, support, weights
from rbve.audit.reading import reach
from rbve.audit.scan import Scan, scan
from rbve.audit.verdict import (
    EXIT_CODES,
    WORDS,
    Finding,
    Verdict,
    counted,
    from_faults,
    listed,
    verdict,
    worst_first,
)
from rbve.data.dataset import Dataset
from rbve.data.source import Fault

__all__ = ["EXIT_CODES", "WORDS", "Audit", "Finding", "audit"]


# What a reader reports by row, the audit need not count again.
SAME_AS = {
    "nan reward": "rewards not finite",
    "nan observation": "observations not finite",
    "illegal action": "values that cannot be",
}


@dataclass(frozen=True)
class Audit:
    findings: list[Finding]  # worst first
    notes: list[str]
    actions: tuple[str, ...]
    observation: str  # shape and type, in words
    counts: measure.Counts
    ends: ends.Ends
    scan: Scan
    support: support.Support
    shift: shift.Shift
    weights: weights.Weights
    provenance: dict[str, Any]
    seed: int

    @property
    def verdict(self) -> Verdict:
        return verdict(self.findings)

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.verdict]

    def to_json(self) -> dict[str, Any]:
        counts, total = asdict(self.counts), max(sum(self.support.counts), 1)
        pairs = zip(self.actions, self.support.counts, strict=True)
        return {
            "verdict": WORDS[self.verdict],
            "exit_code": self.exit_code,
            "findings": [asdict(finding) for finding in self.findings],
            "notes": self.notes,
            "episodes": self.counts.episodes,
            "transitions": self.counts.transitions,
            "terminated_episodes": self.counts.terminated,
            "truncated_episodes": self.counts.truncated,
            "observation": self.observation,
            "actions": {name: {"count": n, "share": n / total} for name, n in pairs},
            "counts": counts,
            "ends": asdict(self.ends),
            "observations": asdict(self.scan),
            "support": asdict(self.support),
            "reward_shift": asdict(self.shift),
            "weights": {**asdict(self.weights), "horizon": finite(self.weights.horizon)},
            "provenance": self.provenance,
            "seed": self.seed,
        }


def audit(
    dataset: Dataset,
    gamma: float = 0.99,
    beta: float = 0.5,
    faults: Sequence[Fault] = (),
    notes: Sequence[str] = (),
    seed: int = 0,
) -> Audit:
    """Judge a dataset; `faults` and `notes` are what its reader met."""
    if not beta > 0:
        raise ValueError(f"beta must be positive; got {beta}")
    if not 0 <= gamma <= 1:
        raise ValueError(f"gamma must lie in [0, 1]; got {gamma}")
    known = columns.repaired(dataset)
    if not (known.action >= 0).any():
        raise ValueError("no row holds an action; there is nothing to learn from")
    within = reach(dataset, seed)
    encode = sample.fit_encoder(known, within, seed)
    drawn = sample.draw(known, within, encode, seed)
    found = Audit(
        findings=[],
        notes=[],
        actions=dataset.actions,
        observation=f"{' × '.join(map(str, dataset.obs_shape)) or '1'} {dataset.obs.dtype}",
        counts=measure.measure(known),
        ends=ends.measure(known, drawn),
        scan=scan(dataset, within),
        support=support.measure(known, drawn, seed),
        shift=shift.measure(known, within, encode, seed),
        weights=weights.measure(known, gamma, beta),
        provenance=dataset.provenance,
        seed=seed,
    )
    told = {SAME_AS.get(fault.kind) for fault in faults}
    own = [finding for finding in judged(dataset, known, found) if finding.name not in told]
    found.findings.extend(worst_first([*from_faults(faults), *own]))
    found.notes.extend([*notes, *remarks(found)])
    return found


def judged(dataset: Dataset, known: Dataset, found: Audit) -> Iterator[Finding]:
    yield from columns.findings(dataset, found.scan)
    yield from ends.findings(known, found.counts, found.ends)
    yield from shift.findings(found.shift)
    yield from support.findings(known, found.support)
    yield from weights.findings(found.weights)


def remarks(found: Audit) -> Iterator[str]:
    """What the reader of the result should know, not wrong in itself."""
    if not found.scan.whole:
        yield (
            f"observations read: {found.scan.rows:,} rows of {found.scan.episodes:,} episodes, "
            f"drawn at random (seed {found.seed}); counts and values are of all data"
        )
    if lacking := [each for each in found.scan.columns if each.missing]:
        shares = [f"{each.name} {each.missing:.1%}" for each in lacking]
        yield f"missing values: {listed(shares)} of rows"
    if not found.support.whole:
        yield f"regions rest on {found.support.sampled:,} decisions, drawn at random"
    if found.scan.copies and found.scan.chance_copies:
        yield (
            f"{counted(found.scan.copies, 'episode')} with an equal one before; states recur so "
            "often that this may be chance"
        )
    if fragments := found.counts.fragments - found.counts.returns_unknown:
        yield (
            f"{counted(fragments, 'fragment')} without V̂; the return of the episode stands in. "
            "Returns are counted once a fragment, so an episode weighs by its length"
        )
    if found.counts.without_final:
        yield f"{counted(found.counts.without_final, 'episode')} without a final observation"
    if not found.provenance.get("finished", True):
        yield "the recording was interrupted; every complete episode is here"


def finite(number: float) -> float | None:
    """JSON has no infinity."""
    return number if abs(number) < float("inf") else None
