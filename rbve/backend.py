"""How JAX runs here. Call before JAX starts its backend; devices are counted only then."""

from __future__ import annotations

import contextlib
import ctypes
import os
from pathlib import Path

# Pools that the C library allocates from, by default up to eight a core. What a thread frees stays
# in its pool: a process that trains again and again grew by 60 MB a run of convolutions. Two keep
# threads from waiting for each other; compiled programs allocate little, and seldom.
ARENAS = 2
M_ARENA_MAX = -8  # of mallopt(3)
# Seconds from which on a compiled program is kept; JAX reads the variable of this name.
MIN_COMPILE_TIME = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"


def prepare(least: int = 1) -> None:
    """One JAX device per core, and compiled programs kept between runs.

    Small networks gain nothing from threads inside one program: hand-over costs more than it
    saves. (Large products, such as those of convolutions, still take several on one device.)
    Independent members on one device each use all cores, and so do batches of images split over
    devices. There are `least` devices at least. Of the process it limits malloc's pools.
    """
    os.environ.setdefault("PJRT_NPROC", "1")
    limit_arenas()
    import jax

    if not jax.config.values.get("jax_compilation_cache_dir"):
        if folder := cache_folder():
            jax.config.update("jax_compilation_cache_dir", str(folder / "xla"))
        if MIN_COMPILE_TIME not in os.environ:
            jax.config.update(MIN_COMPILE_TIME.lower(), 0.5)
    try:
        jax.config.update("jax_num_cpu_devices", max(least, len(os.sched_getaffinity(0))))
    except RuntimeError:  # the backend runs already: use the devices it has
        return


def limit_arenas() -> None:
    if {"MALLOC_ARENA_MAX", "GLIBC_TUNABLES"} & os.environ.keys():
        return  # somebody has chosen
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library than glibc
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, ARENAS)


def platform() -> str:
    """Where programs run that are traced now: cpu, gpu or tpu."""
    import jax

    chosen = jax.config.values.get("jax_default_device")
    if chosen is None:
        return jax.default_backend()
    return chosen if isinstance(chosen, str) else chosen.platform


def cache_folder() -> Path | None:
    """Where compiled programs are kept; None where the user has no folder to write to."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rbve"
        folder.mkdir(parents=True, exist_ok=True)
    except (RuntimeError, OSError):  # a user without a home, or with one that is not theirs
        return None
    return folder if os.access(folder, os.W_OK | os.X_OK) else None
