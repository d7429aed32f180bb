"""How JAX runs here, set up when the first work begins: importing rbve changes no setting."""

import contextlib
import ctypes
import functools
import os
import warnings
from pathlib import Path

# Pools that the C library allocates from, by default up to eight a core. What a thread frees stays
# in its pool: a process that trains again and again grew by 60 MB a run of convolutions. Two keep
# threads from waiting for each other; compiled programs allocate little, and seldom.
_ARENAS = 2
_M_ARENA_MAX = -8  # of mallopt(3)
# Seconds from which on a compiled program is kept; JAX reads the variable of this name.
MIN_COMPILE_TIME = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"
_DEVICES = "jax_num_cpu_devices"
_CACHE_BYTES = 1 << 30  # of compiled programs that are kept


def prepare(least: int = 1, exactly: bool = False) -> None:
    """One JAX device per core, and compiled programs kept between runs.

    Small networks gain nothing from threads inside one program: hand-over costs more than it
    saves. (Large products, such as those of convolutions, still take several on one device.)
    Independent members on one device each use all cores, and so do batches of images split over
    devices. There are `least` devices at least, or `exactly` so many. Of the process it limits
    malloc's pools. Settings that somebody has made stay as they are.
    """
    os.environ.setdefault("PJRT_NPROC", "1")
    _limit_arenas()
    import jax

    if not jax.config.values.get("jax_compilation_cache_dir"):
        if folder := cache_folder():
            jax.config.update("jax_compilation_cache_dir", str(folder / "xla"))
            _prune(folder / "xla", _CACHE_BYTES)
        if MIN_COMPILE_TIME not in os.environ:
            jax.config.update(MIN_COMPILE_TIME.lower(), 0.5)
    if jax.config.values.get(_DEVICES, -1) > 0:
        return
    cores = least if exactly else max(least, len(os.sched_getaffinity(0)))
    try:
        jax.config.update(_DEVICES, cores)
    except RuntimeError:  # the backend runs already: use the devices it has
        if jax.default_backend() == "cpu" and jax.local_device_count() < cores:
            _warn_late(jax.local_device_count(), cores)


@functools.cache
def _warn_late(devices: int, cores: int) -> None:
    warnings.warn(
        f"JAX was at work before rbve and has {devices} device{'s' * (devices > 1)} on {cores} "
        f"cores, so that not all of them train; before the first JAX operation of the program, "
        f"call rbve.backend.prepare() or jax.config.update('{_DEVICES}', {cores})",
        stacklevel=4,
    )


def _limit_arenas() -> None:
    """Two pools of malloc for all threads, unless somebody has chosen."""
    if {"MALLOC_ARENA_MAX", "GLIBC_TUNABLES"} & os.environ.keys():
        return
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library than glibc
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


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


def _prune(folder: Path, most: int) -> None:
    """Drop the files used longest ago, down to three quarters of `most` bytes if there are more.

    JAX's own limit needs another package, and reads a file per program whenever it keeps one.
    """
    files = []
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            with contextlib.suppress(OSError):  # another process drops files too
                stat = entry.stat()
                files.append((max(stat.st_atime, stat.st_mtime), stat.st_size, entry.path))
    held = sum(size for _, size, _ in files)
    if held <= most:
        return
    for _, size, path in sorted(files):
        if held <= most * 3 // 4:
            return
        with contextlib.suppress(OSError):
            os.unlink(path)
        held -= size
