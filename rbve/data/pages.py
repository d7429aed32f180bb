"""Whether a Parquet file holds what its metadata says, before any of it is decompressed."""

from collections.abc import Collection
from typing import Any

# Pages are inflated whole, and writers end them at a megabyte. So a column's part of a row group
# may be as large as it likes, unless it is mostly air; and constant columns repeat a value in
# no bytes at all, though not all columns of a log are constant.
MAX_CHUNK = 1 << 28  # bytes of a column in a row group that may shrink to nothing
_MAX_RATIO = 100  # decompressed to compressed, beyond that
MANY_VALUES = 1 << 26  # numbers that a file may hold whatever its size
MAX_VALUES = 1000  # for each byte of a file, beyond that


def absurdity(metadata: Any, size: int, columns: Collection[str] | None = None) -> str | None:
    """What is wrong with the sizes that a file of `size` bytes claims for its columns."""
    values = 0
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group)
        for index in range(rows.num_columns):
            chunk = rows.column(index)
            path = chunk.path_in_schema
            if columns is not None and not any(f"{path}.".startswith(f"{c}.") for c in columns):
                continue
            values += chunk.num_values
            packed, unpacked = chunk.total_compressed_size, chunk.total_uncompressed_size
            if packed > size or unpacked > max(MAX_CHUNK, _MAX_RATIO * packed):
                return f"column {path!r} claims {unpacked:,} bytes in {packed:,} of {size:,}"
    if values > max(MANY_VALUES, MAX_VALUES * size):
        return f"claims {values:,} values in {size:,} bytes"
    return None
