"""DeepMind Lab's levels: what the paper's own table says, then the levels with memory.

With a memory DDQN is R2D2 and R-DQN is R-R2D2.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from statistics import fmean

from rbve.paper import printed as paper
from rbve.paper.claims import LAB, Claim
from rbve.paper.claims._words import standard
from rbve.paper.finals import Finals
from rbve.paper.judging._rules import Rule, better, better_everywhere, reaches
from rbve.paper.judging.verdicts import Judgement, not_run

PLACE = 3
_POOR = 50.0  # normalised score: half way from random to the online agent's best
_MEANS = {  # over all lines of the table
    name: fmean(row[name].mean for row in paper.DMLAB.values()) for name in paper.DMLAB_METHODS
}
_LEVELS = {name: row for name, row in paper.DMLAB.items() if not name.startswith("seekavoid")}
# Table 'DeepMind Lab dataset details': the best the online agents came to.
_ONLINE = {
    "explore_object_rewards_many": 64.5,
    "explore_object_rewards_few": 51.5,
    "rooms_watermaze": 48.8,
    "rooms_select_nonmatching_object": 32.5,
}
# In the paper's table, and among the levels with memory, where R-R2D2 was run too.
_IN_TABLE, OFFLINE = ("BC", "R2D2", "CQL", "BVE"), ("R2D2", "R-R2D2", "CQL")
_TABLE = "appendix 'DeepMind Lab Detailed Results'"

_lab = partial(Claim, here=LAB, experiment="")


def _table_then(contradictions: Sequence[str], rule: Rule) -> Rule:
    """By runs where there are any; without them, by what the paper's table holds against it."""

    def judge(finals: Finals) -> Judgement:
        if finals:
            return rule(finals)
        words = f"contradicted by its own table: {'; '.join(contradictions)}"
        agrees = not_run("its table agrees; RL Unplugged's data is needed to test it")
        return Judgement("not reproduced", words) if contradictions else agrees

    return judge


def lower(ours: str, rivals: Iterable[str]) -> list[str]:
    """Levels of the table, without the expert's lines, on which a rival is above ours."""
    return [
        f"{level}: {ours} {row[ours].mean:g} < {rival} {row[rival].mean:g}"
        for level, row in _LEVELS.items()
        for rival in rivals
        if row[rival].mean > row[ours].mean
    ]


def _lower_on_average(ours: str, rivals: Iterable[str]) -> list[str]:
    """Rivals whose mean over all lines of the table is above ours."""
    return [
        f"mean of {len(paper.DMLAB)} lines: {ours} {_MEANS[ours]:.3g} < {rival} {_MEANS[rival]:.3g}"
        for rival in rivals
        if _MEANS[rival] > _MEANS[ours]
    ]


def not_poor(ours: str) -> list[str]:
    """Levels on which it comes half way to the online agent; the table has no random scores."""
    return [
        f"{level}: {row[ours].mean:g} of {_ONLINE[level]:g}"
        for level, row in _LEVELS.items()
        if 100 * row[ours].mean > _POOR * _ONLINE[level]
    ]


def printed(name: str) -> str:
    return listed(row[name].mean for row in _LEVELS.values())


def listed(numbers: Iterable[float]) -> str:
    short = ("many", "few", "watermaze", "nonmatching")
    return ", ".join(f"{level} {value:g}" for level, value in zip(short, numbers, strict=True))


_ALL_MEANS = "mean of eight lines: " + ", ".join(
    f"{name} {mean:.3g}" for name, mean in _MEANS.items()
)

CLAIMS = (
    _lab(
        "R-BVE performs best on all DeepMind Lab levels",
        "figure 'DeepMind Lab Results'",
        "the highest score on each of the four levels in the appendix's table; on levels with "
        "memory better on every level by itself: R-BVE − {BC, R2D2, R-R2D2, CQL, BVE}",
        _table_then(
            lower("R-BVE", _IN_TABLE),
            better_everywhere("R-BVE", ["BC", *OFFLINE, "BVE"], standard),
        ),
        printed=printed("R-BVE"),
    ),
    _lab(
        "BVE outperforms other offline RL on all DeepMind Lab levels",
        "section 'DeepMind Lab Experiments'",
        "a higher score than R2D2 and CQL on each of the four levels in the appendix's table; on "
        "levels with memory better on every level by itself: BVE − {R2D2, R-R2D2, CQL}",
        _table_then(lower("BVE", ("R2D2", "CQL")), better_everywhere("BVE", OFFLINE, standard)),
        printed=printed("BVE"),
        figure="scores",
    ),
    _lab(
        "R-BVE outperforms the other approaches on DeepMind Lab",
        _TABLE,
        "the highest mean of the table's eight lines; on levels with memory better: "
        "R-BVE − {BC, R2D2, CQL, BVE}, mean over all levels",
        _table_then(_lower_on_average("R-BVE", _IN_TABLE), better("R-BVE", _IN_TABLE, standard)),
        printed=_ALL_MEANS,
    ),
    _lab(
        "BVE is still very competitive on DeepMind Lab",
        _TABLE,
        "second to R-BVE alone in the mean of the table's eight lines; on levels with memory "
        "better: BVE − {BC, R2D2, CQL}, mean over all levels",
        _table_then(
            _lower_on_average("BVE", _IN_TABLE[:3]), better("BVE", _IN_TABLE[:3], standard)
        ),
        printed=_ALL_MEANS,
    ),
    _lab(
        "R2D2 performs poorly offline, on the data of an online R2D2",
        "section 'DeepMind Lab Experiments'",
        "below half of the online agent's return on each of the four levels in the appendix's "
        "tables; on levels with memory reaches: a normalised score of at most 50, mean "
        "over all levels",
        _table_then(not_poor("R2D2"), reaches(["R2D2"], standard, _POOR, sign=-1)),
        printed=f"R2D2 {printed('R2D2')}; online {listed(_ONLINE.values())}",
    ),
)
