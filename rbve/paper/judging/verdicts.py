"""How a claim is judged. Rules were committed before any row they judge was read; docs/studies.md
lists what was corrected afterwards, and why.

    reproduced      the effect is there, its 95% interval excludes 'no effect' (lies within the
                    margin where scores are to be similar), and at least ENOUGH datasets of every
                    kind of data stand behind it
    partly          the effect points the right way but its interval does not exclude 'no effect',
                    or it holds for some of what is compared, or datasets are too few
    not reproduced  neither
    under-trained   the runs are too short to tell, or nothing shows that they are long enough
                    (sizes.py)
    not run         there are no runs to judge by

Where a claim has parts and "the weaker counts", one part that is not reproduced is enough for 'not
reproduced'. An effect is a mean over environments of paired differences, recording by recording;
its interval is Student's over recordings, each environment with its own spread (Welch).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from rbve.paper.finals import Final
from rbve.report.statistics import Interval

Verdict = Literal["reproduced", "partly", "not reproduced", "under-trained", "not run"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
POINTS = 5.0  # of normalised score that count as no difference
ENOUGH = 3  # datasets of a kind; of two hardly anything is known of their spread


class Size(NamedTuple):
    """What a verdict stands on: sizes.py."""

    curves: tuple[tuple[Final, ...], ...]  # of each method on each kind of data, all its runs
    flat: str  # whether scores are, or what still changes
    order: str  # whether it is kept, or what turned over or is missing


@dataclass(frozen=True)
class Judgement:
    verdict: Verdict
    measured: str  # in words, with numbers
    effects: Mapping[str, Interval] = field(default_factory=dict)
    borders: tuple[float, ...] = (0.0,)  # between which an effect means the same
    tolerance: float = POINTS  # an effect so close to a border is on neither side of it
    parts: tuple["Judgement", ...] = ()  # of a claim that has several
    size: Size | None = None  # None: no training stands behind it


def graded(whole: bool, part: bool) -> Verdict:
    return "reproduced" if whole else "partly" if part else "not reproduced"


def not_run(words: str = "no runs") -> Judgement:
    return Judgement("not run", words)


def by_sign(
    effects: Mapping[str, Interval],
    sign: int,
    before: str = "",
    least: float = 0.0,
    tolerance: float = POINTS,
) -> Judgement:
    """By which side of 0 all effects lie on, and whether their means are `least` away from it."""
    side = side_of(0, effects, sign)
    small = side == "reproduced" and any(abs(e.value) < least for e in effects.values())
    words = in_words(effects, before)
    return careful("partly" if small else side, words, effects, tolerance=tolerance)


def side_of(level: float, effects: Mapping[str, Interval], sign: int) -> Verdict:
    """Reproduced: every interval on the right side. Partly: every mean, or half the intervals."""
    certain = clear(effects, sign, level)
    right = sum((e.value - level) * sign > 0 for e in effects.values())
    return graded(certain == len(effects), right == len(effects) or 2 * certain >= len(effects))


def clear(effects: Mapping[str, Interval], sign: int, level: float = 0.0) -> int:
    """How many intervals lie above (sign 1) or below (−1) the level."""
    return sum(e.low > level if sign > 0 else e.high < level for e in effects.values())


def careful(
    verdict: Verdict,
    measured: str,
    effects: Mapping[str, Interval],
    borders: tuple[float, ...] = (0.0,),
    tolerance: float = POINTS,
) -> Judgement:
    """At most 'partly' where any kind of data has too few datasets."""
    fewest = min(effect.fewest for effect in effects.values())
    if verdict == "reproduced" and fewest < ENOUGH:
        verdict = "partly"
        measured += f"; only {fewest} datasets of a kind, {ENOUGH} are asked for"
    return Judgement(verdict, measured, effects, borders, tolerance)


def missing(asked: Mapping[str, Any], effects: Mapping[str, Any]) -> Judgement | None:
    """Not run, where some of what was asked for has no effect."""
    absent = set(asked) - set(effects)
    return not_run("no runs of " + listed(absent)) if absent else None


def in_words(effects: Mapping[str, Interval], before: str = "") -> str:
    return "; ".join(f"{before}{name} {shown(effect)}" for name, effect in effects.items())


def shown(effect: Interval) -> str:
    value, low, high = map(signed, effect[:3])
    if math.isnan(effect.low):
        return f"{value} (n={effect.n}, one dataset of a kind: no interval)"
    return f"{value} [{low}, {high}] (n={effect.n})"


def signed(value: float) -> str:
    return f"{value:+.3g}".replace("-", "−")


def listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
