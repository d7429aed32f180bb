"""Were the runs long enough? Where nothing shows that they were, the verdict is 'under-trained'.

Runs that stop too early tell which method learns fastest, not which is better. On MinAtar's
breakout cloning leads after 10,000 updates and BVE after 100,000. So the updates behind a verdict
count only if both hold:

flat    Of every method on every kind of data that the rule looked at, the score no longer changes:
        on each dataset, with the setting that is reported there, the mean of the evaluations in the
        last quarter of training − the mean of those in the quarter before. The mean of these
        changes over datasets is a trend if it exceeds both 5 points and the half-width of its 95%
        Student interval (of one dataset, which has none, 5 points alone); one in twenty is left to
        chance. A wide interval excuses a single score and not all of them: the mean change of all
        that the rule looked at may not exceed 5 points, whatever its interval.
order   A flat curve can deceive: there BVE stood still from 30,000 to 60,000 updates and then more
        than doubled. So on one recording of each kind of data every method is trained three times
        as long, with the first setting of its sweep, and the claim's own rule is asked there. Its
        first third is the run of ordinary length: same seed, same updates. The order turns over if
        an effect is on the other side of what the rule asks ('no effect', a level, the margin of
        'similar') than it was when that third ended: in every evaluation of the last quarter, and
        on average by more than the tolerance of what is compared (5 points of score, a factor of
        two in errors of values, .05 in action gaps). Without the longer runs nobody knows.

Scores are to be flat whatever a claim compares: values that run away never are, and that they run
away is what such claims say. Whether errors of values keep their order is for the longer runs,
which compare what the claim compares. The limits were set with the noise of the first study's rows
in view, and before any longer run was made.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from rbve.paper.experiments import LONGER
from rbve.paper.finals import SCORE, Final, Finals, Problem, chosen_on_others
from rbve.paper.judging._effects import Evidence, Pick
from rbve.paper.judging.verdicts import POINTS, Judgement, Size, signed
from rbve.report.labels import METHODS, WITH_MEMORY, describe
from rbve.report.statistics import Floats, finite, mean_interval

_BY_CHANCE = 20  # of so many 95% intervals one errs

_Rule = Callable[[Finals], Judgement]
_Curves = Mapping[tuple[Pick, Problem], Sequence[Final]]


def judged(judge: _Rule, finals: Finals, longer: Finals = ()) -> Judgement:
    """What a claim's rule makes of final results, if their runs were long enough to tell."""
    evidence = Evidence(finals)
    judgement = judge(evidence)
    if judgement.verdict == "not run" or not evidence.used:
        return judgement
    checks = (_flat(evidence.used), _order(judge, judgement, evidence, longer))
    size = Size(tuple(map(tuple, evidence.used.values())), *(words for _, words in checks))
    reasons = [words for good, words in checks if not good]
    if not reasons:
        return replace(judgement, size=size)
    words = f"{judgement.measured}; {judgement.verdict} at this size, but {', and '.join(reasons)}"
    return replace(judgement, verdict="under-trained", measured=words, size=size)


def _flat(curves: _Curves) -> tuple[bool, str]:
    """Whether, and which scores still change."""
    changes = {key: _changes(own) for key, own in curves.items()}
    seldom = [key for key, own in changes.items() if not len(own)]
    if seldom:
        return False, f"{_called(seldom[0], curves)} was evaluated too seldom to tell"
    trends: list[tuple[float, str]] = []
    for key, own in changes.items():
        change = mean_interval({"": own})
        half = 0.0 if np.isnan(change.high) else change.high - change.value
        if abs(change.value) > max(half, POINTS):
            words = f"{_called(key, curves)} by {signed(change.value)} ± {half:.3g}"
            trends.append((abs(change.value), words))
    words = f"{len(trends)} of {len(curves)} scores still change"
    words += f", most {max(trends)[1]}" if trends else ""
    if len(trends) * _BY_CHANCE > len(curves):
        return False, words
    together = float(np.mean([own.mean() for own in changes.values()]))
    if abs(together) > POINTS:
        return False, f"the {len(curves)} scores still change, by {signed(together)} on average"
    return True, f"yes, by chance {words}" if trends else "yes"


def _changes(finals: Finals) -> Floats:
    """On each dataset, the reported score in the last quarter − in the quarter before."""
    chosen = chosen_on_others(finals)
    reported = [each for each in finals if chosen.get(each.seed) == each.settings]
    return finite(
        _mean_score(_during(each, 0.75, 1.0)) - _mean_score(_during(each, 0.5, 0.75))
        for each in reported
    )


def _during(final: Final, after: float, until: float) -> list[dict[str, float]]:
    """Evaluations in a part of training; of a run that had ended by then, its last one stands."""
    own = [values for share, values in final.evaluations if after < share <= until]
    return own or [values for share, values in final.evaluations if share <= after][-1:]


def _mean_score(evaluations: Sequence[Mapping[str, float]]) -> float:
    known = finite(each.get(SCORE) for each in evaluations)
    return float(known.mean()) if len(known) else np.nan


def _order(
    judge: _Rule, judgement: Judgement, evidence: Evidence, longer: Finals
) -> tuple[bool, str]:
    """Whether it is kept, and the effect that turned over, or what is missing to tell."""
    curves, times = evidence.used, f"run {LONGER} times as long"
    lacking = [
        (pick, problem)
        for pick, problem in curves
        if not any(each.problem == problem and pick.matches(each) for each in longer)
    ]
    if len(lacking) == len(curves):
        return False, f"the {times} is missing"
    if lacking:
        first = _called(lacking[0], curves)
        return False, f"the {times} is missing for {len(lacking)} of {len(curves)}, as {first}"
    before = _late_effects(judge, longer, 1 / LONGER)
    after = _late_effects(judge, longer)
    for index, part in enumerate(_parts(judgement)):
        for name in part.effects:
            then, now = before.get((index, name)), after.get((index, name))
            if then is None or now is None:
                return False, f"the {times} does not measure {name}"
            if _turned(part, float(np.mean(then)), np.array(now)):
                values = " to ".join(signed(float(np.mean(each))) for each in (then, now))
                return False, f"in the {times} {name} turns over, from {values} on one recording"
    return True, "kept"


def _turned(part: Judgement, then: float, now: Floats) -> bool:
    """Whether an effect is clearly on another side of some border now."""
    for border in part.borders:
        side = np.sign(now.mean() - border)
        clear = abs(now.mean() - border) > part.tolerance and all(np.sign(now - border) == side)
        if clear and np.sign(then - border) != side:
            return True
    return False


def _late_effects(
    judge: _Rule, finals: Finals, until: float = 1.0
) -> dict[tuple[int, str], list[float]]:
    """What the rule measures at each evaluation of the last quarter of training up to a share of
    it, by part and name."""
    late = [_during(each, 0.75 * until, until) for each in finals]
    effects: dict[tuple[int, str], list[float]] = {}
    for place in range(max(map(len, late), default=0)):
        at = [
            replace(each, values=own[min(place, len(own) - 1)])
            for each, own in zip(finals, late, strict=True)
            if own
        ]
        for index, part in enumerate(_parts(judge(at))):
            for name, effect in part.effects.items():
                effects.setdefault((index, name), []).append(effect.value)
    return effects


def _parts(judgement: Judgement) -> list[Judgement]:
    if not judgement.parts:
        return [judgement]
    return [each for part in judgement.parts for each in _parts(part)]


def _called(key: tuple[Pick, Problem], curves: _Curves) -> str:
    """A method by its name and the settings that tell it from others of the claim."""
    pick, problem = key
    name = METHODS.get(pick.algorithm, (pick.algorithm, ""))[0]
    if any(final.memory for final in curves[key]):
        name = WITH_MEMORY.get(pick.algorithm, name)
    others = [other.settings for other, _ in curves if other.algorithm == pick.algorithm]
    apart = {
        setting: value
        for setting, value in pick.settings.items()
        if any(other.get(setting) != value for other in others)
    }
    return f"{name}{f' ({describe(apart)})' if apart else ''} on {problem.label}"
