"""What flows through the pipeline: a batch of logged decisions and what networks say about it.

Arrays lead with (B,). Sequences come flattened, time before batch, so that losses never look.
"""

from __future__ import annotations

from collections.abc import Callable
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


class Head(NamedTuple):
    """What a network says about one state."""

    q: Array  # (B, A) the mean over parts
    ranked: Array  # (B, A) what the ranking term compares: q, or Q̂ where Q = α·Q̂
    parts: Array | None = None  # (B, K, A) ensemble members or quantile samples
    taus: Array | None = None  # (B, K) quantile levels of the parts
    logits: Array | None = None  # (B, A) behaviour policy
    mix: Callable[[Array], Array] | None = None  # α (K,) to Σ α_k parts_k (B, A), parts unformed


class Views(NamedTuple):
    """The heads a loss may read. Built in one place, which alone knows networks."""

    now: Head  # online network at s; gradients flow here
    next: Head  # online network at the bootstrap state, no gradient
    target: Head  # target network at the bootstrap state, no gradient
