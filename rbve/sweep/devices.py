"""Work on all devices of this process, a thread each."""

import collections
import threading
from collections.abc import Callable, Sequence
from typing import Any

import jax

from rbve import backend, stopping


def on_all_devices(work: Callable[[Any], None], items: Sequence[Any], each: int = 1) -> None:
    """Call work(item) for all items, one at a time per device, or per `each` devices.

    After an error no item is begun; it is raised once the items at work are done. Interrupted, it
    asks them to stop (rbve/stopping.py) and waits until they have.
    """
    backend.prepare()
    waiting = collections.deque(items)
    errors: list[BaseException] = []

    def serve(device: jax.Device, ended: threading.Event) -> None:
        try:
            with jax.default_device(device):
                while not errors:
                    try:
                        item = waiting.popleft()
                    except IndexError:
                        return
                    work(item)
        except BaseException as error:
            errors.append(error)
        finally:
            ended.set()

    local = jax.local_devices()
    devices = local[: len(local) // each * each : each][: max(1, len(items))]
    ends = [(device, threading.Event()) for device in devices]
    threads = [(threading.Thread(target=serve, args=each), each[1]) for each in ends]

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
