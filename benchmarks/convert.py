"""A large Parquet log to a native store: rows a second, peak memory, and how near to a bound.

    python benchmarks/convert.py [--rows 10000000] [--length 200] [--shards 1] [--folder /tmp]

The bound is the time Arrow takes to read the same columns of the same file and drop them.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

COLUMNS = 8
GROUP = 1 << 20  # rows of a row group, as data frame libraries write them
CHILD = "--child"


def make(path: Path, rows: int, length: int, begin: int = 0) -> None:
    """A log of numbered episodes, from row `begin` on: 8 float columns, 4 actions, no final
    observations."""
    rng = np.random.default_rng(0)
    writer = None
    for first in range(0, rows, GROUP):
        number = begin + np.arange(first, min(rows, first + GROUP))
        table = pa.table(
            {
                "episode": number // length,
                "time": number % length,
                **{
                    f"x{column}": rng.normal(column, 1 + column, len(number)).astype(np.float32)
                    for column in range(COLUMNS)
                },
                "action": rng.integers(4, size=len(number)),
                "reward": rng.normal(size=len(number)).astype(np.float32),
                "terminated": number % length == length - 1,
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def make_shards(folder: Path, rows: int, length: int, shards: int) -> None:
    """The same in several files, each of whole episodes."""
    folder.mkdir()
    for number in range(shards):
        make(folder / f"part-{number}.parquet", rows // shards, length, number * rows // shards)


def bound(path: Path) -> tuple[float, float]:
    """Seconds, and of CPU."""
    start, cpu = time.perf_counter(), time.process_time()
    for each in sorted(path.iterdir()) if path.is_dir() else [path]:
        with pq.ParquetFile(each, pre_buffer=False) as file:
            for _ in file.iter_batches(1 << 16, use_threads=False):
                pass
    return time.perf_counter() - start, time.process_time() - cpu


def convert(source: Path, target: Path) -> None:
    """What the child process does; it prints its own figures."""
    from rbve.data import write
    from rbve.data.formats import read

    small = target.with_name("small")  # what is imported on first use is not time per row
    make(small.with_suffix(".parquet"), 1000, 100)
    write(read(small.with_suffix(".parquet")), small)
    start, cpu = time.perf_counter(), time.process_time()
    write(read(source), target)
    print(
        json.dumps(
            {
                "seconds": time.perf_counter() - start,
                "cpu": time.process_time() - cpu,
                "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            }
        )
    )


def measure(rows: int, length: int, shards: int, folder: Path | None) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=folder) as name:
        source, target = Path(name) / "log.parquet", Path(name) / "store"
        if shards > 1:
            source = Path(name) / "log"
            make_shards(source, rows, length, shards)
        else:
            make(source, rows, length)
        wall, cpu = map(min, zip(*(bound(source) for _ in range(3)), strict=True))
        run = subprocess.run(
            [sys.executable, __file__, CHILD, str(source), str(target)],
            capture_output=True,
            text=True,
            check=True,
        )
        figures = json.loads(run.stdout)
    return {
        "rows": rows,
        "rows a second": rows / figures["seconds"],
        "rows a CPU second": rows / figures["cpu"],
        "peak memory, MB": figures["peak"] / 1e6,
        "times the bound": figures["seconds"] / wall,
        "by CPU time": figures["cpu"] / cpu,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--length", type=int, default=200, help="decisions of an episode")
    parser.add_argument("--shards", type=int, default=1, help="files, read by all cores")
    parser.add_argument("--folder", type=Path, help="where the files go for a while")
    asked = vars(parser.parse_args())
    for name, value in measure(**asked).items():
        print(f"{name:>20} {value:,.1f}")


if __name__ == "__main__":
    if sys.argv[1:2] == [CHILD]:
        convert(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        main()
