"""Recording into native stores, each complete episode on disk within seconds of its end."""

from __future__ import annotations

import dataclasses
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from rbve import envs, stopping
from rbve.behaviours import online_dqn, rollouts
from rbve.behaviours.learned import late_return
from rbve.behaviours.snapshots import SnapshotJudge
from rbve.data.dataset import NO_ACTION, Episode, sample_episodes
from rbve.data.formats.native import Writer, recording
from rbve.envs._atari_games import reference as atari_reference
from rbve.envs.base import Env
from rbve.evaluation.environment import check_legal, open_environment
from rbve.evaluation.fit import Interface, check_fit
from rbve.evaluation.rollout import random_return
from rbve.evaluation.vector import HostActor, VectorEnv
from rbve.policy import Policy
from rbve.training.update import recorder_key

SECONDS_PER_FLUSH = 2.0  # how much work a kill may cost, at most a few of these
EXPERT = "expert.safetensors"
NO_SHARE = "a share of the episodes can be kept where their number is given: episodes"

# Episodes an online agent records by default: the paper's numbers.
PAPER_EPISODES = {"cartpole": 1000, "catch": 2000, "mountain_car": 500}


class Progress(NamedTuple):
    episodes: int  # recorded so far
    last_return: float
    share: float  # of the recording that is done


OnProgress = Callable[[Progress], None]


def default_episodes(env_name: str) -> int:
    return PAPER_EPISODES.get(env_name.partition(":")[0], 1000)


def default_steps(env_name: str) -> int:
    """Environment steps an online agent records by default; 0 = it goes by episodes."""
    return online_dqn.preset(env_name).steps


def record_online(
    env_name: str,
    out: Path,
    episodes: int | None = None,
    noise: float = 0.0,
    seed: int = 0,
    keep: float = 1.0,
    overwrite: bool = False,
    options: online_dqn.Options | None = None,
    on_progress: OnProgress = lambda progress: None,
) -> None:
    """Everything an online DQN experiences while it learns; the best snapshot lies beside it.

    Without a number of episodes it ends after `options.steps` environment steps, and the episode
    that runs then is left out.
    """
    options = options or online_dqn.preset(env_name)
    total = options.steps if episodes is None else episodes
    if total < 1:
        raise ValueError(f"episodes must be at least 1; got {episodes}")
    env, quiet = inside_jax(env_name, noise)
    if episodes is None and keep != 1:
        raise ValueError(NO_SHARE)
    kept = None if episodes is None else sample_episodes(episodes, keep, seed)
    rows = rows_needed(env, episodes, options)
    about = provenance(env_name, "online dqn", noise, seed, episodes, keep, options)
    with recording(out, env.actions, about, overwrite, EXPERT) as writer:
        agent = online_dqn.make_agent(env, rows, options)
        advance = jax.jit(agent.advance, donate_argnums=0)
        judge = SnapshotJudge(quiet, agent.unravel, options.gamma, seed, hidden=options.hidden)
        state = jax.jit(agent.init)(recorder_key(seed))
        returns: list[float] = []
        reached, row, blocks = 0, 0, 64
        while reached < total:
            stopping.check()
            goal = min(total, judge.next_look(total))
            limit = {"steps" if episodes is None else "episodes": goal}
            started = time.monotonic()
            state = advance(state, online_dqn.Limits(blocks, copied=row, **limit))
            at_most = None if episodes is None else episodes - len(returns)
            fresh, row = take_episodes(state.buffer, row, int(state.row), at_most)
            blocks = paced(blocks, time.monotonic() - started)
            writer.append([e for k, e in enumerate(fresh, len(returns)) if kept is None or kept[k]])
            returns += [float(each.reward.sum(dtype=np.float64)) for each in fresh]
            reached = int(state.steps if episodes is None else state.episodes)
            if reached >= goal:
                judge.look(state.params)
            if fresh:
                on_progress(Progress(len(returns), returns[-1], min(reached / total, 1.0)))
        need_episode(writer, f"{total} steps")
        finish_online(writer, judge, quiet, returns)


def need_episode(writer: Writer, within: str) -> None:
    """Of an online recording at its end: an empty store would be in the next one's way."""
    if writer.manifest["episodes"]:
        return
    shutil.rmtree(writer.path)
    raise ValueError(
        f"{writer.manifest['provenance']['env']}: no episode ended within {within}, so nothing was "
        "recorded; give more --steps"
    )


def finish_online(
    writer: Writer, judge: SnapshotJudge, quiet: Env, returns: Sequence[float]
) -> None:
    """The best snapshot beside the data, and the returns that scores are normalised by."""
    online, params = judge.verdict()
    judge.policy(params, online).save(writer.path / EXPERT)
    writer.manifest["provenance"] |= {
        "reference": {"online": online, "random": random_return(quiet)},
        "late_return": late_return(returns),
    }
    writer.finish()


def inside_jax(env_name: str, noise: float) -> tuple[Env, Env]:
    """The environment with its noise, and without."""
    env, quiet = envs.load(env_name, noise), envs.load(env_name)
    if not isinstance(env, Env) or not isinstance(quiet, Env):
        raise ValueError(
            f"this online agent runs inside JAX and {env_name} does not; record it with "
            "--preset rlu-atari (an online DQN without memory), --policy uniform, --policy FILE "
            "or, where one plays it, --policy script"
        )
    return env, quiet


def provenance(
    env_name: str,
    behaviour: str,
    noise: float,
    seed: int,
    episodes: int | None,
    keep: float,
    options: Any,
) -> dict[str, Any]:
    """Of data that an agent recorded while it learned."""
    return {
        "env": env_name,
        "behaviour": behaviour,
        "noise": noise,
        "seed": seed,
        "recorded_episodes": episodes,
        "keep": keep,
        "agent": dataclasses.asdict(options),
    }


def rows_needed(env: Env, episodes: int | None, options: online_dqn.Options) -> int:
    """Rows of a buffer that holds everything, or what the agent learns from."""
    margin = 4 * options.steps_per_update
    if not options.replay:
        most = 2 * options.steps if episodes is None else episodes * (env.max_steps + 1)
        return most + margin
    if options.replay < env.max_steps + margin:
        raise ValueError(
            f"a replay of {options.replay} rows does not hold an episode of {env.max_steps} steps; "
            f"give at least {env.max_steps + margin}"
        )
    return options.replay


def paced(blocks: int, seconds: float) -> int:
    """Chunk length for the next call; chunks never change what is recorded."""
    return int(np.clip(blocks * SECONDS_PER_FLUSH / max(seconds, 1e-3), blocks / 2, blocks * 2)) + 1


def take_episodes(
    buffer: online_dqn.Buffer, first: int, row: int, at_most: int | None = None
) -> tuple[list[Episode], int]:
    """Complete episodes from row `first` on, and where the next one starts."""
    place = np.arange(first, row) % online_dqn.places(buffer)
    columns = {
        name: np.asarray(column)[place]
        for name, column in buffer._asdict().items()
        if column is not None
    }
    taken, start = [], 0
    for last in np.flatnonzero(columns["ended"])[:at_most]:
        steps = slice(start, last + 1)
        taken.append(
            Episode(
                obs=columns["obs"][start : last + 2],
                action=np.append(columns["action"][steps], NO_ACTION),
                reward=np.append(columns["reward"][steps], np.float32(0)),
                terminated=bool(columns["terminated"][last]),
                executed=np.append(columns["executed"][steps], NO_ACTION),
                legal=columns["legal"][start : last + 2] if "legal" in columns else None,
            )
        )
        start = last + 2
    return taken, first + start


def record_policy(
    env: Any,
    out: Path,
    policy: Policy | HostActor | Callable[..., Any] | None,
    episodes: int,
    epsilon: float = 0.0,
    noise: float = 0.0,
    seed: int = 0,
    keep: float = 1.0,
    overwrite: bool = False,
    on_progress: OnProgress = lambda progress: None,
    reference: Mapping[str, float] | None = None,
    legal: str | None = None,
) -> None:
    """Episodes of a policy, a script or a function with a share of random actions; None = uniform.

    `env` is a name or an environment. `reference` holds the returns that scores are normalised by,
    where they are known. `legal` is what rbve.evaluate takes.
    """
    if episodes < 1:
        raise ValueError(f"episodes must be at least 1; got {episodes}")
    if not 0 <= epsilon <= 1:
        raise ValueError(f"epsilon must lie in [0, 1]; got {epsilon}")
    # An object is not named: another of that name need not be like it.
    name = env if isinstance(env, str) else None
    reference = reference or atari_reference(name)
    chosen = sample_episodes(episodes, keep, seed)
    about = {
        "env": name,
        "behaviour": behaviour(policy),
        "policy": dict(policy.info) if isinstance(policy, Policy) else None,
        "epsilon": epsilon,
        "noise": noise,
        "seed": seed,
        "recorded_episodes": episodes,
        "keep": keep,
        **({} if reference is None else {"reference": dict(reference)}),
    }
    done = 0
    with open_environment(env, noise, episodes, on_host=callable(policy)) as world:
        check_player(world, policy, legal)
        with recording(out, world.actions, about, overwrite, EXPERT) as writer:
            for fresh in episode_stream(world, policy, episodes, epsilon, seed):
                stopping.check()
                writer.append([e for k, e in enumerate(fresh) if chosen[done + k]])
                done += len(fresh)
                on_progress(Progress(done, float(fresh[-1].reward.sum()), done / episodes))
            writer.finish()


def behaviour(policy: Any) -> str:
    if policy is None:
        return "uniform"
    if isinstance(policy, Policy):
        return "policy"
    return "function" if callable(policy) else "script"


def check_player(world: Env | VectorEnv, policy: Any, legal: str | None) -> None:
    if isinstance(policy, Policy):
        check_fit(world, Interface.of_policy(policy))
    elif isinstance(world, Env) and policy is not None:
        raise ValueError(f"{world.name} runs inside JAX, where scripts do not play")
    check_legal(world, isinstance(policy, Policy) and policy.masked, legal)


def episode_stream(
    world: Env | VectorEnv,
    policy: Any,
    episodes: int,
    epsilon: float,
    seed: int,
) -> Iterator[Sequence[Episode]]:
    if not isinstance(world, Env):
        return rollouts.on_host(world, policy, episodes, epsilon, seed)
    return rollouts.inside_jax(world, policy, episodes, epsilon, seed)
