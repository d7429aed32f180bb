"""Numbers by name, side by side in one array, so that drawing rows is one gather.

The array holds 32-bit words: integers as they are, floats by their bits, so both are exact.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rbve.types import Array


class Packed:
    """Columns of a fixed order and type: int32, float32 or bool."""

    def __init__(self, **types: type) -> None:
        self._types = {name: np.dtype(each) for name, each in types.items()}

    def __len__(self) -> int:
        return len(self._types)

    def pack(self, **columns: Any) -> np.ndarray:
        """(N,) arrays or single numbers to (N, len) int32; columns left out are 0."""
        if unknown := columns.keys() - self._types.keys():
            raise KeyError(f"no such columns: {sorted(unknown)}")
        count = max(np.size(column) for column in columns.values())
        packed = np.zeros((count, len(self)), np.int32)
        for place, (name, kind) in enumerate(self._types.items()):
            values = np.asarray(columns.get(name, 0)).astype(kind)
            packed[:, place] = values.view(np.int32) if kind == np.float32 else values
        return packed

    def unpack(self, packed: Array) -> dict[str, Array]:
        """(..., len) to arrays (...) by name."""
        return {
            name: _typed(packed[..., place], kind)
            for place, (name, kind) in enumerate(self._types.items())
        }

    def column(self, packed: np.ndarray, name: str) -> np.ndarray:
        """One column (...) on the host."""
        place, kind = list(self._types).index(name), self._types[name]
        values = np.ascontiguousarray(packed[..., place])
        return values.view(np.float32) if kind == np.float32 else values.astype(kind)


def _typed(words: Array, kind: np.dtype) -> Array:
    if kind == np.float32:
        return jax.lax.bitcast_convert_type(words, jnp.float32)
    return words != 0 if kind == np.bool_ else words
