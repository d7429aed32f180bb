"""`rbve evaluate`."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from rbve.cli import _console
from rbve.cli._arguments import AlgorithmFile, EnvName, Json, Legal, find_modules_here


def command(
    policy: Positional[Annotated[Path, arg(metavar="POLICY")]],
    /,
    env: EnvName,
    episodes: int = 100,
    epsilon: float = 0.4**8,
    gamma: float | None = None,
    noise: float = 0.0,
    seed: int = 0,
    algorithm: AlgorithmFile = None,
    legal: Legal = None,
    as_json: Json = False,
) -> None:
    """Evaluate a saved policy in an environment: its mean return, with a 95% interval, and more.

    Args:
        policy: File of a saved policy, as `rbve train` names them at its end, or its run's folder.
        episodes: Episodes to play.
        epsilon: Share of random actions (the paper's 0.4^8).
        gamma: Discount for the value figures. Default: the one it was trained with.
        noise: Probability that the environment executes a random action instead.
        seed: Seed of the episodes.
    """
    from rbve import api
    from rbve.policy.file import policy_file

    find_modules_here(env)
    policy = policy_file(policy)
    figures = api.evaluate(policy, env, episodes, epsilon, gamma, noise, seed, algorithm, legal)
    if as_json:  # which has no NaN
        figures = {name: None if value != value else value for name, value in figures.items()}
    _console.show_figures(f"{policy} in {env}", figures, as_json)
