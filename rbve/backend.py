"""How JAX runs here. Call before JAX starts its backend; afterwards it changes nothing."""

from __future__ import annotations

import contextlib
import ctypes
import os
from pathlib import Path

# Pools that the C library allocates from, by default eight a core; what programs free in one stays
# there, and a process that trains again and again grows by 60 MB a run of convolutions.
ARENAS = 2
M_ARENA_MAX = -8  # of mallopt(3)


def prepare(least: int = 1) -> None:
    """One JAX device per core, and compiled programs kept between runs.

    Small networks gain nothing from threads inside one program: hand-over costs more than it
    saves. (Large products, such as those of convolutions, still take several on one device.)
    Independent members on one device each use all cores, and so do batches of images split over
    devices. There are `least` devices at least.
    """
    os.environ.setdefault("PJRT_NPROC", "1")
    limit_arenas()
    import jax

    if not jax.config.values.get("jax_compilation_cache_dir"):
        jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "xla"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
    try:
        jax.config.update("jax_num_cpu_devices", max(least, len(os.sched_getaffinity(0))))
    except RuntimeError:  # the backend runs already: use the devices it has
        return


def limit_arenas() -> None:
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library than glibc
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, ARENAS)


def platform() -> str:
    """Where programs run that are traced now: cpu, gpu or tpu."""
    import jax

    chosen = jax.config.values.get("jax_default_device")
    if chosen is None:
        return jax.default_backend()
    return chosen if isinstance(chosen, str) else chosen.platform


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "rbve"
