"""What a report says of Atari: whose score is 100, which returns compare, medians over games."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from rbve import rows
from rbve.data.dataset import Dataset
from rbve.data.episode import Episode
from rbve.envs.atari import PROXY
from rbve.report import table, write_report
from rbve.report.summary import group
from rbve.report.words import headline, sizes
from rbve.rows import Row, RowFile
from rbve.training.measures import facts


def data(**provenance: Any) -> Dataset:
    episodes = [
        Episode.from_steps(np.zeros((2, 1), np.uint8), [0], [reward], True) for reward in (1, 3)
    ]
    return Dataset.from_episodes(episodes, 2, provenance)


def add_run(folder: Path, env: str, algorithm: str, score: float, known: dict[str, Any]) -> None:
    place = folder / f"run{len(list(folder.glob('*')))}"
    place.mkdir(parents=True)
    name = env.partition(":")[2].partition(",")[0] or env
    spec = {
        "data": {"path": f"data/{name}"},
        "algorithm": algorithm,
        "settings": {},
        "evaluation": {"env": env},
        "seed": 0,
    }
    file = RowFile(place, f"{env}-{place.name}", spec, known)
    file.keep(0)
    found = {"return": score, "normalised_return": score}
    file.append([Row(9, f"final/{metric}", value, 1) for metric, value in found.items()])


def printed(folder: Path) -> str:
    console = Console(file=io.StringIO(), width=200)
    for each in map(table.table, group(rows.find([folder]))):
        console.print(each)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_clipped_returns_are_never_set_beside_scores(tmp_path: Path) -> None:
    raw = facts(data(), "atari:Pong")
    assert (raw["behaviour_return"], raw["best_return"]) == (2, 3)
    clipped = facts(data(rewards="clipped"), "atari:Pong")
    assert clipped["behaviour_return"] is clipped["best_return"] is None
    assert clipped["random_return"] == -20.7
    add_run(tmp_path / "raw", "atari:Pong", "bve", 5.0, raw)
    add_run(tmp_path / "clipped", "atari:Pong", "bve", 5.0, clipped)
    words = "behaviour, best in data (rewards clipped)"
    assert "behaviour (data mean)" in printed(tmp_path / "raw")
    assert words not in printed(tmp_path / "raw")
    assert "behaviour (data mean)" not in printed(tmp_path / "clipped")
    assert words in printed(tmp_path / "clipped")
    (problem,) = group(rows.find([tmp_path / "clipped"]))
    assert "behaviour" not in headline(problem)[0]
    assert words in write_report([tmp_path / "clipped"], tmp_path / "page.html").read_text()


OWN = "the best snapshot of the agent that learned online"


def test_a_stand_in_is_never_called_the_online_agent(tmp_path: Path) -> None:
    own = facts(data(reference={"random": 0.0, "online": 4.0}), "catch")
    add_run(tmp_path / "own", "catch", "bve", 5.0, own)
    add_run(tmp_path / "atari", "atari:Pong", "bve", 5.0, facts(data(), "atari:Pong"))
    found = {name: printed(tmp_path / name) for name in ("own", "atari")}
    assert "online reference" in found["own"]
    assert "online reference" not in found["atari"]
    assert "public DQN (proxy)" in found["atari"]
    (problem,) = group(rows.find([tmp_path / "atari"]))
    assert "public DQN (proxy)" in table.as_csv([problem])
    assert table.as_json([problem])["problems"][0]["reference_source"] == PROXY
    pages = {
        name: write_report([tmp_path / name], tmp_path / f"{name}.html").read_text()
        for name in ("own", "atari", ".")
    }
    assert OWN in pages["own"]
    assert "another agent" not in pages["own"]
    assert OWN not in pages["atari"]
    assert f"100 another agent&#39;s score ({PROXY})" in pages["atari"]
    assert f"100 {OWN}, or where the tables name it another agent" in pages["."]


def test_medians_over_games(tmp_path: Path) -> None:
    """Of the mean of each game, for the games tuned on and reported on apart."""
    scores = {"Pong": (10, 30), "Boxing": (90,), "Freeway": (70,), "Zaxxon": (200,), "Pooyan": (6,)}
    for game, values in scores.items():
        env = f"atari:{game},max_steps=108000"
        for value in values:
            add_run(tmp_path / "runs", env, "bve", value, facts(data(), env))
    env = "atari:Pong,max_steps=108000"
    add_run(tmp_path / "runs", env, "bc", 50.0, facts(data(), env))
    for odd in ("Adventure", "Pong,sticky=0", "Pong,max_steps=20", "Krull,max_steps=20"):
        env = f"atari:{odd}"
        add_run(tmp_path / "runs", env, "bve", 1e6, facts(data(), env))
    text = write_report([tmp_path / "runs"], tmp_path / "page.html").read_text()
    section = text[text.index("Median over games of the mean") :]
    lines = {line.split("<")[0]: line for line in section.split('<th scope="row">')[1:3]}
    # Means of Pong, Boxing, Freeway: 20, 90, 70. Of Zaxxon and Pooyan: 200, 6.
    assert "<td>103.0 (2 games, 7 missing)</td><td>70.0 (3 games, 34 missing)</td>" in lines["BVE"]
    assert "<td>70.0 (5 games, 41 missing)</td>" in lines["BVE"]
    assert "<td>–</td><td>50.0 (1 game, 36 missing)</td>" in lines["BC"]


def test_one_game_has_no_median(tmp_path: Path) -> None:
    for algorithm in ("bve", "bc"):
        for env in ("atari:Pong", "catch"):
            add_run(tmp_path / "runs", env, algorithm, 1.0, facts(data(), env))
    text = write_report([tmp_path / "runs"], tmp_path / "page.html").read_text()
    assert "Median over Atari games" not in text


def test_data_of_a_whole_game_normalises_no_other_games_scores() -> None:
    whole = {"random": -20.7, "online": 15.9, "source": PROXY}
    for env in ("atari:Pong", None):
        assert facts(data(reference=whole), env)["reference_return"] == 15.9
    cut = facts(data(reference=whole), "atari:Pong,max_steps=20")
    assert cut["random_return"] is cut["reference_return"] is None
    assert "reference_source" not in cut


def test_one_of_each_is_said_so(tmp_path: Path) -> None:
    episode = Episode.from_steps(np.zeros((2, 1), np.uint8), [0], [1], True)
    single = Dataset.from_episodes([episode], 2, {})
    for name, held in (("one", single), ("two", data())):
        add_run(tmp_path / name, "catch", "bve", 1.0, facts(held, "catch"))
    one, two = (sizes(*group(rows.find([tmp_path / name]))) for name in ("one", "two"))
    assert (one, two) == ("1 run, 1 dataset of 1 episode.", "1 run, 1 dataset of 2 episodes.")
