"""DeepMind Lab's levels: what the paper's own table says, then the levels with memory.

With a memory DDQN is R2D2 and R-DQN is R-R2D2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean

from rbve.paper import printed as paper
from rbve.paper.claims.claim import BC, BVE, CQL, DDQN, LAB, RBVE, RDQN, Claim, standard
from rbve.paper.claims.rules import better, better_everywhere, reaches
from rbve.paper.claims.verdicts import Judgement
from rbve.paper.effects import Pick
from rbve.paper.finals import Final

R2D2, RR2D2 = DDQN, RDQN
POOR = 50.0  # normalised score: half way from random to the online agent's best
LEVELS = {name: row for name, row in paper.DMLAB.items() if not name.startswith("seekavoid")}
# Table 'DeepMind Lab dataset details': the best the online agents came to.
ONLINE = {
    "explore_object_rewards_many": 64.5,
    "explore_object_rewards_few": 51.5,
    "rooms_watermaze": 48.8,
    "rooms_select_nonmatching_object": 32.5,
}

Rule = Callable[[Sequence[Final]], Judgement]


def judge(contradictions: Sequence[str], rule: Rule) -> Rule:
    """By runs where there are any; without them, by what the paper's table holds against it."""

    def judged(found: Sequence[Final]) -> Judgement:
        if found:
            return rule(found)
        if contradictions:
            words = "; ".join(contradictions)
            return Judgement("not here", f"contradicted by its own table: {words}")
        return Judgement("not run", "its table agrees; RL Unplugged's data is needed to test it")

    return judged


def lower(ours: str, rivals: Sequence[str]) -> list[str]:
    """Levels of the table, without the expert's lines, on which a rival is above ours."""
    return [
        f"{level}: {ours} {row[ours].mean:g} < {rival} {row[rival].mean:g}"
        for level, row in LEVELS.items()
        for rival in rivals
        if row[rival].mean > row[ours].mean
    ]


def lower_on_average(ours: str, rivals: Sequence[str]) -> list[str]:
    """Rivals whose mean over all lines of the table is above ours."""
    table = paper.DMLAB.values()
    means = {name: fmean(row[name].mean for row in table) for name in (ours, *rivals)}
    return [
        f"mean of {len(table)} lines: {ours} {means[ours]:.3g} < {rival} {means[rival]:.3g}"
        for rival in rivals
        if means[rival] > means[ours]
    ]


def not_poor(ours: str) -> list[str]:
    """Levels on which it comes half way to the online agent; the table has no random scores."""
    return [
        f"{level}: {row[ours].mean:g} of {ONLINE[level]:g}"
        for level, row in LEVELS.items()
        if 100 * row[ours].mean > POOR * ONLINE[level]
    ]


def everywhere(ours: Pick, others: Mapping[str, Pick]) -> Rule:
    return lambda found: better_everywhere(found, ours, others, standard)


def on_average(ours: Pick, others: Mapping[str, Pick]) -> Rule:
    return lambda found: better(found, ours, others, standard)


def printed(name: str) -> str:
    return listed(row[name].mean for row in LEVELS.values())


def means() -> str:
    return ", ".join(
        f"{name} {fmean(row[name].mean for row in paper.DMLAB.values()):.3g}"
        for name in paper.DMLAB_METHODS
    )


def listed(numbers: Iterable[float]) -> str:
    short = ("many", "few", "watermaze", "nonmatching")
    return ", ".join(f"{level} {value:g}" for level, value in zip(short, numbers, strict=True))


CLAIMS = (
    Claim(
        "R-BVE performs best on all DeepMind Lab levels",
        "figure 'DeepMind Lab Results'",
        "the highest score on each of the four levels in the appendix's table; on levels with "
        "memory better on every level by itself: R-BVE − {BC, R2D2, R-R2D2, CQL, BVE}",
        judge(
            lower("R-BVE", ("BC", "R2D2", "CQL", "BVE")),
            everywhere(RBVE, {"BC": BC, "R2D2": R2D2, "R-R2D2": RR2D2, "CQL": CQL, "BVE": BVE}),
        ),
        LAB,
        experiment="",
        printed=printed("R-BVE"),
    ),
    Claim(
        "BVE outperforms other offline RL on all DeepMind Lab levels",
        "section 'DeepMind Lab Experiments'",
        "a higher score than R2D2 and CQL on each of the four levels in the appendix's table; on "
        "levels with memory better on every level by itself: BVE − {R2D2, R-R2D2, CQL}",
        judge(
            lower("BVE", ("R2D2", "CQL")),
            everywhere(BVE, {"R2D2": R2D2, "R-R2D2": RR2D2, "CQL": CQL}),
        ),
        LAB,
        experiment="",
        printed=printed("BVE"),
    ),
    Claim(
        "R-BVE outperforms the other approaches on DeepMind Lab",
        "appendix 'DeepMind Lab Detailed Results'",
        "the highest mean of the table's eight lines; on levels with memory better: "
        "R-BVE − {BC, R2D2, CQL, BVE}, mean over all levels",
        judge(
            lower_on_average("R-BVE", ("BC", "R2D2", "CQL", "BVE")),
            on_average(RBVE, {"BC": BC, "R2D2": R2D2, "CQL": CQL, "BVE": BVE}),
        ),
        LAB,
        experiment="",
        printed=f"mean of eight lines: {means()}",
    ),
    Claim(
        "BVE is still very competitive on DeepMind Lab",
        "appendix 'DeepMind Lab Detailed Results'",
        "second to R-BVE alone in the mean of the table's eight lines; on levels with memory "
        "better: BVE − {BC, R2D2, CQL}, mean over all levels",
        judge(
            lower_on_average("BVE", ("BC", "R2D2", "CQL")),
            on_average(BVE, {"BC": BC, "R2D2": R2D2, "CQL": CQL}),
        ),
        LAB,
        experiment="",
        printed=f"mean of eight lines: {means()}",
    ),
    Claim(
        "R2D2 performs poorly offline, on the data of an online R2D2",
        "section 'DeepMind Lab Experiments'",
        "below half of the online agent's return on each of the four levels in the appendix's "
        "tables; on levels with memory reaches: a normalised score of at most 50, mean "
        "over all levels",
        judge(
            not_poor("R2D2"), lambda found: reaches(found, {"R2D2": R2D2}, standard, POOR, sign=-1)
        ),
        LAB,
        experiment="",
        printed=f"R2D2 {printed('R2D2')}; online {listed(ONLINE.values())}",
    ),
)
