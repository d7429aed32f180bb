"""Returns of random play and of the best player known on levels that show little at a time.

python tools/level_returns.py [--level NAME] [--episodes 1000] [--seed 0]

Prints the table at the end of docs/environments.md: mean ± standard error over the episodes.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from level_players import Way, collector, rememberer, seeker

from rbve import backend, envs
from rbve.behaviours import scripts
from rbve.envs.base import Env, HostEnv
from rbve.evaluation import vector
from rbve.evaluation.actors import ScriptActor, UniformActor
from rbve.evaluation.rollout import random_returns

Player = Callable[[Any], Way]
PLAYERS: dict[str, Player] = {
    "collect:many": collector,
    "collect:few": collector,
    "collect:rare": collector,
    "collect:crowded": collector,
    "xminigrid:MiniGrid-MemoryS8": rememberer,
    "xminigrid:MiniGrid-FourRooms": seeker,
    "xminigrid:MiniGrid-DoorKey-5x5": seeker,
}
DOOM = "vizdoom:basic"


def play(env: Env, player: Player, episodes: int, seed: int) -> np.ndarray:
    reset, step = jax.jit(env.reset), jax.jit(env.step)
    returns = np.zeros(episodes)
    for episode, key in enumerate(jax.random.split(jax.random.key(seed), episodes)):
        key_start, *keys = jax.random.split(key, 1 + env.max_steps)
        state, _ = reset(key_start)
        way: Way = ()
        for key_step in keys:
            way = way or player(state)
            if not way:
                raise ValueError(f"{env.name}: the player finds no way in episode {episode}")
            state, outcome = step(state, env.actions.index(way[0]), key_step)
            way = way[1:]
            returns[episode] += float(outcome.reward)
            if outcome.terminated or outcome.truncated:
                break
    return returns


def play_randomly(name: str, episodes: int, seed: int) -> np.ndarray:
    env = envs.load(name)
    if isinstance(env, Env):
        return random_returns(env, episodes, seed)
    return play_on_host(env, UniformActor(), episodes, 1.0, seed)


def best_play(name: str, episodes: int, seed: int) -> np.ndarray:
    env = envs.load(name)
    if isinstance(env, Env):
        return play(env, PLAYERS[name], episodes, seed)
    return play_on_host(env, ScriptActor(scripts.load(name)), episodes, 0.0, seed)


def play_on_host(
    env: HostEnv, player: vector.HostActor, episodes: int, epsilon: float, seed: int
) -> np.ndarray:
    traces = vector.play(vector.VectorEnv([env]), player, episodes, epsilon, seed)
    returns = np.array([sum(trace.reward) for trace in traces])
    env.close()
    return returns


def figure(returns: np.ndarray) -> str:
    """Mean ± standard error, with two digits of the latter."""
    error = returns.std(ddof=1) / math.sqrt(len(returns))
    decimals = max(0, 1 - math.floor(math.log10(error))) if error > 0 else 3
    return f"{returns.mean():.{decimals}f} ± {error:.{decimals}f}".replace("-", "−")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--level", choices=[*PLAYERS, DOOM], action="append", help="repeatable")
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    if chosen.episodes < 2:
        parser.error("a standard error takes 2 episodes or more")
    backend.prepare()
    print("| | random | best here | episodes |\n|---|---|---|---|", flush=True)
    for name in chosen.level or [*PLAYERS, DOOM]:
        both = (player(name, chosen.episodes, chosen.seed) for player in (play_randomly, best_play))
        random, best = map(figure, both)
        print(f"| `{name}` | {random} | {best} | {chosen.episodes} each |", flush=True)


if __name__ == "__main__":
    main()
