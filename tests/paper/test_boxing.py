"""The Boxing study in a tiny form: a script with mistakes recorded, learned from, shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rbve import rows
from rbve.data import load
from rbve.envs import atari
from rbve.paper import experiments, frames, results
from rbve.paper import reproduce as study
from rbve.paper.experiments import Data, Experiment, Scale
from rbve.paper.finals import finals
from rbve.paper.report import write_report

ENV = "atari:Boxing"
TINY = Scale(
    1, 4, episodes=0.002, settings=1, evaluations=2, eval_episodes=1, batch_size=4, name="quick"
)


def boxing() -> Experiment:
    found = experiments.load("boxing")
    assert isinstance(found, Experiment)
    return found


def test_the_experiment() -> None:
    desk = boxing().at(experiments.SCALES["desk"])
    assert (desk.datasets, desk.steps, desk.batch_size) == (3, 100_000, 32)
    assert [method.algorithm for method in boxing().methods] == ["bc", "dqn", "cql", "bve", "rbve"]
    wanted, *others = study.recordings([boxing()], experiments.SCALES["desk"])
    assert [each.seed for each in others] == [1, 2]
    assert (wanted.env, wanted.script, wanted.expert, wanted.episodes, wanted.steps) == (
        "atari:Boxing", 0.1, None, 40, 0,
    )  # fmt: skip
    assert wanted.folder(Path("out")) == Path("out/data/atari-Boxing-0-script-0.1/0")


def test_a_script_is_no_expert() -> None:
    with pytest.raises(ValueError, match="a script's or an expert's, not both"):
        study.recording(Data("atari:Boxing", script=0.1, expert=0.1), TINY, 0)


@pytest.mark.slow
def test_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("ale_py", "cv2"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(atari, "MAX_STEPS", 300)  # a whole game, as if it were: enough for a point
    out = Path("study")
    own = replace(
        boxing(),
        data=(Data(ENV, keep=1.0, script=0.2),),
        methods=tuple(each for each in boxing().methods if each.algorithm == "rbve"),
        scales=(TINY,),
        spec={**boxing().spec, "hidden": (16,)},
    )
    quick = experiments.SCALES["quick"]
    wanted = study.recordings([own], quick)
    study.record_all(wanted, out)
    (folder,) = (each.folder(out) for each in wanted)
    data = load(folder)
    assert (data.num_episodes, data.obs_shape) == (2, (84, 84, 1))
    assert len(data.action) == 602
    made = data.provenance
    assert (made["behaviour"], made["epsilon"], made["env"]) == ("script", 0.2, ENV)
    assert (made["reference"]["random"], made["reference"]["online"]) == (0.1, 77.5)
    (strip,) = frames.write_strips(out)
    study.run({"boxing": own}, quick, out)

    found = rows.find([out])
    assert {run.field("stack") for run in found} == {4}
    assert {run.field("final_evaluations") for run in found} == {2}
    (problem,) = {each.problem for each in finals(found)}
    assert problem.label == f"{ENV}, script ε 0.2, 100%"
    for run in found:
        score = run.last("final/return")
        assert score is not None
        assert run.last("final/normalised_return") == pytest.approx(100 * (score - 0.1) / 77.4)

    results.pack([out], Path("packed"))
    page = write_report(["packed"], Path("page.html")).read_text()
    assert "Boxing, from frames alone" in page
    assert "public DQN (proxy)" in page
    assert "What scores are normalised by is a proxy: public DQN training data" in page
    assert "script ε 0.2" in page
    assert Path("page-figures", f"frames-{strip.name}").is_file()
    assert Path("page-figures", "boxing-scores.png").is_file()
    assert Path("page-figures", "boxing-return-over-training.png").is_file()
