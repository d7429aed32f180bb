"""Training from a store larger than memory should be: memory held, and how long updates wait.

    python benchmarks/streaming.py --folder /somewhere/large

Makes a store of 84×84 frames once (random pixels, one block repeated, so that it compresses to
nothing anywhere), trains on it in a process of its own and watches that process from outside.
Anonymous memory is what the process itself holds; pages of the mapped store belong to the system's
cache, which it gives up when it needs to.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

EPISODE = 1000  # steps
FRAME = (84, 84, 1)


def make_store(path: Path, gigabytes: float) -> None:
    from rbve.data import Dataset, Episode, write
    from rbve.data.source import Source

    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (EPISODE + 1, *FRAME), np.uint8)
    episodes = round(gigabytes * 1e9 / pixels.nbytes)

    def parts() -> Iterator[Dataset]:
        for index in range(episodes):
            obs = np.roll(pixels, index, axis=0)
            action = rng.integers(4, size=EPISODE)
            reward = (rng.random(EPISODE) < 0.02).astype(np.float32)
            yield Dataset.from_episodes(
                [Episode.from_steps(obs, action, reward, terminated=True)], 4
            )

    write(Source(parts()), path)


def train(args: argparse.Namespace) -> None:
    """In the process that is watched: prints one line of JSON."""
    from rbve import api
    from rbve.data.manifest import fingerprint
    from rbve.spec import Spec
    from rbve.sweep.run import run_jobs

    del api  # sets JAX up
    job = Spec.of(
        holdout=0.0,
        path=args.store,
        fingerprint=fingerprint(args.store),
        algorithm="rbve",
        steps=args.steps,
        every=max(1, args.steps // 4),
        batch_size=args.batch,
        hidden=(args.hidden,),
        stack=4,
        rows="disk",
    )
    marks: list[tuple[int, float, float]] = []
    run_jobs(
        [job],
        args.store.parent / f"runs-{os.getpid()}",
        lambda p: marks.append((p.step, time.monotonic(), p.metrics["wait_share"])),
    )
    # The first interval compiles; speed is that of the rest.
    (first, start, _), (last, end, share) = marks[0], marks[-1]
    print(json.dumps({"updates_per_s": (last - first) / (end - start), "wait_share": share}))


def watch(process: subprocess.Popen[str]) -> dict[str, float]:
    """Peak memory in GB, as the system counts it."""
    peak = {"RssAnon": 0.0, "RssFile": 0.0}

    def look() -> None:
        while process.poll() is None:
            try:
                lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            except OSError:
                return
            for line in lines:
                name = line.split(":")[0]
                if name in peak:
                    peak[name] = max(peak[name], int(line.split()[1]) * 1024 / 1e9)
            time.sleep(0.05)

    thread = threading.Thread(target=look)
    thread.start()
    process.wait()
    thread.join()
    return peak


def bound(store: Path, batch: int, seconds: float = 3.0) -> float:
    """Batches per second of copying as many bytes from pages that are in memory already."""
    frames = np.memmap(store / "obs.bin", np.uint8, "r").reshape(-1, np.prod(FRAME))
    rows = np.random.default_rng(1).integers(0, 10_000, (64, batch))
    frames[:10_008].sum()
    out = np.empty((batch, 8, frames.shape[1]), np.uint8)
    done, began = 0, time.monotonic()
    while time.monotonic() - began < seconds:
        for k, row in enumerate(rows[done % 64]):
            out[k] = frames[row : row + 8]
        done += 1
    return done / (time.monotonic() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("benchmarks/out/streaming"))
    parser.add_argument("--gigabytes", type=float, default=20.0)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--store", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.store is not None:
        train(args)
        return
    store = args.folder / f"frames-{args.gigabytes:g}GB"
    if not (store / "manifest.json").exists():
        print(f"making {store}", file=sys.stderr)
        args.folder.mkdir(parents=True, exist_ok=True)
        make_store(store, args.gigabytes)
    command = [sys.executable, __file__, "--store", str(store), "--steps", str(args.steps)]
    command += ["--batch", str(args.batch), "--hidden", str(args.hidden)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak = watch(process)
    assert process.stdout is not None
    if process.returncode:
        sys.exit(process.returncode)
    figures = json.loads(process.stdout.read().splitlines()[-1])
    figures |= {
        "store_GB": sum(file.stat().st_size for file in store.iterdir()) / 1e9,
        "peak_anonymous_GB": peak["RssAnon"],
        "peak_mapped_GB": peak["RssFile"],
        "batch": args.batch,
        "copy_bound_batches_per_s": bound(store, args.batch),
    }
    print(json.dumps({name: round(value, 3) for name, value in figures.items()}, indent=1))


if __name__ == "__main__":
    main()
