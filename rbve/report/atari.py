"""Atari games together: the median over games of normalised scores, as the paper's table has it.

RL Unplugged tunes on 9 games and reports on 37 others, so the two are never mixed in silence.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rbve.envs.atari import REPORTED_ON, SCORES, TUNED_ON, game_of, reference
from rbve.report import across, table
from rbve.report.page import Section
from rbve.report.render import table as render_table
from rbve.report.statistics import Floats, finite
from rbve.report.summary import Problem

_LISTS = (
    ("games that settings are tuned on", TUNED_ON),
    ("games that are reported on", REPORTED_ON),
    ("all of them", SCORES),
)
ABOUT = (
    "Median over games of the mean normalised score, with its 95% bootstrap interval: of each game "
    "datasets are resampled, then the runs on each; with few it is too narrow. RL Unplugged "
    "tunes settings on the first list and reports on the second. A game on which a method has no "
    "score is missing from its median. Where a game has several kinds of data, all their datasets "
    "count; games cut short or otherwise sticky do not."
)

_Scores = dict[str, list[Floats]]  # game -> of each dataset the normalised scores of its runs


def sections(problems: Sequence[Problem]) -> list[Section]:
    """One, where there are at least two games of the lists."""
    scores = _by_method(problems)
    if len({game for found in scores.values() for game in found}) < 2:
        return []
    return [Section("atari-games", "Median over Atari games", f"<p>{ABOUT}</p>{medians(scores)}")]


def _by_method(problems: Sequence[Problem]) -> dict[str, _Scores]:
    found: dict[str, _Scores] = {}
    for problem in problems:
        game = game_of(problem.env)
        for method in problem.methods if reference(problem.env) else ():
            runs: dict[str, list[float | None]] = {}
            for dataset, value in zip(
                method.datasets, method.finals("normalised_return"), strict=True
            ):
                runs.setdefault(dataset, []).append(value)
            if fresh := [known for each in runs.values() if len(known := finite(each))]:
                found.setdefault(method.name, {}).setdefault(game, []).extend(fresh)
    return found


def medians(scores: dict[str, _Scores]) -> str:
    columns = ["method", *(f"{len(games)} {words}" for words, games in _LISTS)]
    rows = [(name, *(cell(found, games) for _, games in _LISTS)) for name, found in scores.items()]
    return render_table("Table: medians over games", columns, rows)


def cell(scores: _Scores, games: Collection[str]) -> str:
    """'83.1 [75.0, 91.2] (35 games, 2 missing)'."""
    known = {game: values for game, values in scores.items() if game in games}
    missing = len(games) - len(known)
    if not known:
        return table.ABSENT
    found = across.interval(known, across.median_of_tasks)
    words = f"{len(known)} game{'' if len(known) == 1 else 's'}, {missing} missing"
    middle = table.number(found.value, 1)
    if min(sum(map(len, datasets)) for datasets in known.values()) > 1:
        middle += f" [{table.number(found.low, 1)}, {table.number(found.high, 1)}]"
    return f"{middle} ({words})"
