"""The check of what an algorithm's loss returns."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rbve.types import Array


def checked_loss(
    name: str, returned: Any, items: tuple[int, ...]
) -> tuple[Array, dict[str, Array]]:
    """The loss of algorithm `name`: one value per item, and metrics of as many values or of one.

    Checked while the program is traced: a mean, for example, would train too, with other weights.

    Raises:
        ValueError: For any other shape or type.
    """
    needed = f"the loss of {name} needs to return (loss, metrics): "
    if not isinstance(returned, tuple) or len(returned) != 2 or not isinstance(returned[1], dict):
        raise ValueError(
            f"{needed}an array and a dict of arrays; it returned {_described(returned)}"
        )
    loss, metrics = returned
    if jnp.shape(loss) != items or not jnp.issubdtype(jnp.result_type(loss), jnp.floating):
        raise ValueError(
            f"{needed}the loss holds one number per item, floats of shape {items}; it returned "
            f"{_described(loss)}"
        )
    for metric, value in metrics.items():
        if jnp.shape(value) not in (items, (1,), ()):
            raise ValueError(
                f"{needed}metrics hold one number per item, shape {items}, or a single one; "
                f"{metric!r} is {_described(value)}"
            )
    return loss, metrics


def _described(value: Any) -> str:
    if isinstance(value, jax.Array | np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    if isinstance(value, tuple):
        return f"a tuple of {len(value)} ({', '.join(map(_described, value))})"
    return f"a {type(value).__name__}"
