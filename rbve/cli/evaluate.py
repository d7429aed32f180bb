"""`rbve evaluate`."""

import json
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
    from rich.table import Table
    from rich.text import Text

    from rbve import api
    from rbve.runtime.saved import policy_file

    find_modules_here(env)
    policy = policy_file(policy)
    figures = api.evaluate(policy, env, episodes, epsilon, gamma, noise, seed, algorithm, legal)
    if as_json:  # which has no NaN
        print(json.dumps({name: None if v != v else v for name, v in figures.items()}))
        return
    table = Table("measure", title=f"{policy} in {env}", title_justify="left")
    table.add_column("value", justify="right")
    interval, played = figures.pop("return_interval", None), figures.pop("episodes", None)
    for name, value in figures.items():
        words = _console.shown(value)
        if name == "return" and interval is not None:
            low, high = map(_console.shown, interval)
            words += f" [{low}, {high}] (95%, over {played:,} episodes)"
        table.add_row(name.replace("_", " "), Text(words))
    _console.output().print(table)
