"""Networks: a torso, with a memory where asked for, and heads."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from rbve import ops
from rbve.networks.conv import Image
from rbve.networks.heads import combined, listed_heads, make_head
from rbve.networks.recurrent import LSTM, Memory, Seen
from rbve.networks.torsos import hidden_for, load_torso, torso_for
from rbve.types import Array, Head, Tower, Tree

FRAMES_AT_ONCE = 256  # images whose convolutions are held in memory at a time
LARGE_IMAGE = 4096  # numbers of an observation; smaller ones take little memory, however many


class Network(eqx.Module):
    """Observations (B, ...) to a Head."""

    torso: Any
    head: Any
    further: tuple[tuple[Any, Any], ...]  # (torso of its own or None, head)

    def __call__(self, obs: Array, key: Array | None) -> Head:
        x = jnp.moveaxis(obs, 0, -1)
        further = (torso for torso, _ in self.further if torso is not None)
        return _outputs(self, (torso(x) for torso in (self.torso, *further)), key)


class Recurrent(eqx.Module):
    """Sequences to a Head of their steps, time and batch joined into one axis (T · B).

        [torso(o_t), one_hot(a_{t−1}), tanh(r_{t−1})] → LSTM → head

    Every tower has a torso and an LSTM; the hidden states of all towers stand below each other.
    """

    torso: Any
    lstm: LSTM
    head: Any
    further: tuple[tuple[Any, Any], ...]  # ((torso, LSTM) of its own or None, head)
    actions: int = eqx.field(static=True)
    units: int = eqx.field(static=True)

    @property
    def _towers(self) -> list[tuple[Any, LSTM]]:
        return [(self.torso, self.lstm), *(own for own, _ in self.further if own is not None)]

    def start(self, batch: int) -> Memory:
        return Memory.empty(self.units * len(self._towers), batch)

    def unroll(self, seen: Seen, memory: Memory) -> tuple[Array, Memory]:
        """Hidden states after every step (T, H, B), and the memory at the end."""
        steps, batch = seen.first.shape
        obs = seen.obs.reshape(steps * batch, *seen.obs.shape[2:])
        action = ops.one_hot(seen.last_action.reshape(-1), self.actions).T
        reward = jnp.tanh(seen.last_reward.reshape(1, -1))

        def run(torso: Any, lstm: LSTM, memory: Memory) -> tuple[Array, Memory]:
            x = _features(torso, obs)
            x = jnp.concatenate([x, action.astype(x.dtype), reward]).reshape(-1, steps, batch)
            return lstm(x, seen.first, memory)

        towers = self._towers
        if len(towers) == 1:
            return run(*towers[0], memory)
        memories = zip(*(_split(column, self.units) for column in memory), strict=True)
        runs = [run(*tower, Memory(*own)) for tower, own in zip(towers, memories, strict=True)]
        last = jax.tree.map(lambda *columns: jnp.concatenate(columns), *(own for _, own in runs))
        return jnp.concatenate([hidden for hidden, _ in runs], axis=1), last

    def heads(self, hidden: Array, key: Array | None) -> Head:
        """From hidden states (T, H, B) to a Head of T · B steps."""
        flat = jnp.moveaxis(hidden, 1, 0).reshape(hidden.shape[1], -1)
        towers = iter([flat] if len(self._towers) == 1 else _split(flat, self.units))
        return _outputs(self, towers, key)

    def __call__(self, seen: Seen, memory: Memory, key: Array | None) -> tuple[Head, Memory]:
        hidden, memory = self.unroll(seen, memory)
        return self.heads(hidden, key), memory


def _outputs(network: Network | Recurrent, towers: Iterator[Array], key: Array | None) -> Head:
    """From the features of each tower in turn; heads without one of their own take the first's.

    Without a key heads act: those that sample draw the same numbers for every row, every time.
    """
    acts = key is None
    key = jax.random.key(0) if key is None else key

    def said(head: Any, features: Array, key: Array) -> Any:
        return (getattr(head, "acting", head) if acts else head)(features, key)

    first = next(towers)
    outputs = [said(network.head, first, key)]
    for place, (own, head) in enumerate(network.further, 1):
        features = first if own is None else next(towers)
        outputs.append(said(head, features, jax.random.fold_in(key, place)))
    return combined(outputs)


def build(
    obs_shape: Sequence[int],
    actions: int,
    head: Any,
    options: Any,
    hidden: Sequence[int],
    key: Array,
    torso: str = "auto",
    memory: int = 0,
) -> Any:
    """A network with the heads an algorithm needs; all weights depend on `key`.

    Args:
        obs_shape: Of one observation.
        actions: How many there are.
        head: The algorithm's HEAD (rbve/networks/heads).
        options: The algorithm's Options, of which heads take what they know.
        hidden: Units per dense layer of the torso; none = the torso's own.
        key: Of the weights.
        torso: A name, or "auto" for the one that fits the shape.
        memory: Units of an LSTM, for a Recurrent; 0 = none, for a Network.
    """
    torso = torso_for(torso, obs_shape)
    hidden = hidden_for(torso, hidden, memory)
    key_torso, key_head, key_second, key_second_head = jax.random.split(key, 4)

    def tower(key: Array, key_lstm: Array) -> Any:
        made = load_torso(torso).make(obs_shape, hidden, key)
        lstm = LSTM(made.outputs + actions + 1, memory, key_lstm) if memory else None
        return made, lstm

    def new_head(kind: Any, features: int, key: Array) -> Any:
        return make_head(kind, features, actions, key, options, memory)

    first, *others = listed_heads(head)
    main = tower(key_torso, key_second)
    features = memory or main[0].outputs
    further = []
    for place, each in enumerate(others, 1):
        # The keys of a second tower serve the memory where there is one.
        keys = (key_second, key_second_head)
        if memory or place > 1:
            keys = tuple(jax.random.split(jax.random.fold_in(key, place)))
        own = isinstance(each, Tower)
        made = tower(keys[0], jax.random.fold_in(keys[0], 1)) if own else None
        further.append((made, new_head(each.head if own else each, features, keys[1])))
    main_head = new_head(first.head if isinstance(first, Tower) else first, features, key_head)
    if memory:
        return Recurrent(main[0], main[1], main_head, tuple(further), actions, memory)
    towers = tuple((made and made[0], each) for made, each in further)
    return Network(main[0], main_head, towers)


def flattened(new_network: Callable[[Array], Any]) -> tuple[int, Callable[[Array], Any]]:
    """The number of weights of a network, and the function from a vector of them to the network.
    Nothing is drawn or compiled: only shapes are traced."""
    unravel: list[Callable[[Array], Any]] = []

    def ravelled(key: Array) -> Array:
        vector, back = ravel_pytree(new_network(key))
        unravel.append(back)
        return vector

    return jax.eval_shape(ravelled, jax.random.key(0)).size, unravel[0]


def part_labels(network: Any) -> Tree:
    """A network with each array replaced by the name of its part, for optimisers by part.

    The names are torso, memory, head (the first) and, for further heads and their towers, the name
    of the head's class in lower case, such as policy.
    """

    def label(path: Any, _: Array) -> str:
        if path[0].name == "further":
            return type(network.further[path[1].idx][1]).__name__.lower()
        return "memory" if path[0].name == "lstm" else path[0].name

    return jax.tree_util.tree_map_with_path(label, network)


def _split(column: Array, units: int) -> list[Array]:
    return jnp.split(column, column.shape[0] // units)


def _features(torso: Any, obs: Array) -> Array:
    """(N, ...) to (F, N). Of large images a few at a time, and their convolutions are computed
    again for the gradient: those of a whole batch of episodes would not fit into memory."""
    large = isinstance(torso, Image) and math.prod(obs.shape[1:]) > LARGE_IMAGE
    if not large or len(obs) <= FRAMES_AT_ONCE:
        return torso(jnp.moveaxis(obs, 0, -1))
    parts = -(-len(obs) // FRAMES_AT_ONCE)
    padding = [(0, parts * FRAMES_AT_ONCE - len(obs)), *[(0, 0)] * (obs.ndim - 1)]
    frames = jnp.pad(obs, padding).reshape(parts, FRAMES_AT_ONCE, *obs.shape[1:])
    part = jax.checkpoint(lambda part: torso(jnp.moveaxis(part, 0, -1)))
    features = jax.lax.map(part, frames)  # (parts, F, FRAMES_AT_ONCE)
    return jnp.moveaxis(features, 0, 1).reshape(features.shape[1], -1)[:, : len(obs)]
