"""Where somebody plays: an environment inside JAX, or lanes outside it; and what is legal there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from rbve import envs
from rbve.envs._objects import Stepped, adopt
from rbve.envs.base import Env, HostEnv
from rbve.evaluation.lanes import LANES, Lanes, open_lanes
from rbve.policy.legal import ALL

REMEDY = "if all of them are, say so with --legal all (legal='all')"


@contextmanager
def opened(
    env: Any, noise: float = 0.0, episodes: int = LANES, on_host: bool = False
) -> Iterator[Env | Lanes]:
    """An environment by name or as an object, which stays open.

    `on_host`: outside JAX, whatever it is.
    """
    if not isinstance(env, str):
        made = adopt(env, noise)
        yield lanes_of(made, episodes) if on_host or not isinstance(made, Env) else made
        return
    made = envs.load(env, noise)
    if isinstance(made, Env):
        yield lanes_of(made, episodes) if on_host else made
        return
    with closing(open_lanes(env, noise, min(episodes, LANES), made)) as lanes:
        yield lanes


def lanes_of(env: Env | HostEnv, episodes: int) -> Lanes:
    """Side by side, where more of it can be had."""
    if isinstance(env, Env):
        return Lanes([Stepped(env) for _ in range(min(episodes, LANES))])
    return Lanes([env])


def check_legal(env: Env | Lanes, masked: bool, legal: str | None, remedy: str = REMEDY) -> None:
    """Whether an environment tells a policy of masked data which actions are legal.

    `legal` is "all" where a user says that all of them are. Lanes are reset.
    """
    if legal not in (None, ALL):
        raise ValueError(f"legal is 'all', or left to the environment; got {legal!r}")
    if not masked and legal is None:
        return
    if isinstance(env, Lanes):
        env.reset({0: 0})
    if legal is None and env.legal is None:
        raise ValueError(
            f"the policy's data says which actions are legal, and {env.name} does not; {remedy}"
        )
    if legal is not None and env.legal is not None:
        raise ValueError(f"{env.name} says which actions are legal; leave legal out")


def legal_source(env: Env | Lanes, masked: bool) -> str | None:
    """Who said which actions are legal, of an environment that was played."""
    if env.legal is not None:
        return "from the environment"
    return ALL if masked else None
