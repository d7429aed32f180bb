"""One run over the devices of several processes, on this machine or others.

Each is given the same command. Every process opens the data, computes its part of every batch
and holds the same weights. The first one writes; the others work in folders of their own, copied
from its checkpoints, and drop them.
"""

import re
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from jax.experimental import multihost_utils

from rbve import backend
from rbve.training.run import CHECKPOINT


class Lost(ValueError):
    """Another process has ended. JAX would bring this one down when the interpreter ends."""


class Hosts(NamedTuple):
    address: str  # HOST:PORT of the first process, which listens there
    processes: int
    number: int  # of this one, from 0

    @staticmethod
    def read(text: str) -> "Hosts":
        match = re.fullmatch(r"([^\s,]+:\d+),(\d+),(\d+)", text)
        hosts = Hosts(match[1], int(match[2]), int(match[3])) if match else None
        if hosts is None or not 0 <= hosts.number < hosts.processes:
            raise ValueError(
                f"--hosts is HOST:PORT,COUNT,INDEX, where the first of COUNT processes listens and "
                f"which this is, from 0: 10.0.0.1:7000,2,0 and 10.0.0.1:7000,2,1; got {text!r}"
            )
        return hosts

    def join(self, devices: int) -> None:
        """Wait for the others; each brings an equal part of the devices."""
        if devices % self.processes or devices < 2:
            raise ValueError(
                f"--devices {devices} cannot be shared by {self.processes} processes; it counts "
                f"the devices of all, such as --devices {2 * self.processes}"
            )
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        try:
            backend.prepare(devices // self.processes, exactly=True)
            jax.distributed.initialize(self.address, self.processes, self.number)
        except RuntimeError as error:
            words = str(error).splitlines()[0]
            raise ValueError(
                f"--hosts: process {self.number} did not meet the others at {self.address} "
                f"({words}); start the same command on each, with an INDEX of its own"
            ) from None

    @contextmanager
    def folder(self, out: Path, jobs: Sequence[str]) -> Iterator[Path]:
        """Where this process keeps its runs: the first one's are those that stay."""
        with tempfile.TemporaryDirectory() as scratch:
            place = out if self.number == 0 else Path(scratch)
            for job in jobs if self.number else ():
                if (out / job).is_dir():
                    shutil.copytree(out / job, place / job)
            try:
                _check_alike(place, jobs)  # which waits for all, before the first one writes
                yield place
                multihost_utils.sync_global_devices("written")  # whoever returns finds all of it
            except (jax.errors.JaxRuntimeError, ValueError) as error:
                # Some of what a collective operation raises comes as a ValueError.
                if not isinstance(error, jax.errors.JaxRuntimeError) and "Gloo" not in str(error):
                    raise
                raise Lost(
                    "another process of --hosts has ended; start the same command on each again, "
                    "and they go on from the last checkpoint"
                ) from None


def _check_alike(place: Path, jobs: Sequence[str]) -> None:
    """One that began elsewhere, or with other runs, would leave the others waiting for ever."""
    mark = 0
    for job in jobs:
        file = place / job / CHECKPOINT
        content = file.read_bytes() if file.exists() else b""
        mark = zlib.crc32(job.encode() + content, mark)
    marks = np.ravel(multihost_utils.process_allgather(np.uint32(mark)))
    if other := [str(number) for number, each in enumerate(marks) if each != marks[0]]:
        raise ValueError(
            f"--hosts: process {', '.join(other)} has other runs or checkpoints than process 0; "
            "give each the same flags, with DATA and OUT on a file system that all of them see"
        )
