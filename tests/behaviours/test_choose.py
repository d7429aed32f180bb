"""One dispatcher over the files of behaviours, and the contract that each file keeps."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import pytest

import rbve
from rbve.behaviours import kinds
from rbve.behaviours.kinds.online_dqn import DQNOptions
from rbve.behaviours.kinds.online_dqn_host import HostDQNOptions
from rbve.behaviours.r2d2_options import R2D2Options
from rbve.behaviours.record import (
    EXPERT,
    Asked,
    Progress,
    RecordingPlan,
    all_kinds,
    choose,
    record,
)
from rbve.policy import Policy

SMALL: dict[str, Any] = {
    "online_dqn": DQNOptions(hidden=(4,), batch_size=8, min_replay=20),
    "online_dqn_host": HostDQNOptions(
        batch_size=4, min_replay=20, replay=500, stack=1, torso="mlp", hidden=(4,)
    ),
    "online_r2d2": R2D2Options(
        memory=4, hidden=(4,), actors=2, chunk=5, min_replay=20, replay=300, steps=80
    ),
}
PRESET = {"online_dqn_host": "rlu-atari"}
BY_NAME = {"online_dqn": "online", "online_dqn_host": "online", "online_r2d2": "r2d2"}


def first_action(observation: Any) -> int:
    return 0


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    out = tmp_path_factory.mktemp("policy") / "data"
    data = rbve.record("catch", out, 10, policy="uniform")
    return rbve.train(data, "bc", steps=2, hidden=(4,))


def asked_for(kind: str, policy: Policy) -> Asked:
    others = {"uniform": "uniform", "script": "script", "function": first_action}
    others |= {"clinicians": "clinicians"}
    return Asked({**BY_NAME, **others, "saved_policy": policy}[kind], PRESET.get(kind))


KINDS = [module.__name__.rpartition(".")[2] for module in all_kinds()]


def test_which_there_are() -> None:
    assert set(KINDS) == {
        "online_dqn", "online_dqn_host", "online_r2d2", "saved_policy", "script", "uniform",
        "function", "clinicians",
    }  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_file_keeps_the_contract(kind: str, policy: Policy, tmp_path: Path) -> None:
    module = sys.modules[f"{kinds.__name__}.{kind}"]
    assert module.__doc__
    asked = asked_for(kind, policy)
    env = "gymnasium:CartPole-v1" if kind == "online_dqn_host" else "catch"
    env = "memory_len:3" if kind == "online_r2d2" else env
    plan = RecordingPlan(env, tmp_path / "data", None if kind == "online_r2d2" else 4)
    behaviour: Any = choose(asked, plan)
    assert next(each for each in all_kinds() if each.claim(asked) is not None) is module
    assert type(module.claim(asked)) is type(behaviour)
    assert dataclasses.is_dataclass(behaviour)
    assert behaviour == module.claim(asked)
    if kind == "script":  # scripts play consoles
        with pytest.raises(ValueError, match="no script plays catch"):
            record(behaviour, plan)
        return
    if kind == "clinicians":  # recorded in tests/evaluation/test_exact.py
        with pytest.raises(ValueError, match="plays icu_sepsis; got catch"):
            record(behaviour, plan)
        return
    if kind in SMALL:
        behaviour = dataclasses.replace(behaviour, options=SMALL[kind])
    told: list[Progress] = []
    record(behaviour, plan, told.append)
    data = rbve.load(tmp_path / "data")
    assert data.num_episodes == told[-1].episodes == plan.episodes or data.num_episodes > 4
    assert told[-1].share == 1
    assert data.provenance["finished"]
    assert (tmp_path / "data" / EXPERT).exists() == module.LEARNS
    words = "steps are those of|give one of|by steps"
    both = dataclasses.replace(plan, steps=5, episodes=5)
    with pytest.raises(ValueError, match=words):
        record(choose(asked, both), both)
    if module.LEARNS or kind == "uniform":
        with pytest.raises(ValueError, match="epsilon belongs to"):
            choose(asked, dataclasses.replace(plan, epsilon=0.5))


def test_what_is_no_behaviour(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"policy is 'online'.*got 7"):
        rbve.record("catch", tmp_path / "data", 2, policy=7)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no such file"):
        rbve.record("catch", tmp_path / "data", 2, policy="onlin")
    with pytest.raises(ValueError, match=r"preset is rlu-atari or rlu-dmlab, an online agent"):
        rbve.record("catch", tmp_path / "data", 2, preset="rlu")
