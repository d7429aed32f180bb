"""A field is the same thing as a flag, a keyword and a key of a config file."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from support.cli import run

import rbve
from rbve import cli, rows, spec
from rbve.spec import Spec
from rbve.sweep import grid
from rbve.sweep.config import SweepConfig, field_names, parse_values, read_config, write_config

# Another value than the default for every field that a user may set.
OTHER: dict[str, Any] = {
    "algorithm": "bve",
    "td": "huber",
    "steps": 77,
    "seed": 3,
    "group": "ward",
    "keep": 0.5,
    "keep_seed": 2,
    "side": "above",
    "action": "executed",
    "holdout": 0.5,
    "holdout_seed": 2,
    "torso": "mlp",
    "hidden": (8, 4),
    "stack": 2,
    "memory": 6,
    "rescale": True,
    "gamma": 0.9,
    "n_step": 3,
    "clip_rewards": True,
    "learning_rate": 0.001,
    "target_period": 9,
    "polyak": 0.01,
    "batch_size": 5,
    "sequence": 4,
    "burn_in": 2,
    "rows": "disk",
    "env": "none",
    "eval_episodes": 7,
    "eval_epsilon": 0.25,
    "every": 11,
    "final_evaluations": 2,
    "legal": "all",
}
NEEDS = {"sequence": {"memory": 6}, "burn_in": {"memory": 6, "sequence": 4}}


class Captured(Exception):
    """Carries the jobs that were about to be trained."""


@pytest.fixture(autouse=True)
def captured(monkeypatch: pytest.MonkeyPatch) -> None:
    def capture(jobs: Any, *rest: Any, **more: Any) -> None:
        raise Captured(jobs)

    monkeypatch.setattr("rbve.sweep.run.run_jobs", capture)
    monkeypatch.setattr("rbve.api.run_jobs", capture)


def jobs_of(*arguments: Any) -> list[Spec]:
    with pytest.raises(Captured) as caught:
        cli.main(["train", *map(str, arguments)])
    return list(caught.value.args[0])


def flags_of(fields: dict[str, Any]) -> list[str]:
    words: list[str] = []
    for name, value in fields.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True and name != "rescale":
            words.append(flag)
        else:
            words += [flag, *map(str, value if isinstance(value, tuple) else [value])]
    return words


def test_every_field_is_tried() -> None:
    assert set(OTHER) == set(field_names()) - {"path"}


@pytest.mark.parametrize("name", sorted(OTHER))
def test_flag_keyword_and_key_are_the_same(name: str, catch_path: Path, tmp_path: Path) -> None:
    fields = {"env": "none", **NEEDS.get(name, {}), name: OTHER[name]}
    (by_flag,) = jobs_of(catch_path, *flags_of(fields))
    file = tmp_path / "run.toml"
    base = Spec.of(path=catch_path, **fields)
    file.write_text(write_config(SweepConfig(base, {}), Spec.of(env="auto")))
    (by_file,) = jobs_of("--config", file)
    with pytest.raises(Captured) as caught:
        rbve.train(catch_path, **fields)
    (by_keyword,) = caught.value.args[0]
    assert by_flag == by_file == by_keyword
    assert by_flag.id == by_file.id == by_keyword.id
    expected = None if OTHER[name] == "none" else OTHER[name]
    found = by_flag.flat()[name]
    assert found.startswith(expected) if name == "group" else found == expected
    (usual,) = jobs_of(catch_path, *flags_of({k: v for k, v in fields.items() if k != name}))
    assert (usual.id == by_flag.id) == (name == "group")


def test_keywords_of_python_that_were_refused(catch_path: Path) -> None:
    with pytest.raises(Captured) as caught:
        rbve.train(catch_path, gamma=0.9, hidden=(64,), lam=0.5, steps=None)
    (job,) = caught.value.args[0]
    assert (job.view.gamma, job.network.hidden, job.settings["lam"]) == (0.9, (64,), 0.5)
    with pytest.raises(ValueError, match=r"no setting 'gama'. Did you mean 'gamma'"):
        rbve.train(catch_path, gama=0.9)


def test_what_flags_mean_is_printed_and_read_back(catch_path: Path, tmp_path: Path) -> None:
    flags = ("--seed", 0, 1, "--gamma", 0.9, "--set", "lam=0,0.5", "--preset", "small-memory")
    flags = (*flags, "--vary", "hidden=8,16x4", "--vary", "clip-rewards=true,false")
    wanted = jobs_of(catch_path, *flags)
    assert len(wanted) == 16
    printed = run("train", catch_path, *flags, "--print-config")
    assert (printed.code, printed.err) == (0, "")
    file = tmp_path / "run.toml"
    file.write_text(printed.out)
    assert [job.id for job in jobs_of("--config", file)] == [job.id for job in wanted]
    assert run("train", "--config", file, "--print-config").out == printed.out


def test_flags_go_before_the_file_and_the_file_before_the_preset(
    catch_path: Path, tmp_path: Path
) -> None:
    file = tmp_path / "run.toml"
    file.write_text("seed = [1, 2]\n[view]\ngamma = [0.8, 0.9]\nn_step = 2\n")
    common = (catch_path, "--config", file, "--preset", "small-memory")
    jobs = jobs_of(*common)
    assert {(job.seed, job.view.gamma) for job in jobs} == {(1, 0.8), (1, 0.9), (2, 0.8), (2, 0.9)}
    assert {(job.view.n_step, job.network.memory) for job in jobs} == {(2, 64)}  # file, preset
    (job,) = jobs_of(*common, "--seed", 5, "--gamma=0.99", "--n-step", 1, "--memory", 0)
    assert (job.seed, job.view.gamma, job.view.n_step, job.network.memory) == (5, 0.99, 1, 0)


@pytest.mark.parametrize("name", sorted(set(OTHER) - {"group", "env", "legal", "memory"}))
def test_any_field_can_be_varied(name: str) -> None:
    base = Spec.of(**NEEDS.get(name, {}))
    usual = base.resolved().flat()[name]
    jobs = grid.jobs(base, {name: [usual, OTHER[name]]})
    assert [job.flat()[name] for job in jobs] == [usual, OTHER[name]]
    assert len({job.id for job in jobs}) == 2
    text = "x".join(map(str, OTHER[name])) if name == "hidden" else str(OTHER[name])
    assert parse_values([f"{name}={text}"], "--vary", fields=True) == {name: [OTHER[name]]}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gamma = 1", "unknown key 'gamma'. Did you mean '[view] gamma'?"),
        ("gama = 1", "unknown key 'gama'. Did you mean '[view] gamma'?"),
        ("[view]\ngama = 1", "unknown key '[view] gama'. Did you mean '[view] gamma'?"),
        ("[network]\ngamma = 1", "unknown key '[network] gamma'. Did you mean '[view] gamma'?"),
        ("[veiw]\ngamma = 1", "unknown key 'veiw'. Did you mean '[view]'?"),
        ("view = 3", "unknown key 'view'"),
        ("fingerprint = 'x'", "unknown key 'fingerprint'"),
        ("[view]\ngamma = 'x'", "gamma must be a number; got 'x'"),
        ("[view]\ngamma = []", "gamma has no value"),
        ("[view]\ngamma = 7", "gamma must lie in [0, 1]; got 7.0"),
        ("[network]\nhidden = 5", "hidden must be a list; got 5"),
        ("td = 'cube'", "td must be one of square, huber; got 'cube'"),
        ("[data]\nholdout = 1", "holdout must lie in [0, 1), 0 = no episode is held out; got 1.0"),
        ("[data]\nholdout = -0.1", "holdout must lie in [0, 1)"),
        ("steps = true", "steps must be a whole number; got True"),
        ("steps = ", "cannot be read as TOML"),
    ],
)
def test_a_wrong_file_is_one_line(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(text)
    done = run("train", "data", "--config", file)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith(f"rbve: {file}: ")
    assert words in done.err
    missing = run("train", "data", "--config", tmp_path / "gone.toml")
    assert (missing.code, missing.err.count("\n")) == (2, 1)


def test_several_values_are_too_many_for_one_policy(catch_path: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text("[view]\ngamma = [0.9, 0.99]\n")
    with pytest.raises(ValueError, match=r"several values of gamma; rbve.train trains one"):
        rbve.train(catch_path, config=file)
    assert read_config(file, SweepConfig(Spec(), {})).vary == {"gamma": [0.9, 0.99]}


def test_a_new_field_leaves_ids_alone() -> None:
    @dataclasses.dataclass(frozen=True)
    class LaterSampling(spec.SamplingSpec):
        priorities: float = 0.0

    @dataclasses.dataclass(frozen=True)
    class Later(Spec):
        sampling: LaterSampling = dataclasses.field(default_factory=LaterSampling)
        curriculum: str = "none"

    Later.__annotations__["sampling"] = LaterSampling
    for fields in ({}, {"memory": 8, "gamma": 0.9, "lam": 0.5, "algorithm": "rdqn"}):
        assert Later.of(**fields).id == Spec.of(**fields).id
    assert Later.of(priorities=0.5).id != Later.of().id
    assert Later.of(curriculum="short").id != Later.of().id


def test_ids_go_by_what_is_learned_from_what() -> None:
    plain = Spec.of(path="a", fingerprint="f")
    assert plain.id == Spec.of(path="b", fingerprint="f").id
    assert plain.id == plain.varied(group="g", replicate="r").id
    assert (
        plain.id == plain.varied(batch_size=128, n_step=1, lam=plain.resolved().settings["lam"]).id
    )
    assert plain.id != Spec.of(path="a", fingerprint="g").id
    assert Spec.of(path="a").id != Spec.of(path="b").id
    assert Spec.from_json(json.loads(json.dumps(plain.resolved().to_json()))).id == plain.id


def test_rows_of_earlier_versions_are_upgraded(tmp_path: Path) -> None:
    flat = {
        "data": {"path": "data/catch", "keep": 0.5, "keep_seed": 0, "fingerprint": "ab"},
        "spec": {
            "algorithm": "rbve",
            "options": {"filter": "none"},
            "hidden": [8],
            "env": "catch",
            "steps": 40,
            "every": 20,
            "gamma": 0.9,
        },
        "config": {"lam": 0.5},
        "learning_rate": 1e-3,
        "target_period": 4,
        "seed": 3,
    }
    file = tmp_path / rows.FILE
    file.write_text(json.dumps({"job": "rbve-0", "spec": flat, "facts": {}}) + "\n")
    run_ = rows.read(file)
    found = Spec.from_json(run_.spec)
    assert (found.algorithm, found.steps, found.seed) == ("rbve", 40, 3)
    assert found.settings == {"lam": 0.5, "filter": "none"}
    assert (found.view.gamma, found.network.hidden) == (0.9, (8,))
    assert (found.optimiser.learning_rate, found.optimiser.target_period) == (1e-3, 4)
    assert (found.evaluation.env, found.data.keep) == ("catch", 0.5)
    assert run_.field("every") == 20


def test_a_run_names_its_group_its_replicate_and_its_code(catch_path: Path, tmp_path: Path) -> None:
    (own,) = jobs_of(catch_path, "--keep", 0.5)
    (named,) = jobs_of(catch_path, "--keep", 0.5, "--group", "ward")
    assert own.replicate == named.replicate == own.data.fingerprint
    assert own.group.endswith(" keep=0.5")
    assert named.group == "ward keep=0.5"
    assert own.id == named.id
    file = rows.RowFile(tmp_path, own.id, own.to_json(), {})
    file.keep(0)
    header = json.loads((tmp_path / rows.FILE).read_text())
    assert set(header["code"]) == {"version", "commit"}
    assert rows.read(tmp_path / rows.FILE).code == rows.code_version()


def test_another_version_goes_on_with_rows_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = rows.RowFile(tmp_path, "a", {}, {})
    file.keep(0)
    file.append([rows.Row(1, "x", 1.0, 1)])
    before = (tmp_path / rows.FILE).read_bytes()
    monkeypatch.setattr(rows, "code_version", lambda: {"version": "9", "commit": "later"})
    later = rows.RowFile(tmp_path, "a", {}, {})
    later.keep(file.count, file.crc)
    assert (tmp_path / rows.FILE).read_bytes() == before
    assert later.crc == file.crc
