"""What flows through the pipeline: a batch of logged decisions, and networks' outputs for it.

Arrays lead with (B,), one entry per item of a batch. Steps of sequences come flattened, time before
batch, so that most losses need not know; `Batch.in_time` gives them their two axes back.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax

Array = jax.Array
Tree = Any  # nested containers of arrays


class Batch(NamedTuple):
    """Logged decisions, ready for a loss. `A` is the number of actions."""

    action: Array  # (B,) int32, the action the log holds
    reward: Array  # (B,) summed over the n-step window
    discount: Array  # (B,) γ^k up to the bootstrap state, 0 after termination
    next_action: Array  # (B,) int32, logged at the bootstrap state; 0 where there is none
    has_next_action: Array  # (B,) bool
    g: Array  # (B,) V̂, the discounted reward-to-go of the whole episode; NaN where not known
    g_scale: Array  # () deviation of g over the rows trained on; 0 if g is constant
    weight: Array  # (B,) 0 = padding
    legal: Array | None = None  # (B, A) bool, None = every action is legal
    next_legal: Array | None = None  # (B, A) bool
    next_policy: Array | None = None  # (B, A) π(· | s') of the policy that is evaluated; else None
    # Sequences only: (T, N) bool for N sequences of T steps, B = T · N: the step after this one is
    # the next decision of the same episode and is trained on too.
    follows: Array | None = None

    def in_time(self, values: Array) -> Array:
        """Values (B, ...) of a batch of sequences as (T, N, ...), in time order.

        Raises:
            ValueError: For a batch of transitions, which have no order.
        """
        if self.follows is None:
            raise ValueError(
                "this loss needs steps in time order, and a batch of transitions has none; train "
                "with a memory, such as --memory 64"
            )
        return values.reshape(*self.follows.shape, *values.shape[1:])


class Head(NamedTuple):
    """A network's outputs for one state."""

    q: Array  # (B, A) the mean over parts
    ranked: Array  # (B, A) what the ranking term compares: q, or Q̂ where Q = α·Q̂
    parts: Array | None = None  # (B, K, A) ensemble members or quantile samples
    taus: Array | None = None  # (B, K) quantile levels of the parts
    logits: Array | None = None  # (B, A) behaviour policy
    mix: Callable[[Array], Array] | None = None  # α (K,) to Σ α_k parts_k (B, A), parts unformed
    extra: dict[str, Array] | None = None  # (B, ...) further outputs of an algorithm's own heads


class Views(NamedTuple):
    """Networks' outputs that a loss may read. Batches build them; losses never call networks."""

    now: Head  # online network at s; gradients flow here
    next: Head  # online network at the bootstrap state, no gradient
    target: Head  # target network at the bootstrap state, no gradient
    target_at_s: Callable[[], Head] | None = None  # read it as `target_now`

    @property
    def target_now(self) -> Head:
        """Target network at s, no gradient. It is computed only where a loss reads it."""
        if self.target_at_s is None:
            raise ValueError("these views hold no target network at s")
        return self.target_at_s()


@dataclass(frozen=True)
class Tower:
    """In an algorithm's HEAD: a head on a torso, and where there is one a memory, of its own."""

    head: Any  # a head's name, or its class
