"""Jobs on all local devices: members of one program together, programs side by side.

A device takes the next bundle of jobs when it is free. Every job writes to its own folder and
resumes from it, so how jobs are bundled, and on how many devices, changes nothing in the results.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax

from rbve import stopping
from rbve.data.dataset import Dataset
from rbve.data.formats import load
from rbve.files import allow_open_files
from rbve.training.member import Damaged
from rbve.training.parallel import check
from rbve.training.run import Progress, is_finished, train_members
from rbve.training.sequences import longest_episode
from rbve.training.spec import Job, Spec
from rbve.training.table import layout_of

# Bytes of a column whose checksum is checked before training; `rbve inspect` checks all.
VERIFIED = 1 << 30


def run(
    jobs: Sequence[Job],
    out: Path,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    datasets: dict[str, Dataset] | None = None,
    devices: int = 1,
) -> list[Path]:
    """Train every job that is not finished; returns the jobs' folders in order.

    `datasets` holds opened stores by path, for data that is not on disk. Every job's batches are
    split over `devices`.
    """
    for job in jobs:
        check(devices, jax.local_device_count(), job.spec.batch_size)
        if devices > 1 and job.spec.memory:
            raise ValueError("batches of sequences are not split; leave --devices out with memory")
    opened = dict(datasets or {})
    for job in jobs:
        if job.data.path not in opened:
            opened[job.data.path] = load(job.data.path, verify=VERIFIED)
    selected = {job.data: job.data.of(opened[job.data.path]) for job in jobs}
    # Threads go by absolute paths: ViZDoom changes the working directory while it starts.
    home = out.absolute()
    folders = {job.id: home / job.id for job in jobs}
    todo = [job for job in unique(jobs) if not is_finished(folders[job.id])]
    kinds = [(job.program, shapes(job.spec, selected[job.data])) for job in todo]
    bundles = bundle(todo, kinds, jax.local_device_count() // devices)

    damage: list[str] = []

    def work(jobs: Sequence[Job]) -> None:
        try:
            train_members(
                jobs,
                [selected[job.data] for job in jobs],
                [folders[job.id] for job in jobs],
                on_progress,
                devices=devices,
            )
        except Damaged as error:
            damage.append(str(error))

    allow_open_files(len(todo))
    on_all_devices(work, bundles, devices)
    if damage:
        raise ValueError(f"all other runs are trained; {'; '.join(damage)}")
    return [out / job.id for job in jobs]


def unique(jobs: Sequence[Job]) -> list[Job]:
    return list({job.id: job for job in jobs}.values())


def shapes(spec: Spec, data: Dataset) -> Any:
    """What shapes the arrays of a program beside its Spec."""
    if not spec.memory or spec.sequence:
        return layout_of(data, 1), data.features
    # Sequences as long as the longest episode; padding to a longer one would change low bits.
    longest = longest_episode(spec.load_algorithm().keep(data))
    return layout_of(data, 1), data.features, longest


def bundle(jobs: Sequence[Job], kinds: Sequence[Any], devices: int) -> list[list[Job]]:
    """Jobs of one program and one kind of data together, cut so that every device has work."""
    programs: dict[Any, list[Job]] = {}
    for job, kind in zip(jobs, kinds, strict=True):
        programs.setdefault(kind, []).append(job)
    if len(programs) >= 2 * devices:
        return list(programs.values())
    return [
        part
        for members in programs.values()
        for k in range(devices)
        if (part := members[k::devices])
    ]


def on_all_devices(work: Callable[[Any], None], items: Sequence[Any], each: int = 1) -> None:
    """Call work(item) for all items, one at a time per device, or per `each` devices.

    After an error no item is begun; it is raised once the items at work are done. Interrupted, it
    asks them to stop (rbve/stopping.py) and waits until they have.
    """
    waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for item in items:
        waiting.put(item)
    errors: list[BaseException] = []

    def serve(device: jax.Device, ended: threading.Event) -> None:
        try:
            with jax.default_device(device):
                while not errors:
                    try:
                        item = waiting.get_nowait()
                    except queue.Empty:
                        return
                    work(item)
        except BaseException as error:
            errors.append(error)
        finally:
            ended.set()

    local = jax.local_devices()
    devices = local[: len(local) // each * each : each][: max(1, len(items))]
    threads: list[tuple[threading.Thread, threading.Event]] = []
    for device in devices:
        ended = threading.Event()
        threads.append((threading.Thread(target=serve, args=(device, ended)), ended))

    def wait() -> None:
        # Not Thread.join(): interrupted by a signal, it takes a thread for ended that is not.
        for thread, ended in threads:
            while thread.ident is not None and not ended.wait(0.2):
                pass

    try:
        for thread, _ in threads:
            thread.start()
        wait()
    except BaseException as stop:  # Ctrl-C: the interpreter must not end while threads compute
        errors.append(stop)  # so that no item is begun
        with stopping.asked():
            wait()
        raise
    if errors:
        raise errors[0]
