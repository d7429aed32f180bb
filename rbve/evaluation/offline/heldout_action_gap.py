"""Action gap on held-out episodes: mean of best minus second best Q of a state; 0 where one action
alone is legal."""

import numpy as np

from rbve.evaluation.metric import HeldOut, Metric, mean

HELD_OUT = True
METRIC = Metric(
    "heldout_action_gap", "action gap", "held-out gap", "neither", values=True,
    nonnegative=True, order=83,
)  # fmt: skip


def evaluate(case: HeldOut) -> tuple[float, int]:
    import jax.numpy as jnp  # which reports do without

    from rbve import ops

    legal = None if case.legal is None else jnp.asarray(case.legal)
    return mean(np.asarray(ops.action_gap(jnp.asarray(case.q), legal)))
