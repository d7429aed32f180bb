"""Layers on (features, B) arrays.

The batch is the minor axis: on CPU the matrix products and everything between them run along it,
which is 1.3 to 1.6 times as fast as a vmapped layer at batch 128.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp

from rbve import backend
from rbve.types import Array

_LARGE = 2**16  # weights of a layer; smaller ones stay in the nearest cache


def truncated_normal(key: Array, shape: Sequence[int], inputs: int) -> Array:
    """Weights of deviation 1/√inputs, none beyond two deviations, as Haiku and Sonnet start."""
    unit = jax.random.truncated_normal(key, -2.0, 2.0, tuple(shape))
    return unit / 0.87962566 / jnp.sqrt(float(inputs))


def unit(x: Array) -> Array:
    """Floats: bytes are pixels, 0 to 255 becomes 0 to 1; other numbers keep their value."""
    if x.dtype == jnp.uint8:
        return x.astype(jnp.float32) / 255.0
    return x.astype(jnp.result_type(x, jnp.float32))


class Linear(eqx.Module):
    weight: Array  # (out, in)
    bias: Array  # (out,)

    def __init__(self, inputs: int, outputs: int, key: Array) -> None:
        self.weight = truncated_normal(key, (outputs, inputs), inputs)
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: Array) -> Array:
        written_out = self.weight.size >= _LARGE and backend.platform() == "cpu"
        multiply = large_product if written_out else jnp.matmul
        return multiply(self.weight, x) + self.bias[:, None]


@jax.custom_vjp
def large_product(weight: Array, x: Array) -> Array:
    """weight (out, in) @ x (in, B), whose gradient takes less time on CPU.

    The gradient of x is Wᵀ p. The compiler's product of a transposed matrix is slow; pᵀ W is not,
    and transposing its result is cheap. The barrier keeps the compiler from undoing that.
    """
    return weight @ x


def _large_backward(kept: tuple[Array, Array], pull: Array) -> tuple[Array, Array]:
    weight, x = kept
    on_x = jax.lax.dot_general(pull, weight, (((0,), (0,)), ((), ())))
    return pull @ x.T, jax.lax.optimization_barrier(on_x).T


large_product.defvjp(lambda *factors: (large_product(*factors), factors), _large_backward)


class MLP(eqx.Module):
    """ReLU after every layer."""

    layers: tuple[Linear, ...]
    outputs: int = eqx.field(static=True)

    def __init__(self, inputs: int, widths: Sequence[int], key: Array) -> None:
        sizes = [inputs, *widths]
        keys = jax.random.split(key, max(len(widths), 1))[: len(widths)]
        self.layers = tuple(
            Linear(a, b, k) for a, b, k in zip(sizes[:-1], sizes[1:], keys, strict=True)
        )
        self.outputs = sizes[-1]

    def __call__(self, x: Array) -> Array:
        x = unit(x.reshape(-1, x.shape[-1]))
        for layer in self.layers:
            x = jax.nn.relu(layer(x))
        return x
