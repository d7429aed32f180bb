"""Convolutions on (channels, height, width, B) arrays, and the image torso made of them."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from rbve import backend
from rbve.networks.layers import MLP, truncated_normal, unit
from rbve.types import Array

_Padding = Literal["SAME", "VALID"]
_Sizes = Sequence[int]
_BOARDS = 2**17  # bytes of a batch of boards, not of images


class Kernel(NamedTuple):
    filters: int
    side: int
    stride: int


def window(size: int, side: int, stride: int, padding: _Padding) -> tuple[int, int]:
    """Outputs along an axis, and the zeros before its first entry."""
    if padding == "VALID":
        return (size - side) // stride + 1, 0
    outputs = -(-size // stride)
    return outputs, max((outputs - 1) * stride + side - size, 0) // 2


class Conv(eqx.Module):
    weight: Array  # (side, side, in, out)
    bias: Array  # (out,)
    stride: int = eqx.field(static=True)
    padding: _Padding = eqx.field(static=True)

    def __init__(self, inputs: int, kernel: Kernel, padding: _Padding, key: Array) -> None:
        shape = (kernel.side, kernel.side, inputs, kernel.filters)
        self.weight = truncated_normal(key, shape, kernel.side**2 * inputs)
        self.bias = jnp.zeros(kernel.filters)
        self.stride, self.padding = kernel.stride, padding

    def __call__(self, x: Array) -> Array:
        convolve = patches_product if backend.platform() == "cpu" else native
        return convolve(x, self.weight, self.stride, self.padding) + self.bias[:, None, None, None]


def native(x: Array, weight: Array, stride: int, padding: _Padding) -> Array:
    """The compiler's own convolution, for GPU and TPU."""
    return jax.lax.conv_general_dilated(
        unit(x), weight, (stride, stride), padding, dimension_numbers=("CHWN", "HWIO", "CHWN")
    )


def patches_product(x: Array, weight: Array, stride: int, padding: _Padding) -> Array:
    """The same as one matrix product, several times as fast on CPU.

    Blocks of stride × stride pixels become channels; then the stride is 1 and every patch consists
    of a few slices, whose gradient is padding instead of a scatter.
    """
    channels, height, width, batch = x.shape
    side, outputs = weight.shape[0], weight.shape[-1]
    taps = -(-side // stride)  # blocks a window covers
    rows, above = window(height, side, stride, padding)
    columns, left = window(width, side, stride, padding)
    high, wide = rows - 1 + taps, columns - 1 + taps  # blocks

    around = (above, high * stride - height - above, 0), (left, wide * stride - width - left, 0)
    # Negative where pixels are left over.
    x = jax.lax.pad(x, jnp.zeros((), x.dtype), ((0, 0, 0), *around, (0, 0, 0)))
    x = x.reshape(channels, high, stride, wide, stride, batch).transpose(0, 2, 4, 1, 3, 5)
    if x.dtype == jnp.uint8:
        # Otherwise the compiler converts byte by byte again for each slice below. A loop does it
        # for images; of boards its few short iterations cost more than the conversion.
        if x.size <= _BOARDS:
            x = jax.lax.optimization_barrier(unit(jax.lax.optimization_barrier(x)))
        else:
            x = jax.lax.map(unit, x.reshape(channels * stride, stride, high, wide, batch))
    x = unit(x).reshape(channels * stride**2, high, wide, batch)
    patches = jnp.concatenate(
        [x[:, i : i + rows, j : j + columns] for i in range(taps) for j in range(taps)]
    )

    extra = taps * stride - side
    weight = jnp.pad(weight, ((0, extra), (0, extra), (0, 0), (0, 0)))
    weight = weight.reshape(taps, stride, taps, stride, channels, outputs)
    weight = weight.transpose(0, 2, 4, 1, 3, 5).reshape(-1, outputs)
    return product(weight, patches)


# The batch stays an axis of its own, so that it can be split over devices. The gradient is written
# out because the order of its factors decides whether the compiler transposes the patches.


@jax.custom_vjp
def product(weight: Array, patches: Array) -> Array:
    """Weights (K, out) and patches (K, height, width, B) to (out, height, width, B)."""
    return jax.lax.dot_general(weight, patches, (((0,), (0,)), ((), ())))


def _product_backward(kept: tuple[Array, Array], pull: Array) -> tuple[Array, Array]:
    weight, patches = kept
    on_weight = jax.lax.dot_general(patches, pull, (((1, 2, 3), (1, 2, 3)), ((), ())))
    return on_weight, jax.lax.dot_general(weight, pull, (((1,), (0,)), ((), ())))


product.defvjp(lambda *factors: (product(*factors), factors), _product_backward)


class Image(eqx.Module):
    """Convolutions, then dense layers: (height, width, channels, B) to (features, B)."""

    convolutions: tuple[Conv, ...]
    dense: MLP

    def __init__(
        self,
        shape: _Sizes,
        kernels: Sequence[Kernel],
        padding: _Padding,
        hidden: _Sizes,
        key: Array,
    ) -> None:
        height, width, channels = shape if len(shape) == 3 else (*shape, 1)
        keys = jax.random.split(key, len(kernels) + 1)
        made = []
        for kernel, own in zip(kernels, keys, strict=False):
            made.append(Conv(channels, kernel, padding, own))
            height, _ = window(height, kernel.side, kernel.stride, padding)
            width, _ = window(width, kernel.side, kernel.stride, padding)
            channels = kernel.filters
            if min(height, width) < 1:
                raise ValueError(
                    f"observations {tuple(shape)} are too small for these convolutions; choose "
                    "another torso, such as board or mlp"
                )
        self.convolutions = tuple(made)
        self.dense = MLP(math.prod((channels, height, width)), hidden, keys[-1])

    @property
    def outputs(self) -> int:
        return self.dense.outputs

    def __call__(self, x: Array) -> Array:
        x = x[:, :, None] if x.ndim == 3 else x
        x = jnp.moveaxis(x, 2, 0)
        for convolution in self.convolutions:
            x = jax.nn.relu(convolution(x))
        return self.dense(x)
