"""Whether the rows of each episode stand together, from a column of ids."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from rbve.data.logs.columns import Runs


class Interleaved(NamedTuple):
    """Rows of an episode that do not stand together."""

    episode: np.ndarray  # (R,) int32 per row of the file, episodes counted as they first appear
    rows: tuple[int, int]  # where an id begins and where again


class EpisodeOrder:
    """Finds out whether the rows of each episode stand together, from a column of ids."""

    def __init__(self) -> None:
        self._runs = Runs()
        self._keys: list[np.ndarray] = []  # of each run: the id, or a hash of its text
        self._numbers: list[np.ndarray] | None = []  # of texts: the id as a number
        self._starts: list[np.ndarray] = []
        self._rows = 0
        self.begins = np.zeros(0, np.int64)  # rows where an id begins, after interleaved()

    def add(self, ids: pa.Array, as_numbers: pa.Array | None = None) -> None:
        """The next batch; of texts `as_numbers` too, as long as all are whole."""
        first = np.flatnonzero(self._runs.starts(ids))
        values = ids.take(pa.array(first))
        if pa.types.is_integer(values.type) and not values.null_count:
            self._keys.append(values.to_numpy(zero_copy_only=False).astype(np.int64))
        else:
            # Of their texts: equal hashes have, among others, the numbers -1 and -2.
            hashes = [hash(str(value)) for value in values.to_pylist()]
            self._keys.append(np.array(hashes, np.int64))
        if as_numbers is None or not pa.types.is_integer(as_numbers.type):
            self._numbers = None
        elif self._numbers is not None:
            chosen = as_numbers.take(pa.array(first)).fill_null(np.iinfo(np.int64).min)
            self._numbers.append(chosen.to_numpy(zero_copy_only=False))
        self._starts.append(self._rows + first)
        self._rows += len(ids)

    def extend(self, later: "EpisodeOrder") -> None:
        """With the ids of rows that come after."""
        self._keys += later._keys
        if self._numbers is not None and later._numbers is not None:
            self._numbers += later._numbers
        else:
            self._numbers = None
        self._starts += [starts + self._rows for starts in later._starts]
        self._rows += later._rows

    def interleaved(self) -> Interleaved | None:
        if not self._keys:
            return None
        start, key = np.concatenate(self._starts), np.concatenate(self._numbers or self._keys)
        run = np.append(True, key[1:] != key[:-1])  # 7 and 07 are one number
        start, key = start[run], key[run]
        self.begins = start
        encoded = pa.array(key).dictionary_encode()  # in the order of appearance
        if len(encoded.dictionary) == len(key):
            return None
        code = encoded.indices.to_numpy()
        again = int(np.argmax(code[1:] <= np.maximum.accumulate(code)[:-1])) + 1
        begins = int(np.argmax(code == code[again]))
        lengths = np.diff(np.append(start, self._rows))
        return Interleaved(np.repeat(code, lengths), (int(start[begins]), int(start[again])))
