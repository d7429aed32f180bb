"""Numbers copied from the paper's tables."""

from __future__ import annotations

import pytest

from rbve.paper import printed as paper


def test_lines_of_the_dataset_table_agree_with_themselves() -> None:
    assert len(paper.BSUITE_DATA) == 3 * 6
    for line in paper.BSUITE_DATA:
        # The table rounds or cuts transitions to thousands.
        assert abs(line.episodes * line.length - line.transitions) < 1000, line
    sizes = {line.env: line.episodes for line in paper.BSUITE_DATA}
    assert sizes == {"cartpole": 1000, "catch": 200, "mountain_car": 50}


@pytest.mark.parametrize(
    ("env", "noise", "lengths"),
    [
        ("cartpole", 0.0, [710]),
        ("cartpole", 0.25, [649, 607]),
        ("mountain_car", 0.25, [447, 277]),
        ("mountain_car", 0.5, [494]),
        ("catch", 0.25, [9, 9]),
        ("cartpole", 0.9, [643]),
        ("boxing", 0.0, []),
    ],
)
def test_lines_beside_ours(env: str, noise: float, lengths: list[int]) -> None:
    assert [line.length for line in paper.beside(env, noise)] == lengths


def test_scores() -> None:
    assert paper.ATARI_MEDIANS["R-DQN"] == 108.2
    assert max(paper.ATARI_MEDIANS, key=paper.ATARI_MEDIANS.__getitem__) == "R-BVE"
    assert len(paper.ATARI_MEDIANS) == 8
    assert len(paper.DMLAB) == 8
    assert all(tuple(own) == paper.DMLAB_METHODS for own in paper.DMLAB.values())
    assert paper.DMLAB["seekavoid_arena_01, ε = 0.1"]["BVE"] == (11.775, 4.5)
    assert paper.DMLAB["explore_object_rewards_many"]["CQL"].mean == 23.8
    assert paper.DMLAB["rooms_watermaze"]["R-BVE"].error == 4.2
    best = [max(own, key=lambda name, own=own: own[name].mean) for own in paper.DMLAB.values()]
    # As the paper prints them in bold.
    assert best == ["R-BVE"] * 4 + ["BC"] * 2 + ["R-BVE"] * 2
