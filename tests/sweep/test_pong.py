"""The Pong study in a tiny form: a script with mistakes recorded, learned from, shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rbve import experiments, rows
from rbve.data import load
from rbve.envs import atari
from rbve.experiments import Data, Experiment, Scale
from rbve.report import write_report
from rbve.report.finals import finals
from rbve.sweep import frames, results, study

ENV = "atari:Pong"
TINY = Scale(
    1, 4, episodes=0.002, settings=1, evaluations=2, eval_episodes=1, batch_size=4, name="quick"
)


def pong() -> Experiment:
    found = experiments.load("pong")
    assert isinstance(found, Experiment)
    return found


def test_the_experiment() -> None:
    desk = pong().at(experiments.SCALES["desk"])
    assert (desk.datasets, desk.steps, desk.batch_size) == (1, 10_000, 32)
    assert [method.algorithm for method in pong().methods] == ["bc", "dqn", "cql", "bve", "rbve"]
    (wanted,) = study.recordings([pong()], experiments.SCALES["desk"])
    assert (wanted.env, wanted.script, wanted.expert, wanted.episodes, wanted.steps) == (
        "atari:Pong", 0.1, None, 20, 0,
    )  # fmt: skip
    assert wanted.folder(Path("out")) == Path("out/data/atari-Pong-0-script-0.1/0")


def test_a_script_is_no_expert() -> None:
    with pytest.raises(ValueError, match="a script's or an expert's, not both"):
        study.recording(Data("atari:Pong", script=0.1, expert=0.1), TINY, 0)


def test_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("ale_py", "cv2"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(atari, "MAX_STEPS", 300)  # a whole game, as if it were: enough for a point
    out = Path("study")
    own = replace(
        pong(),
        data=(Data(ENV, keep=1.0, script=0.2),),
        methods=tuple(each for each in pong().methods if each.algorithm == "rbve"),
        scales=(TINY,),
        spec={**pong().spec, "hidden": (16,)},
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
    assert (made["reference"]["random"], made["reference"]["online"]) == (-20.7, 15.9)
    (strip,) = frames.write_strips(out)
    study.run({"pong": own}, quick, out)

    found = rows.find([out])
    assert {run.spec["spec"]["stack"] for run in found} == {4}
    assert {run.spec["spec"]["final_evaluations"] for run in found} == {2}
    (problem,) = {each.problem for each in finals(found)}
    assert problem.label == f"{ENV}, script ε 0.2, 100%"
    for run in found:
        score = run.last("final/return")
        assert score is not None
        assert run.last("final/normalised_return") == pytest.approx(100 * (score + 20.7) / 36.6)

    results.pack([out], Path("packed"))
    page = write_report(["packed"], Path("page.html")).read_text()
    assert "Pong, from frames alone" in page
    assert "public DQN (proxy)" in page
    assert "What scores are normalised by is a proxy: public DQN training data" in page
    assert "script ε 0.2" in page
    assert Path("figures", f"frames-{strip.name}").is_file()
    assert Path("figures", "pong-scores.png").is_file()
    assert Path("figures", "pong-return-over-training.png").is_file()
