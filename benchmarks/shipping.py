"""Shipped policies: cold start, one decision, and a large file of rows beside Arrow's own work.

    python benchmarks/shipping.py [--rows 1000000] [--folder /tmp]

The network is the paper's 56-56 on ten columns, two of them categories. Arrow's own work is to read
the file and write the same columns. All times but the first are the processor's, of one thread, so
that other programs matter little; run it with `taskset -c 0`. Of onnxruntime the floor is the same
network given encoded numbers, with the columns passed in beside them, which nothing reads.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

NUMBERS, LEVELS = 8, ("A", "B", "C", "D")
GROUP = 1 << 18
COLD = """
import time
begin = time.perf_counter()
import rbve
policy = rbve.{load}({path!r})
policy.decide({row!r})
print((time.perf_counter() - begin) * 1e3, time.process_time() * 1e3)
"""


def make_policy() -> Any:
    import jax

    from rbve import algorithms
    from rbve.data.features import Feature, Features
    from rbve.networks import build
    from rbve.policy import Policy

    columns = [Feature(f"x{i}", mean=float(i), scale=1.0 + i) for i in range(NUMBERS)]
    columns += [Feature(f"c{i}", "category", categories=LEVELS) for i in range(2)]
    features, algorithm = Features(tuple(columns)), algorithms.load("rbve")
    shape, actions, hidden = (features.size,), ("wait", "treat", "refer", "stop"), (56, 56)
    network = build(shape, 4, algorithm.head, algorithm.options(), hidden, jax.random.key(0))
    return Policy(
        algorithm, algorithm.options(), algorithm.config(), network, (len(columns),), actions,
        hidden, features=features,
    )  # fmt: skip


def make_rows(path: Path, count: int) -> None:
    rng = np.random.default_rng(0)
    writer = None
    for first in range(0, count, GROUP):
        size = min(GROUP, count - first)
        table = pa.table(
            {
                "id": np.arange(first, first + size),
                **{f"x{i}": rng.normal(i, 1 + i, size) for i in range(NUMBERS)},
                **{f"c{i}": np.array(LEVELS)[rng.integers(4, size=size)] for i in range(2)},
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def arrows_own(path: Path, out: Path) -> float:
    begin = time.process_time()
    with (
        pq.ParquetFile(path, pre_buffer=False) as file,
        pq.ParquetWriter(out, file.schema_arrow) as writer,
    ):
        for batch in file.iter_batches(1 << 16, use_threads=False):
            writer.write_batch(batch)
    return time.process_time() - begin


def decided(folder: Path, path: Path, out: Path) -> tuple[float, float]:
    """Seconds, and megabytes at most, of a process of its own."""
    code = (
        "import re, sys, time\n"
        "from pathlib import Path\n"
        "from rbve import runtime, streaming\n"
        "folder, path, out = map(Path, sys.argv[1:])\n"
        "decider, begin = runtime.load(folder), time.process_time()\n"
        "streaming.predict(decider, path, out, streaming.Prediction())\n"
        "peak = re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]\n"
        "print(time.process_time() - begin, int(peak) / 1024)\n"
    )
    command = [sys.executable, "-c", code, str(folder), str(path), str(out)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, peak = map(float, done.stdout.split())
    return seconds, peak


def microseconds(function: Callable[[], Any], count: int = 2000) -> float:
    """The least of five means."""
    times = []
    for _ in range(5):
        begin = time.process_time()
        for _ in range(count):
            function()
        times.append((time.process_time() - begin) / count)
    return min(times) * 1e6


def cold_start(code: str) -> tuple[float, float]:
    """Milliseconds, of the clock and of the processor, in fresh processes: the least of seven."""
    command, found = [sys.executable, "-c", code], []
    for _ in range(7):
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found.append([float(each) for each in done.stdout.split()])
    return min(each[0] for each in found), min(each[1] for each in found)


def one_decision(policy: Any, folder: Path, row: dict[str, Any]) -> dict[str, float]:
    import onnx
    import onnxruntime

    import rbve
    from rbve import runtime

    decider = runtime.load(folder / "shipped")
    numbers = np.array([[*(row[f"x{i}"] for i in range(NUMBERS)), 1.0, 2.0]])
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    graph = onnxruntime.InferenceSession(folder / "policy.onnx", options)
    columns = {
        name: np.array([value], object if isinstance(value, str) else float)
        for name, value in row.items()
    }
    plain = dataclasses.replace(policy, features=None, obs_shape=policy.inputs)
    rbve.export(plain, folder / "plain.onnx")
    floor = onnx.load(folder / "plain.onnx")
    floor.graph.input.extend(
        each for each in onnx.load(folder / "policy.onnx").graph.input if each.name in row
    )
    bare = onnxruntime.InferenceSession(folder / "plain.onnx", options)
    beside = onnxruntime.InferenceSession(floor.SerializeToString(), options)
    seen = {"observation": policy.features.encode(numbers)}
    both = {**seen, **columns}
    return {
        "decide, row by column name (µs)": microseconds(lambda: decider.decide(row)),
        "decide, numbers (µs)": microseconds(lambda: decider.act(numbers)),
        "policy.decide, loaded by rbve (µs)": microseconds(lambda: policy.decide(row)),
        "onnxruntime, columns (µs)": microseconds(lambda: graph.run(["action"], columns)),
        "onnxruntime, encoded numbers beside columns (µs)": microseconds(
            lambda: beside.run(["action"], both)
        ),
        "onnxruntime, encoded numbers alone (µs)": microseconds(lambda: bare.run(["action"], seen)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    arguments = parser.parse_args()
    import rbve

    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        folder, policy = Path(scratch), make_policy()
        row: dict[str, Any] = {f"x{i}": 0.5 * i for i in range(NUMBERS)} | {"c0": "B", "c1": "C"}
        for name in ("shipped", "policy.onnx"):
            rbve.export(policy, folder / name)
        policy.save(folder / "policy.safetensors")
        figures = {}
        for words, load, name in (
            ("an exported folder", "load_policy", "shipped"),
            ("a saved policy", "load_policy", "policy.safetensors"),
            ("a saved policy, to train or evaluate", "Policy.load", "policy.safetensors"),
        ):
            code = COLD.format(load=load, path=str(folder / name), row=row)
            wall, processor = cold_start(code)
            figures[f"import, load, first decision, {words} (ms, best of 7)"] = wall
            figures[f"the same of the processor, with Python's start, {words} (ms)"] = processor
        figures |= one_decision(policy, folder, row)
        for count in (arguments.rows // 10, arguments.rows):
            make_rows(folder / "rows.parquet", count)
            arrow = min(arrows_own(folder / "rows.parquet", folder / "a.parquet") for _ in range(2))
            seconds, peak = decided(
                folder / "shipped", folder / "rows.parquet", folder / f"{count}.parquet"
            )
            figures |= {
                f"predict, {count:,} rows (rows/s)": count / seconds,
                f"Arrow's read and write, {count:,} rows (rows/s)": count / arrow,
                f"predict, {count:,} rows (MB at most)": peak,
            }
    for name, value in figures.items():
        print(f"{name}: {value:,.1f}" if value < 1000 else f"{name}: {value:,.0f}")
    if arguments.out:
        arguments.out.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
