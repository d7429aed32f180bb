"""Atari games together: the median over games of normalised scores, as the paper's table has it.

RL Unplugged tunes on 9 games and reports on 37 others, so the two are never mixed in silence.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape

import numpy as np

from rbve.envs._atari_games import REPORTED_ON, SCORES, TUNED_ON, game_of, reference
from rbve.report import across, table
from rbve.report.page import Section
from rbve.report.statistics import Floats, finite
from rbve.report.summary import Problem

LISTS = (
    ("games that settings are tuned on", TUNED_ON),
    ("games that are reported on", REPORTED_ON),
    ("all of them", SCORES),
)
ABOUT = (
    "Median over games of the mean normalised score, with its 95% bootstrap interval over the runs "
    "of each game; RL Unplugged tunes settings on the first list and reports on the second. A game "
    "on which a method has no score is missing from its median. Where a game has several kinds of "
    "data, all their runs count; games cut short or otherwise sticky do not."
)

Scores = dict[str, Floats]  # game -> normalised scores of a method's runs


def sections(problems: Sequence[Problem]) -> list[Section]:
    """One, where there are at least two games of the lists."""
    scores = by_method(problems)
    if len({game for found in scores.values() for game in found}) < 2:
        return []
    return [Section("atari-games", "Median over Atari games", f"<p>{ABOUT}</p>{medians(scores)}")]


def by_method(problems: Sequence[Problem]) -> dict[str, Scores]:
    found: dict[str, Scores] = {}
    for problem in problems:
        game = game_of(problem.env)
        for method in problem.methods if reference(problem.env) else ():
            fresh = finite(method.finals("normalised_return"))
            if len(fresh):
                mine = found.setdefault(method.name, {})
                mine[game] = np.concatenate([mine.get(game, fresh[:0]), fresh])
    return found


def medians(scores: dict[str, Scores]) -> str:
    head = "".join(
        f'<th scope="col">{escape(f"{len(games)} {words}")}</th>' for words, games in LISTS
    )
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(f"<td>{escape(cell(found, games))}</td>" for _, games in LISTS)
        + "</tr>\n"
        for name, found in scores.items()
    )
    return (
        '<div class="scroll" role="region" tabindex="0" aria-label="Table: medians over games">'
        f'<table><thead><tr><th scope="col">method</th>{head}</tr></thead>\n'
        f"<tbody>{rows}</tbody></table></div>"
    )


def cell(scores: Scores, games: Collection[str]) -> str:
    """'83.1 [75.0, 91.2] (35 games, 2 missing)'."""
    known = {game: values for game, values in scores.items() if game in games}
    missing = len(games) - len(known)
    if not known:
        return table.ABSENT
    found = across.interval(known, across.median_of_tasks)
    words = f"{len(known)} game{'' if len(known) == 1 else 's'}, {missing} missing"
    middle = table.number(found.value, 1)
    if found.fewest > 1:
        middle += f" [{table.number(found.low, 1)}, {table.number(found.high, 1)}]"
    return f"{middle} ({words})"
