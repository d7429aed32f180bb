"""On all devices of this process, a thread each: every core, or every accelerator."""

from collections.abc import Sequence
from pathlib import Path

import jax

from rbve.sweep.devices import on_all_devices
from rbve.sweep.plan import Bundle, Stores
from rbve.sweep.worker import OnProgress, run_bundle
from rbve.training.member import Damaged

IN_PROCESS = True


def workers(devices: int) -> int:
    return jax.local_device_count() // devices


def run(bundles: Sequence[Bundle], out: Path, on_progress: OnProgress, stores: Stores) -> list[str]:
    """A device takes the next bundle when it is free; after an error none is begun."""
    failures: list[str] = []

    def work(bundle: Bundle) -> None:
        try:
            run_bundle(bundle, out, on_progress, stores)
        except Damaged as error:
            failures.append(str(error))

    on_all_devices(work, bundles, bundles[0].devices)
    return failures
