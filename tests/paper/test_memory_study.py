"""Studies with memory: recorded by R2D2 apart from DQN's data, levels that count, end to end."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rbve import rows
from rbve.behaviours import r2d2_options
from rbve.behaviours.online import came_half_way
from rbve.behaviours.record import EXPERT
from rbve.data import load
from rbve.paper import experiments
from rbve.paper import reproduce as study
from rbve.paper._pages.gather import gather
from rbve.paper._pages.overview import sections
from rbve.paper.experiments import Data, Experiment, Method, Scale
from rbve.policy import Policy

LEVEL = "memory_len:3"
AGENT = r2d2_options.R2D2Options(
    memory=8, hidden=(6,), actors=4, chunk=5, batch_size=4, n_step=3, target_period=3,
    steps_per_update=20, min_replay=100, replay=300, steps=16_000,
)  # fmt: skip
TINY = Scale(
    1, 8, episodes=0.05, settings=1, evaluations=2, eval_episodes=8, batch_size=4, name="quick"
)
TWO = Experiment(
    question="?",
    paper="nowhere",
    data=(Data(LEVEL, keep=1.0, memory=True), Data(LEVEL, keep=1.0, memory=True, expert=0.0)),
    methods=(Method("dqn"),),
    figure="methods",
    spec={"memory": 8, "hidden": (6,), "gamma": 0.9, "n_step": 3},
)


def load_memory(name: str) -> Experiment:
    found = experiments.load(name)
    assert isinstance(found, Experiment)
    return found


@pytest.mark.parametrize("expert", [None, 0.25])
def test_what_r2d2_records_has_a_folder_of_its_own(expert: float | None) -> None:
    recurrent, plain = (
        study.recording(Data(LEVEL, expert=expert, memory=memory), TINY, 2).folder(Path("out"))
        for memory in (True, False)
    )
    noise = "" if expert is None else "-expert-0.25"
    assert recurrent == Path(f"out/data/memory_len-3-0{noise}-r2d2/2")
    assert plain == Path(f"out/data/memory_len-3-0{noise}/2")


def test_steps_are_the_recorders_own() -> None:
    wanted = study.recordings([load_memory("memory")], experiments.SCALES["desk"])
    steps = {each.env: each.steps for each in wanted}
    assert (steps["memory_len:10"], steps["collect:few"]) == (50_000, 200_000)
    assert all(each.memory and each.expert is None for each in wanted)
    assert len(wanted) == 8 * 3  # levels × datasets
    levels = ("MemoryS8", "FourRooms", "DoorKey-5x5")
    found = [steps[f"xminigrid:MiniGrid-{level}"] for level in levels]
    assert found == [400_000, 900_000, 200_000]
    quick = study.recordings([load_memory("memory_coverage")], experiments.SCALES["quick"])
    # The agent of each seed comes before its four experts.
    assert [each.expert for each in quick[:2]] == [None, None]
    assert {each.expert for each in quick[2:]} == {0.0, 0.01, 0.1, 0.25}
    assert {each.online for each in quick[2:]} == set(quick[:2])


@pytest.mark.parametrize(
    ("online", "counts"), [(0.25, True), (0.24, False), (-0.5, False), (1.0, True)]
)
def test_half_way_is_measured_from_random(online: float, counts: bool) -> None:
    """Between −.5 and 1 it lies at .25."""
    assert came_half_way({"reference": {"random": -0.5, "online": online}}, 1.0) == counts


def recorded(out: Path, env: str, seed: int, online: float) -> None:
    """A manifest as a recording leaves it, for what is decided by it alone."""
    folder = study.recording(Data(env, memory=True), TINY, seed).folder(out)
    folder.mkdir(parents=True)
    provenance = {"late_return": 0.0, "reference": {"random": 0.0, "online": online}}
    (folder / "manifest.json").write_text(json.dumps({"finished": True, "provenance": provenance}))


@pytest.mark.parametrize("name", ["memory", "memory_coverage"])
def test_a_level_counts_if_all_its_recorders_came_half_way(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "fingerprint", lambda folder: "")
    experiment, desk = load_memory(name), experiments.SCALES["desk"]
    levels = list(dict.fromkeys(data.env for data in experiment.data))
    for env in levels:
        best = experiment.best[env]
        recorded(tmp_path, env, 0, 0.51 * best)
        recorded(tmp_path, env, 1, 0.49 * best if env == "collect:few" else best)
    for data in experiment.data:  # an expert's recording lies beside its agent's
        own = study.recording(data, experiment.at(desk), 0)
        if own != own.online:
            shutil.copytree(own.online.folder(tmp_path), own.folder(tmp_path))
    found = {job.evaluation.env for job in study.jobs(experiment, desk, tmp_path)}
    # Experts' data goes by the agent they come from.
    assert found == {env for env in levels if env != "collect:few"}
    (reason,) = study.left_out(experiment, desk, tmp_path).values()
    assert reason.startswith("the agent of seed 1 came to 6.97, not half way from the random")
    jobs = study.jobs(replace(experiment, best={}), desk, tmp_path)
    assert {job.evaluation.env for job in jobs} == set(levels)
    assert {(job.network.memory, job.view.n_step, job.view.gamma) for job in jobs} == {
        (64, 5, 0.99)
    }
    assert {job.data.keep for job in jobs} == {1.0}
    # A quick look records a tenth of the steps, in which nobody comes half way.
    assert study.left_out(experiment, experiments.SCALES["quick"], tmp_path) == {}


def test_a_level_that_one_agent_did_not_learn_is_not_recorded_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, desk = (
        [load_memory("memory"), load_memory("memory_coverage")],
        experiments.SCALES["desk"],
    )
    begun: list[study.Recording] = []

    def record(each: study.Recording, out: Path, note: object) -> None:
        begun.append(each)
        if each.expert is None:
            learned = each.env == "memory_len:10" or (each.env, each.seed) == ("collect:few", 0)
            recorded(out, each.env, each.seed, both[0].best[each.env] if learned else 0.0)

    monkeypatch.setattr("rbve.paper.recordings.record_one", record)
    monkeypatch.setattr(
        "rbve.paper.recordings.on_all_devices", lambda one, all_: [one(e) for e in all_]
    )
    told: list[float] = []
    wanted = study.recordings(both, desk)
    study.record_all(
        wanted, tmp_path, lambda *said: told.append(said[1]), study.needless(both, desk, tmp_path)
    )
    again = [(each.env, each.expert) for each in begun if each.seed]
    # The second agent on collect:few fails, so no expert's data is made of the first one's either.
    assert again == [("collect:few", None), *[("memory_len:10", None)] * 2]
    assert [each.env for each in begun if not each.seed and each.expert is not None] == []
    assert told == [1.0] * (len(wanted) - len(begun))  # progress reaches its end all the same


@pytest.mark.slow
def test_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(r2d2_options, "default_options", lambda env: AGENT)
    out = Path("study")
    wanted = study.recordings([TWO], TINY)
    study.record_all(wanted, out)
    agent, expert = (each.folder(out) for each in wanted)
    data = load(agent)
    # 5% of 16,000 steps: 800 rows, 5 an episode.
    assert (data.provenance["behaviour"], data.num_episodes) == ("online r2d2", 160)
    assert (load(expert).provenance["behaviour"], load(expert).provenance["epsilon"]) == (
        "policy", 0.0,
    )  # fmt: skip
    assert load(expert).provenance["reference"] == data.provenance["reference"]
    check_expert(Policy.load(agent / EXPERT), expert)

    study.run({"memory": TWO}, TINY, out)
    found = rows.find([out])
    assert len(found) == 2
    assert {run.field("memory") for run in found} == {8}
    reference = data.provenance["reference"]
    for run in found:
        score = run.last("final/return")
        assert score is not None
        way = (score - reference["random"]) / (reference["online"] - reference["random"])
        assert run.last("final/normalised_return") == pytest.approx(100 * way)
    page = {section.title: section for section in sections(gather([out], found))}
    (chart,) = page["Levels with memory: scores by method"].charts
    assert [panel.title for panel in chart.panels] == [
        "memory_len:3, 100%",
        "memory_len:3, expert ε 0, 100%",
    ]
    assert {point.x for panel in chart.panels for point in panel.series[0].points} == {"R2D2"}
    # Giving the command again finds everything done.
    before = {file: file.stat().st_mtime_ns for file in out.rglob("rows.jsonl")}
    study.record_all(wanted, out)
    study.run({"memory": TWO}, TINY, out)
    assert {file: file.stat().st_mtime_ns for file in out.rglob("rows.jsonl")} == before


def check_expert(snapshot: Policy, folder: Path) -> None:
    """Without noise an expert does what the snapshot with its memory does, step by step."""
    assert snapshot.memory == 8
    data = load(folder)
    for k in range(5):
        episode, session = data.episode(k), snapshot.start()
        rewards = np.concatenate([[0.0], episode.reward])
        for t in range(len(episode.action) - 1):
            assert session.act(episode.obs[t], float(rewards[t])) == episode.action[t]
