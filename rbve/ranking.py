"""Ranking regularisation (arXiv:2103.09575, section 3.2), a term any value algorithm can add.

    C(s, a) = w(s) · Σ_{i≠a} max(Q(s, a_i) − Q(s, a) + ν, 0)²
    w(s)    = exp((V̂(s) − E[V̂]) / β)

E is the mini-batch mean and w carries no gradient. The exponent is cut before exp, since raw
returns overflow float32. With `normalise="dataset"` V̂ is divided by its deviation over the rows
trained on; with "none" the paper's raw formula stands, under the cap.
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from rbve import ops
from rbve.types import Array, Batch, Head


class Config(NamedTuple):
    lam: float = 0.005  # λ, strength (paper: .005; grid .005 .01 .05 .1 1)
    nu: float = 0.05  # ν, margin of the hinge (paper: .05; DMLab grid .05 .5)
    beta: float = 0.5  # β, temperature of the weight (paper: .5)
    cap: float = 20.0  # largest weight (ours; the paper states none)


@dataclass(frozen=True)
class Options:
    filter: Literal["exponential", "none", "binary", "advantage"] = "exponential"  # form of w(s)
    normalise: Literal["dataset", "none"] = "dataset"  # scale of V̂ inside w (none = paper)
    form: Literal["hinge2", "softplus", "listwise"] = "hinge2"  # form of the ranking loss
    bounded: bool = False  # Q = α·tanh(Q̂), and the ranking acts on Q̂


def penalty(
    head: Head,
    batch: Batch,
    config: Any,
    options: Options,
    td: ops.TD = ops.TD(),  # noqa: B008  immutable
) -> tuple[Array, dict[str, Array]]:
    """One value per item, λ included, and the metrics of the term. `config` is any with the numbers
    of Config, here and below."""
    weight = success_weight(td.value(head.q), batch, config, options)
    violation = _disorder(head.ranked, batch, config.nu, options.form)
    value = config.lam * weight * violation
    metrics = {
        "rank_loss": value,
        "weight_clipped": (weight >= config.cap).astype(value.dtype),
        "weight_ess": jnp.broadcast_to(effective_share(weight, batch.weight), value.shape),
    }
    return value, metrics


def _disorder(q: Array, batch: Batch, nu: float, form: str) -> Array:
    """How far actions the data did not take stand above (action taken − margin)."""
    taken = ops.one_hot(batch.action, q.shape[-1])
    others = ~taken if batch.legal is None else batch.legal & ~taken
    lead = q - ops.select(q, batch.action)[..., None]
    if form == "listwise":
        return listwise(q, batch)
    if form == "softplus":
        each = jax.nn.softplus(jnp.where(others, lead, 0.0))
    elif form == "hinge2":
        each = ops.square(jnp.maximum(jnp.where(others, lead + nu, 0.0), 0.0))
    else:
        raise ValueError(f"unknown ranking form {form!r}; use hinge2, softplus or listwise")
    return jnp.sum(jnp.where(others, each, 0.0), axis=-1)


def listwise(q: Array, batch: Batch) -> Array:
    """−log π(a|s), π(a_t|s) = Π_{i≠t} σ(Q_t − Q_i) / Z (the paper's appendix on ranking)."""
    legal = jnp.ones(q.shape, bool) if batch.legal is None else batch.legal
    pairs = legal[..., None, :] & ~jnp.eye(q.shape[-1], dtype=bool)
    lead = jnp.where(pairs, q[..., :, None] - q[..., None, :], 0.0)
    log_wins = jnp.sum(jnp.where(pairs, jax.nn.log_sigmoid(lead), 0.0), axis=-1)
    return -ops.select(jax.nn.log_softmax(ops.mask(log_wins, batch.legal), -1), batch.action)


def success_weight(q: Array, batch: Batch, config: Any, options: Options) -> Array:
    """w(s), at most `cap`, and 1 where V̂ is not known; `q` in the units of V̂."""
    if options.filter == "none":
        return jnp.ones_like(batch.g)
    known = ~jnp.isnan(batch.g)
    g = jnp.where(known, batch.g, 0.0)
    if options.filter == "advantage":
        legal = jnp.ones_like(q) if batch.legal is None else batch.legal
        baseline = jnp.sum(jnp.where(legal, q, 0.0), -1) / jnp.sum(legal, -1)
    else:
        counted = jnp.where(known, batch.weight, 0.0)
        baseline = jnp.sum(g * counted) / jnp.maximum(jnp.sum(counted), 1e-30)
    excess = jax.lax.stop_gradient(g - baseline)
    if options.filter == "binary":
        return jnp.where(known, (excess > 0).astype(g.dtype), 1.0)
    if options.filter not in ("exponential", "advantage"):
        raise ValueError(
            f"unknown filter {options.filter!r}; use exponential, none, binary or advantage"
        )
    if options.normalise == "dataset":
        # A constant V̂ has nothing to prefer: every weight is 1.
        excess = jnp.where(batch.g_scale > 0, excess / jnp.maximum(batch.g_scale, 1e-30), 0.0)
    elif options.normalise != "none":
        raise ValueError(f"unknown normalise {options.normalise!r}; use dataset or none")
    exponent, limit = excess / config.beta, jnp.log(config.cap)
    # exp(limit) may round to either side of the cap; what is cut weighs the cap exactly.
    weight = jnp.minimum(jnp.exp(jnp.minimum(exponent, limit)), config.cap)
    return jnp.where(known, jnp.where(exponent >= limit, config.cap, weight), 1.0)


def effective_share(weight: Array, valid: Array) -> Array:
    """(Σw)² / (n Σw²): 1 = all items count alike, 1/n = one item counts."""
    weight = weight * valid
    total = jnp.sum(weight)
    return total * total / jnp.maximum(jnp.sum(weight * weight) * jnp.sum(valid), 1e-30)
