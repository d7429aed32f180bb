"""Policies, functions and environments as a caller has them; legal actions from who knows them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from support.cli import run

import rbve
from rbve import envs, rows
from rbve.data import Dataset
from rbve.envs.base import Env, HostEnv, Stepped
from rbve.envs.gymnasium import GymnasiumEnv
from rbve.evaluation.follow import FollowPlan, follow
from rbve.evaluation.rollout import random_returns
from rbve.policy import Policy
from rbve.spec import Spec
from rbve.training.run import POLICY, train_members

STEPS, ACTIONS = 5, 3


class Doors(gymnasium.Env[np.ndarray, np.int64]):
    """One door is locked at each step; a locked one costs 10, any other pays 1."""

    observation_space = gymnasium.spaces.Box(0, 1, (STEPS + 1,))
    action_space = gymnasium.spaces.Discrete(ACTIONS)
    gives: tuple[int, ...] = tuple(range(STEPS + 1))  # the steps whose info has a mask
    nothing_open = -1  # the step whose mask allows nothing

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.time = 0
        return self.look(), self.info()

    def step(self, action: Any) -> Any:
        reward = 1.0 if self.open()[int(action)] else -10.0
        self.time += 1
        return self.look(), reward, self.time == STEPS, False, self.info()

    def look(self) -> np.ndarray:
        return (np.arange(STEPS + 1) == self.time).astype(np.float32)

    def open(self) -> np.ndarray:
        return (np.arange(ACTIONS) != self.time % ACTIONS) & (self.time != self.nothing_open)

    def info(self) -> dict[str, Any]:
        return {"action_mask": self.open().astype(np.int8)} if self.time in self.gives else {}


class Silent(Doors):
    gives = ()


class Forgets(Doors):
    gives = (0, 1, 2)


class Remembers(Doors):
    gives = (2, 3, 4)


class AllButTheLast(Doors):
    gives = (0, 1, 2, 3, 4)


class Shut(Doors):
    nothing_open = 3


for kind in (Doors, Silent):
    gymnasium.register(f"{kind.__name__}-v0", kind)


def first_open(observation: np.ndarray, legal: np.ndarray) -> int:
    assert observation.shape == (STEPS + 1,)
    return int(np.flatnonzero(legal)[0])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("doors") / "data"
    rbve.record(Doors(), path, 40, policy="uniform")
    return path


@pytest.fixture(scope="module")
def policy(store: Path) -> Policy:
    return rbve.train(store, "bc", steps=20, spec={"hidden": (8,), "batch_size": 16})


# Legal actions


def test_masks_of_gymnasium_are_used_and_told(policy: Policy) -> None:
    assert policy.masked
    for env in (Doors(), "gymnasium:Doors-v0"):
        found = rbve.evaluate(policy, env, episodes=9, epsilon=0.5)
        assert found["legal_actions"] == "from the environment"
        assert found["return"] == STEPS  # no locked door was tried, at random neither


def test_an_environment_without_masks_is_refused(policy: Policy, tmp_path: Path) -> None:
    words = r"the policy's data says which actions are legal, and Silent does not; .*--legal all"
    with pytest.raises(ValueError, match=words):
        rbve.evaluate(policy, Silent(), episodes=3)
    found = rbve.evaluate(policy, Silent(), episodes=3, legal="all")
    assert found["legal_actions"] == "all"
    with pytest.raises(ValueError, match="Doors says which actions are legal; leave legal out"):
        rbve.evaluate(policy, Doors(), episodes=3, legal="all")
    with pytest.raises(ValueError, match="legal is 'all', or left"):
        rbve.evaluate(policy, Silent(), episodes=3, legal="some")
    with pytest.raises(ValueError, match=words):
        rbve.record(Silent(), tmp_path / "data", 3, policy=policy)
    assert not (tmp_path / "data").exists()
    data = rbve.record(Silent(), tmp_path / "data", 3, policy=policy, legal="all")
    assert data.legal is None


def test_no_masks_nothing_told(policy: Policy) -> None:
    free = dataclasses.replace(policy, masked=False)
    assert "legal_actions" not in rbve.evaluate(free, Silent(), episodes=3)
    assert rbve.evaluate(free, Doors(), 3)["legal_actions"] == "from the environment"


def test_environments_inside_jax(policy: Policy, catch: Dataset, tmp_path: Path) -> None:
    plain = rbve.train(catch, "bc", steps=20, spec={"hidden": (8,), "batch_size": 16})
    masked = dataclasses.replace(plain, masked=True)
    with pytest.raises(ValueError, match="legal, and catch does not"):
        rbve.evaluate(masked, "catch", episodes=3)
    assert rbve.evaluate(masked, "catch", 3, legal="all")["legal_actions"] == "all"
    world = envs.load("catch")
    assert isinstance(world, Env)
    guarded = world._replace(legal=lambda state: np.array([False, True, False]))
    found = rbve.evaluate(masked, guarded, episodes=20, epsilon=0.5)
    assert found["legal_actions"] == "from the environment"
    data = rbve.record(guarded, tmp_path / "data", 4, policy=masked, epsilon=0.5)
    assert set(data.action.tolist()) == {1, -1}


def test_on_the_command_line(policy: Policy, tmp_path: Path) -> None:
    file = tmp_path / "p.safetensors"
    policy.save(file)
    command = ("evaluate", file, "--episodes", 3, "--env")
    shown = run(*command, "gymnasium:Doors-v0")
    assert "legal actions" in shown.out
    assert "from the environment" in shown.out
    refused = run(*command, "gymnasium:Silent-v0")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "--legal all" in refused.err
    told = run(*command, "gymnasium:Silent-v0", "--legal", "all", "--json")
    assert json.loads(told.out)["legal_actions"] == "all"
    recorded = run("record", "gymnasium:Silent-v0", "--policy", file, "--out", tmp_path / "data")
    assert (recorded.code, recorded.err.count("\n")) == (2, 1)
    assert "--legal all" in recorded.err


def test_training_evaluates_with_masks_or_not_at_all(
    store: Path, small_job: Callable[..., Spec], tmp_path: Path
) -> None:
    data = rbve.load(store)
    plan = {"steps": 20, "every": 10, "env": "gymnasium:Silent-v0"}
    words = "add --legal all to evaluate as if all were, or --env none to evaluate nothing"
    with pytest.raises(ValueError, match=words):
        train_members([small_job("bve", plan)], [data], [tmp_path / "silent"])
    plan["env"] = "gymnasium:Doors-v0"
    train_members([small_job("bve", plan)], [data], [tmp_path / "doors"])
    assert rows.read(tmp_path / "doors" / rows.FILE).last("final/return") == STEPS


def test_followers_use_masks(store: Path, small_job: Callable[..., Spec], tmp_path: Path) -> None:
    plan = {"steps": 20, "every": 10, "env": None}
    train_members([small_job("bve", plan)], [rbve.load(store)], [tmp_path / "run"])
    silent = "gymnasium:Silent-v0"
    with pytest.raises(ValueError, match="--legal all"):
        follow(tmp_path, FollowPlan(silent, 2), once=True)
    follow(tmp_path, FollowPlan(silent, 2, legal="all"), once=True)
    evaluated = rows.read(tmp_path / "run" / rows.EVALUATION).facts["evaluated"]
    assert evaluated["legal"] == "all"
    (tmp_path / "run" / rows.EVALUATION).unlink()
    follow(tmp_path, FollowPlan("gymnasium:Doors-v0", 2), once=True)
    found = rows.read(tmp_path / "run" / rows.EVALUATION)
    assert found.last("final/return") == STEPS
    assert "legal" not in found.facts["evaluated"]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Forgets, "Forgets: step 3 has no action_mask in its info and the reset had one"),
        (Remembers, "Remembers: step 2 has an action_mask in its info and the reset had none"),
        (Shut, "Shut: the action_mask of step 3 allows no action"),
    ],
)
def test_masks_at_some_steps_only(kind: type[Doors], words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=words):
        rbve.record(kind(), tmp_path / "data", 2, policy="uniform")


def test_the_last_step_needs_no_mask(tmp_path: Path) -> None:
    data = rbve.record(AllButTheLast(), tmp_path / "data", 2, policy="uniform")
    assert data.legal is not None
    assert data.legal.sum(axis=1).tolist() == [2, 2, 2, 2, 2, 3] * 2


# Functions and objects


def test_functions_as_policies() -> None:
    found = rbve.evaluate(first_open, Doors(), episodes=4)
    assert (found["return"], found["episode_length"]) == (5, 5)
    assert found["legal_actions"] == "from the environment"
    assert "action_gap" not in found  # a function claims no values
    assert rbve.evaluate(lambda obs: 0, Silent(), 4, epsilon=0)["return"] == 3 * 1 - 2 * 10
    assert rbve.evaluate(lambda obs: "1", Silent(), 4, epsilon=0)["return"] == 3 * 1 - 2 * 10
    assert rbve.evaluate(lambda o, mask: first_open(o, mask), Doors(), 2)["return"] == 5
    assert rbve.evaluate(lambda o, strict=1: np.array(0), Silent(), 2, 0.0)["return"] == -17


def test_functions_inside_jax() -> None:
    """A player that goes under the ball catches it."""

    def catcher(observation: np.ndarray) -> int:
        ball = observation[:-1].any(axis=0).argmax()
        paddle = observation[-1].argmax()
        return int(np.sign(ball - paddle)) + 1

    assert rbve.evaluate(catcher, "catch", 30, epsilon=0)["return"] == 1
    assert rbve.evaluate(catcher, envs.load("catch"), 30, epsilon=0)["return"] == 1
    noisy = rbve.evaluate(catcher, "catch", 100, epsilon=0, noise=0.9)
    assert noisy["return"] < 0.8


def test_stepped_environments_are_those_inside_jax() -> None:
    world = envs.load("catch")
    assert isinstance(world, Env)
    rng = np.random.default_rng(0)
    stepped = rbve.evaluate(lambda obs: int(rng.integers(3)), "catch", 400, epsilon=0)["return"]
    inside = random_returns(world, 1000, 0)
    assert abs(stepped - inside.mean()) < 4 * inside.std() / 20
    one, two = Stepped(world), Stepped(world)
    np.testing.assert_array_equal(one.reset(3), two.reset(3))
    assert one.legal is None
    for action in (0, 2, 1):
        (obs, *rest), (other, *again) = one.step(action), two.step(action)
        np.testing.assert_array_equal(obs, other)
        assert rest == again
        assert one.executed == action


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda obs: 7, r"an action is an id in \[0, 2\] or a name \(0, 1, 2\); got 7"),
        (lambda obs: (1, None), r"got \(1, None\)"),
        (lambda obs: 0.5, "got 0.5"),
        (lambda obs: "go", "unknown action 'go'"),
        (lambda obs: 0, r"chose action 0 where \[1, 2\] are legal; a function with a second"),
    ],
)
def test_functions_that_give_no_action(function: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        rbve.evaluate(function, Doors(), 2, epsilon=0)


def test_recording_a_function(tmp_path: Path) -> None:
    data = rbve.record(Doors(), tmp_path / "a", 6, policy=first_open, epsilon=0.2, noise=0.1)
    assert data.provenance["behaviour"] == "function"
    assert data.provenance["env"] is None
    assert data.propensity is None
    assert data.legal is not None
    assert data.num_episodes == 6
    inside = rbve.record("catch", tmp_path / "b", 6, policy=lambda obs: 1)
    assert set(inside.action.tolist()) == {1, -1}
    assert inside.provenance["env"] == "catch"


def test_objects_of_this_package(policy: Policy, tmp_path: Path) -> None:
    host: HostEnv = GymnasiumEnv("mine", Doors())
    assert rbve.evaluate(policy, host, 3)["return"] == STEPS
    host.reset(0)  # still open
    data = rbve.record(envs.load("catch"), tmp_path / "data", 3, policy="uniform")
    assert data.num_episodes == 3


def test_what_is_no_environment(policy: Policy, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"an environment is a name such as 'catch'.*got dict"):
        rbve.evaluate(policy, {"env": 1})
    for agent in ("online", "r2d2", "script"):
        with pytest.raises(ValueError, match=f"'{agent}' plays environments by name"):
            rbve.record(Doors(), tmp_path / "data", 3, policy=agent)


# Folders


def test_the_policy_of_a_folder(store: Path, tmp_path: Path) -> None:
    rbve.train(store, "bc", steps=20, spec={"hidden": (8,)}, out=tmp_path / "runs")
    (folder,) = (tmp_path / "runs").glob("bc-*")
    assert Policy.load(folder).actions == Policy.load(folder / POLICY).actions
    shown = run("evaluate", folder, "--env", "gymnasium:Doors-v0", "--episodes", 2)
    assert shown.code == 0, shown.err
    assert POLICY in shown.out.replace("\n", "")
    (tmp_path / "empty").mkdir()
    for path, words in (
        (tmp_path / "runs", f"is a folder; give the file of one policy, such as {folder / POLICY}"),
        (tmp_path / "empty", f"is a folder; give the file of one policy (no {POLICY} is below it)"),
    ):
        refused = run("evaluate", path, "--env", "gymnasium:Doors-v0")
        assert (refused.code, refused.err.count("\n")) == (2, 1)
        assert words in refused.err
