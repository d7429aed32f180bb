"""Batches for data that stays on disk: a thread picks them while the device updates.

Which rows update k sees depends on the seed and k alone, as in memory, so a run resumed anywhere
equals one that never stopped.
"""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rbve.data.readahead import ReadAhead
from rbve.training.update import DRAWS, Member, TrainState, draw

CHUNK_BYTES = 1 << 25  # of batches handed over at once, about
_LEAST_AT_ONCE = 4  # updates a call: each call maps the program's memory anew, 130 ms at batch 256.
# An update on sequences takes long beside that, and its batch much memory: it may be called alone.
_CHUNKS_AHEAD = 1
THREAD = "rbve batches"
_BLOCKS_AT_ONCE = 16  # of drawn row numbers


class _Chunk(NamedTuple):
    start: int  # the update its first batch is for
    stop: int
    batches: Any  # picked items (K, B, ...); beyond stop − start they repeat


class Stream:
    """The batches of one member from `step` on, cut at the given boundaries."""

    def __init__(
        self,
        columns: Any,
        member: Member,
        batch_size: int,
        step: int,
        boundaries: list[int],
        streams: int = 1,
    ) -> None:
        """`streams` run at once and share the memory for batches."""
        self.waited = self.total = 0.0  # seconds that updates waited for batches, and took in all
        self.member = member
        self._columns, self._batch = columns, batch_size
        one = columns.pick(np.zeros(batch_size, np.int64))
        held = sum(values.nbytes for values in one if values is not None)
        least = _LEAST_AT_ONCE if columns.decisions == 1 else 1
        self._at_once = min(DRAWS, max(least, CHUNK_BYTES // streams // held))
        (device,) = member.size.devices()
        self._chunks = Ahead(self._pick(step, boundaries), _CHUNKS_AHEAD, device)

    def _pick(self, step: int, boundaries: list[int]) -> Iterator[_Chunk]:
        def split(column: np.ndarray) -> np.ndarray:
            return column.reshape(self._at_once, self._batch, *column.shape[1:])

        rows = self._rows(step)
        ahead = ReadAhead(self._columns.dataset.obs)
        for until in boundaries:
            while step < until:
                stop = min(step + self._at_once, until)
                index = np.stack([next(rows) for _ in range(stop - step)])
                padded = index[np.minimum(np.arange(self._at_once), len(index) - 1)]
                self._columns.expect(ahead, padded.reshape(-1))
                picked = self._columns.pick(padded.reshape(-1))
                yield _Chunk(step, stop, jax.tree.map(split, picked))
                step = stop

    def _rows(self, step: int) -> Iterator[np.ndarray]:
        """Row numbers (B,) of update `step`, then of the ones after it."""
        key, size = jax.random.split(self.member.key)[0], self.member.size
        blocks = jax.jit(jax.vmap(lambda block: draw(key, block, size, self._batch)))
        block, skip = divmod(step, DRAWS)
        while True:
            numbers = block + jnp.arange(_BLOCKS_AT_ONCE)
            drawn = np.asarray(blocks(numbers)).reshape(-1, self._batch)
            yield from drawn[skip:]
            block, skip = block + _BLOCKS_AT_ONCE, 0

    def advance(
        self, compiled: Callable[..., Any], state: TrainState, sums: Any
    ) -> tuple[TrainState, Any]:
        began = time.monotonic()
        chunk = next(self._chunks)
        self.waited += time.monotonic() - began
        if chunk.start != int(state.step):
            raise RuntimeError(f"batches of update {chunk.start} came at update {int(state.step)}")
        state, sums = compiled(state, chunk.batches, self.member, chunk.stop, sums)
        # Waiting here keeps one chunk on the device, and the thread's measure honest.
        jax.block_until_ready(state.step)
        self.total += time.monotonic() - began
        return state, sums

    def close(self) -> None:
        self._chunks.close()


class Ahead:
    """An iterator that a thread runs ahead, at most `depth` items; JAX there uses `device`."""

    def __init__(self, items: Iterator[Any], depth: int, device: Any) -> None:
        self._ready: queue.Queue[Any] = queue.Queue(depth)
        self._closed = threading.Event()
        self._failed: BaseException | None = None
        self._thread = threading.Thread(
            target=self._run, args=(items, device), name=THREAD, daemon=True
        )
        self._thread.start()

    def _run(self, items: Iterator[Any], device: Any) -> None:
        try:
            with jax.default_device(device):
                for item in items:
                    if not self._put((item, None)):
                        return
            self._put((None, StopIteration()))
        except BaseException as error:
            self._put((None, error))

    def _put(self, item: Any) -> bool:
        while not self._closed.is_set():
            try:
                self._ready.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def __next__(self) -> Any:
        if self._failed is None:
            item, self._failed = self._ready.get()
            if self._failed is None:
                return item
        raise self._failed

    def close(self) -> None:
        self._closed.set()
        self._thread.join()
