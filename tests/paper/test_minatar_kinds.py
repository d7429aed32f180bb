"""Kinds of data by who made them: what is recorded, its labels and its figure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.studies import finals_of, scored

from rbve.data import load
from rbve.paper import experiments
from rbve.paper import reproduce as study
from rbve.paper._pages.figures import against
from rbve.paper.claims import all_claims
from rbve.paper.experiments import SCALES, Data, Experiment, Scale

KINDS = ("final: all an agent's experience", "expert", "noisy expert", "random")


def kinds() -> Experiment:
    found = experiments.load("minatar_kinds")
    assert isinstance(found, Experiment)
    return found


def test_what_is_recorded() -> None:
    wanted = study.recordings([kinds()], SCALES["desk"])
    # An agent's million steps, then its best snapshot's games with more and more noise.
    assert {(each.expert, each.size) for each in wanted if each.expert is not None} == {
        (0.0, "4,000 episodes"),
        (0.25, "20,000 episodes"),
        (1.0, "100,000 episodes"),
    }
    # One agent a seed, whatever its experts record.
    assert len(wanted) == len({each.folder(Path()) for each in wanted}) == 3 + 9
    assert {each.size for each in wanted if each.expert is None} == {"1,000,000 steps"}
    assert {each.seed for each in wanted} == {0, 1, 2}
    shared = study.recordings([experiments.load("minatar")], SCALES["desk"])  # type: ignore[list-item]
    online = {each.folder(Path()) for each in wanted if each.expert is None}
    assert online <= {each.folder(Path()) for each in shared}


def test_it_is_not_the_papers() -> None:
    assert kinds().paper.startswith("Not in the paper")
    asked = {claim.experiment for claim in all_claims()}
    asked |= {claim.again.experiment for claim in all_claims() if claim.again}
    assert "minatar_kinds" not in asked


def test_an_expert_whose_every_action_is_random_plays_uniformly(tmp_path: Path) -> None:
    data = Data("catch", keep=1.0, expert=1.0, episodes=4_000)
    own = Experiment(question="?", data=(data,), methods=kinds().methods)
    scale = Scale(1, 8, episodes=0.05, settings=1, evaluations=2)
    study.record_all(study.recordings([own], scale), tmp_path)
    held = load(study.recording(data, scale, 0).folder(tmp_path))
    assert held.provenance["recorded_episodes"] == 200
    assert load(tmp_path / "data" / "catch-0" / "0").provenance["recorded_episodes"] == 100
    taken = np.asarray(held.action)
    actions = taken[taken >= 0]
    shares = np.bincount(actions, minlength=3) / len(actions)
    # 1,800 decisions: a standard deviation of .011.
    np.testing.assert_allclose(shares, 1 / 3, atol=0.05)


def test_episodes_are_an_experts() -> None:
    with pytest.raises(ValueError, match="episodes are an expert's, 1 or more, not 10"):
        Data("catch", episodes=10)


def test_labels_and_the_figure() -> None:
    finals = []
    for place, epsilon in enumerate((None, 0.0, 0.25, 1.0)):
        source = {} if epsilon is None else {"behaviour": "policy", "epsilon": epsilon}
        for algorithm in ("bve", "bc"):
            scores = [10.0 * place + seed for seed in range(3)]
            runs = scored(algorithm, scores, data={"env": "minatar:breakout"}, source=source)
            finals += finals_of(runs)
    assert {each.problem.label for each in finals} == {
        "minatar:breakout",
        "minatar:breakout, expert ε 0",
        "minatar:breakout, expert ε 0.25",
        "minatar:breakout, uniform play",
    }
    score, _ = against.charts("minatar_kinds", kinds(), finals)
    (panel,) = score.panels
    assert tuple(series.name for series in panel.series) == KINDS
    assert [series.points[0].y for series in panel.series] == [1, 11, 21, 31]
