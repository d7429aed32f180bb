"""An audit of logged data: what it holds, what is wrong with it, whether to train on it.

Counts are exact. Observations are read in full up to a gigabyte, else in random stretches; regions
of the state space and regressions rest on a seeded sample. The result says what was read.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rbve.audit import _reading as reading
from rbve.audit import columns, measure, scan, shift, support, weights
from rbve.audit.verdict import EXIT_CODES, WORDS, Finding, Verdict, counted, from_faults, listed
from rbve.data import formats, frames
from rbve.data.dataset import Dataset
from rbve.data.source import Fault, OnFault, Source

__all__ = ["EXIT_CODES", "WORDS", "Audit", "Finding", "audit", "audit_frame", "audit_path"]

_MOST_FAULTS = 1000  # kept; one bad column can hold millions
_MANY = 100  # episodes, of which few that pay are worth a remark
# What a reader reports by row, the audit need not count again.
_SAME_AS = {
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
    ends: measure.Ends
    scan: scan.Scan
    support: support.Support
    shift: shift.Shift
    weights: weights.Weights
    provenance: dict[str, Any]
    seed: int

    @property
    def verdict(self) -> Verdict:
        return self.findings[0].level if self.findings else "fine"

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.verdict]

    def to_json(self) -> dict[str, Any]:
        total = max(sum(self.support.counts), 1)
        pairs = zip(self.actions, self.support.counts, strict=True)
        horizon = self.weights.horizon if math.isfinite(self.weights.horizon) else None
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
            "counts": asdict(self.counts),
            "ends": asdict(self.ends),
            "observations": asdict(self.scan),
            "support": asdict(self.support),
            "reward_shift": asdict(self.shift),
            "weights": {**asdict(self.weights), "horizon": horizon},  # JSON has no infinity
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
    within = reading.reach(dataset, seed)
    encode = reading.fit_encoder(known, within, seed)
    sample = reading.draw(known, within, encode, seed)
    result = Audit(
        findings=[],
        notes=[],
        actions=dataset.actions,
        observation=f"{' × '.join(map(str, dataset.obs_shape)) or '1'} {dataset.obs.dtype}",
        counts=measure.measure(known),
        ends=measure.measure_ends(known, sample),
        scan=scan.scan(dataset, within),
        support=support.measure(known, sample, seed),
        shift=shift.measure(known, within, encode, seed),
        weights=weights.measure(known, gamma, beta),
        provenance=dataset.provenance,
        seed=seed,
    )
    own = [
        *columns.findings(dataset, result.scan),
        *measure.findings(known, result.counts, result.ends),
        *shift.findings(result.shift),
        *support.findings(known, result.support),
        *weights.findings(result.weights),
    ]
    reported = {_SAME_AS.get(fault.kind) for fault in faults}
    findings = [*from_faults(faults), *(each for each in own if each.name not in reported)]
    result.findings.extend(sorted(findings, key=lambda finding: finding.level != "stop"))
    result.notes.extend([*notes, *_remarks(result)])
    return result


def audit_path(
    path: Path,
    format: str | None = None,
    options: Any = None,
    gamma: float = 0.99,
    beta: float = 0.5,
) -> Audit:
    """Audit data of any format, read so that faults are listed instead of refused.

    A native store is mapped, and all of its checksums are checked.
    """
    if (format or formats.recognise(path)) == "native":
        return audit(formats.load(path, "native", options), gamma, beta)
    return _audit_read(lambda note: formats.read(path, format, options, note), path, gamma, beta)


def audit_frame(frame: Any, options: Any, gamma: float = 0.99, beta: float = 0.5) -> Audit:
    """The same of a data frame with one row per decision."""
    read = functools.partial(frames.read, frame, options)
    return _audit_read(read, "data frame", gamma, beta)


def _audit_read(read: Callable[[OnFault], Source], path: Any, gamma: float, beta: float) -> Audit:
    faults: list[Fault] = []

    def note(fault: Fault) -> None:
        if len(faults) < _MOST_FAULTS:
            faults.append(fault)

    source = read(note)
    parts = list(source.parts)
    if not parts:
        first = f" ({faults[0].text})" if faults else ""
        raise ValueError(f"{path}: no episode could be read{first}")
    return audit(Dataset.join(parts), gamma, beta, faults, source.notes)


def _remarks(result: Audit) -> Iterator[str]:
    """What the reader of the result should know, not wrong in itself."""
    if not result.scan.whole:
        yield (
            f"observations read: {result.scan.rows:,} rows of {result.scan.episodes:,} episodes, "
            f"drawn at random (seed {result.seed}); counts and values are of all data"
        )
    if lacking := [each for each in result.scan.columns if each.missing]:
        shares = [f"{each.name} {each.missing:.1%}" for each in lacking]
        yield f"missing values: {listed(shares)} of rows"
    if not result.support.whole:
        yield f"regions rest on {result.support.sampled:,} decisions, drawn at random"
    if result.scan.copies and result.scan.chance_copies:
        yield (
            f"{counted(result.scan.copies, 'episode')} with an equal one before; states recur so "
            "often that this may be chance"
        )
    if fragments := result.counts.fragments - result.counts.returns_unknown:
        yield (
            f"{counted(fragments, 'fragment')} without V̂; the return of the episode stands in. "
            "Returns are counted once a fragment, so an episode weighs by its length"
        )
    if result.counts.without_final:
        yield f"{counted(result.counts.without_final, 'episode')} without a final observation"
    known = result.counts.episodes - result.counts.returns_unknown
    above = round(result.counts.above_mean * known)
    if known >= _MANY and 0 < above < len(result.actions):
        yield (
            f"{above:,} of {known:,} episodes return more than the mean, fewer than the "
            f"{len(result.actions)} actions: which action is better can hardly be told from them"
        )
    if not result.provenance.get("finished", True):
        yield "the recording was interrupted; every complete episode is here"
