"""From a description to a network."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from rbve.networks import heads
from rbve.networks.conv import Image
from rbve.networks.layers import MLP
from rbve.networks.recurrent import LSTM, Recurrent
from rbve.networks.torsos import PLANS, hidden_for, torso_for
from rbve.types import Array, Head

HEADS: dict[str, type[eqx.Module]] = {
    "q": heads.Q,
    "policy": heads.Policy,
    "ensemble": heads.Ensemble,
    "quantile": heads.Quantile,
}


class Network(eqx.Module):
    """Observations (B, ...) to a Head. Torsos take bytes for pixels, from 0 to 1."""

    torso: MLP | Image
    head: eqx.Module
    behaviour: (
        tuple[MLP | Image, heads.Policy] | None
    )  # a tower of its own, as public discrete BCQ has

    def __call__(self, obs: Array, key: Array) -> Head:
        x = jnp.moveaxis(obs, 0, -1)
        head: Head = self.head(self.torso(x), key)  # type: ignore[operator]
        if self.behaviour is None:
            return head
        torso, policy = self.behaviour
        return head._replace(logits=policy(torso(x), key).logits)


def build(
    obs_shape: Sequence[int],
    actions: int,
    head: str,
    options: Any,
    hidden: Sequence[int],
    key: Array,
    torso: str = "auto",
    memory: int = 0,
) -> Any:
    """A network with the head an algorithm needs; all weights depend on `key`.

    With `memory` units it is a Recurrent, else a Network.
    """
    torso = torso_for(torso, obs_shape)
    hidden = hidden_for(torso, hidden, memory)
    kind = "q" if head == "q_policy" else head
    if kind not in HEADS:
        raise ValueError(f"unknown head {head!r}; use q_policy, {', '.join(HEADS)}")
    if memory and head == "q_policy":
        raise ValueError(
            "a network with memory has no second tower for the behaviour policy (bcq); choose "
            "another algorithm, or memory 0"
        )
    key_torso, key_head, key_behaviour, key_logits = jax.random.split(key, 4)

    def new_torso(key: Array) -> MLP | Image:
        if torso in PLANS:
            return Image(obs_shape, PLANS[torso], hidden, key)
        return MLP(math.prod(obs_shape), hidden, key)

    def new_head(make: type[eqx.Module], features: int, **more: int) -> eqx.Module:
        wanted = inspect.signature(make.__init__).parameters
        chosen = {k: v for k, v in dataclasses.asdict(options).items() if k in wanted}
        return make(features, actions, key_head, **more, **chosen)

    if memory:
        # The keys of the tower it lacks serve the memory.
        made = new_torso(key_torso)
        return Recurrent(
            torso=made,
            lstm=LSTM(made.outputs + actions + 1, memory, key_behaviour),
            head=(
                new_head(heads.Dueling, memory, width=memory)
                if kind == "q"
                else new_head(HEADS[kind], memory)
            ),
            actions=actions,
            units=memory,
        )
    return Network(
        torso=new_torso(key_torso),
        head=new_head(HEADS[kind], hidden[-1]),
        behaviour=(
            (new_torso(key_behaviour), heads.Policy(hidden[-1], actions, key_logits))
            if head == "q_policy"
            else None
        ),
    )


def flattened(new_network: Callable[[Array], Any]) -> tuple[int, Callable[[Array], Any]]:
    """How many weights it makes of a key, and what turns a vector of as many into such a network.

    Nothing is drawn, nor compiled: only shapes are looked at.
    """
    unravel: list[Callable[[Array], Any]] = []

    def ravelled(key: Array) -> Array:
        vector, back = ravel_pytree(new_network(key))
        unravel.append(back)
        return vector

    return jax.eval_shape(ravelled, jax.random.key(0)).size, unravel[0]
