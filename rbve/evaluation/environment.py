"""Opening environments, inside JAX or vectorised outside it, and who says what is legal there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from rbve import envs
from rbve.envs._objects import Stepped, adopt
from rbve.envs.base import Env
from rbve.evaluation.vector import WIDTH, VectorEnv, open_vector
from rbve.policy.legal import ALL

REMEDY = "if all of them are, say so with --legal all (legal='all')"


@contextmanager
def open_environment(
    env: Any, noise: float = 0.0, episodes: int = WIDTH, on_host: bool = False
) -> Iterator[Env | VectorEnv]:
    """An environment by name, or as an object, which stays open.

    Args:
        env: A name, a Gymnasium environment, or one of rbve.envs.load.
        noise: Probability that it executes a random action.
        episodes: How many will be played, so that no more environments are made.
        on_host: Outside JAX, whatever it is.
    """
    if isinstance(env, str):
        made = envs.load(env, noise)
        if not isinstance(made, Env):
            with closing(open_vector(env, noise, min(episodes, WIDTH), made)) as several:
                yield several
            return
    else:
        made = adopt(env, noise)
    if not isinstance(made, Env):
        yield VectorEnv([made])
    elif on_host:
        yield VectorEnv([Stepped(made) for _ in range(min(episodes, WIDTH))])
    else:
        yield made


def check_legal(
    env: Env | VectorEnv, masked: bool, legal: str | None, remedy: str = REMEDY
) -> None:
    """Whether an environment tells a policy of masked data which actions are legal.

    `legal` is "all" where a user says that all of them are. A VectorEnv is reset.
    """
    if legal not in (None, ALL):
        raise ValueError(f"legal is 'all', or left to the environment; got {legal!r}")
    if not masked and legal is None:
        return
    if isinstance(env, VectorEnv):
        env.reset({0: 0})
    if legal is None and env.legal is None:
        raise ValueError(
            f"the policy's data says which actions are legal, and {env.name} does not; {remedy}"
        )
    if legal is not None and env.legal is not None:
        raise ValueError(f"{env.name} says which actions are legal; leave legal out")


def legal_source(env: Env | VectorEnv, masked: bool) -> str | None:
    """Who said which actions are legal, of an environment that was played."""
    if env.legal is not None:
        return "from the environment"
    return ALL if masked else None
