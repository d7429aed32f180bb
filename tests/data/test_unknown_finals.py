"""Logs without a final observation: nothing is learned from a state nobody saw."""

from __future__ import annotations

import numpy as np
import pytest

from rbve.data.dataset import Dataset, Episode
from rbve.data.transitions import Bootstrap, View, transitions


def episode(rewards: list[float], terminated: bool, known: bool) -> Episode:
    steps = len(rewards)
    obs = np.arange(steps + 1.0)[:, None]
    made = Episode.from_steps(obs, list(range(steps)), rewards, terminated)
    return made._replace(final_observed=known)


# Rows 0–3 truncated without, 4–7 truncated with, 8–11 terminated without final observation.
DATA = Dataset.from_episodes(
    [
        episode([1, 2, 4], terminated=False, known=False),
        episode([1, 2, 4], terminated=False, known=True),
        episode([1, 2, 4], terminated=True, known=False),
    ],
    actions=3,
)


@pytest.mark.parametrize(
    ("bootstrap", "rows"),
    [
        # The last decision of a truncated episode needs a state or pair that is not there.
        ("state", [0, 1, 4, 5, 6, 8, 9, 10]),
        ("pair", [0, 1, 4, 5, 8, 9, 10]),
        ("return", [0, 1, 2, 4, 5, 6, 8, 9, 10]),
        ("none", [0, 1, 2, 4, 5, 6, 8, 9, 10]),
    ],
)
def test_which_rows_train(bootstrap: Bootstrap, rows: list[int]) -> None:
    found = transitions(DATA, View(0.5), bootstrap)
    assert found.row.tolist() == rows


def test_v_hat_counts_the_last_reward_all_the_same() -> None:
    found = transitions(DATA, View(0.5), "state")
    v_hat = dict(zip(found.row.tolist(), found.g.tolist(), strict=True))
    assert [v_hat[row] for row in (0, 4, 8)] == [3.0, 3.0, 3.0]  # 1 + 2/2 + 4/4


def test_windows_end_at_the_last_state_seen() -> None:
    found = transitions(DATA, View(0.5, n_step=3), "state")
    at = {row: k for k, row in enumerate(found.row.tolist())}
    # Truncated, final unknown: from row 0 two steps to row 2, not three to a filler.
    assert (found.next_row[at[0]], found.reward[at[0]], found.discount[at[0]]) == (2, 2.0, 0.25)
    assert (found.next_row[at[1]], found.reward[at[1]], found.discount[at[1]]) == (2, 2.0, 0.5)
    assert (found.next_row[at[4]], found.reward[at[4]], found.discount[at[4]]) == (7, 3.0, 0.125)
    # Terminated: what the last state looked like does not matter.
    assert (found.next_row[at[8]], found.reward[at[8]], found.discount[at[8]]) == (11, 3.0, 0.0)


def test_a_selection_keeps_the_flag() -> None:
    assert DATA.finals_known.tolist() == [False, True, False]
    assert DATA.select(np.array([1, 0]), "two").finals_known.tolist() == [True, False]
    assert DATA.part(1, 3).finals_known.tolist() == [True, False]
    assert Dataset.join([DATA.part(0, 1), DATA.part(1, 3)]).finals_known.tolist() == [
        False,
        True,
        False,
    ]
    assert not DATA.episode(2).final_observed
    assert DATA.episode(1).final_observed
