"""To a Ray cluster and away from it again, as it was; every failure is one line."""

import contextlib
import functools
import os
import secrets
import shutil
import signal
import socket
import tempfile
import threading
import warnings
from collections.abc import Iterator
from typing import Any

_LOCAL, _AUTO = "local", "auto"
_OBJECTS = 128 << 20  # bytes of the object store of a cluster that is started here
_REACHED = 10.0  # seconds to reach a cluster
# Nothing is sent to anybody, and Ray shows no page.
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1"}


@contextlib.contextmanager
def connected(address: str) -> Iterator[tuple[Any, int]]:
    """The package, connected, and the bytes that a node's object store takes of /dev/shm.

    A program that is connected already stays so, whatever the address. Raises ValueError where the
    address is none or does not answer, ImportError without Ray.
    """
    if address not in (_LOCAL, _AUTO) and not _is_place(address):
        raise ValueError(f"--cluster takes local, auto or HOST:PORT; got {address!r}")
    with contextlib.ExitStack() as stack:
        stack.enter_context(_environment(address))
        ray = _imported()
        if not ray.is_initialized():
            if address not in (_LOCAL, _AUTO):
                _reach(address)
            stack.enter_context(_session(ray, address))
        yield ray, max(int(each["Resources"].get("object_store_memory", 0)) for each in ray.nodes())


def one_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines)[:400] or type(error).__name__


def _is_place(address: str) -> bool:
    host, _, port = address.rpartition(":")
    return bool(host) and port.isdigit() and "/" not in address


def _imported() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import ray
            import ray.util.scheduling_strategies
    except ImportError:
        raise ImportError('--cluster needs Ray: pip install "rbve[ray]"') from None
    return ray


def _reach(address: str) -> None:
    """Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _REACHED).close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(
            f"no Ray cluster answers at {address} ({reason}); `ray start --head` says its address"
        ) from None


@contextlib.contextmanager
def _session(ray: Any, address: str) -> Iterator[None]:
    main = threading.current_thread() is threading.main_thread()
    handlers = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    scratch = tempfile.mkdtemp(prefix="rbve-ray-") if address == _LOCAL else ""
    options: dict[str, Any] = {"address": address, "log_to_driver": False}
    if scratch:
        cores = len(os.sched_getaffinity(0))
        options |= {"num_cpus": cores, "object_store_memory": _OBJECTS, "_temp_dir": scratch}
        options |= {"include_dashboard": False}
    try:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    ray.init(configure_logging=False, **options)
                except RuntimeError:
                    if not scratch:
                        raise
                    # Another cluster that started meanwhile may have taken its port.
                    ray.shutdown()
                    ray.init(configure_logging=False, **options)
        except ConnectionError:
            raise ValueError(
                "no Ray cluster runs here; start one with `ray start --head`, give --cluster "
                "HOST:PORT of one elsewhere, or --cluster local for the cores of this machine"
            ) from None
        except (RuntimeError, ValueError, OSError, TimeoutError) as error:
            raise ValueError(f"Ray cluster {address}: {one_line(error)}") from None
        finally:
            if main:  # Ray takes SIGTERM over
                for number, handler in handlers.items():
                    signal.signal(number, handler)
        yield
    finally:
        ray.shutdown()
        if scratch:
            shutil.rmtree(scratch, ignore_errors=True)


_reached_without: list[str] = []  # clusters of others, in this process


@contextlib.contextmanager
def _environment(address: str) -> Iterator[None]:
    """Of a cluster started here: a secret of its own, so that nobody else gives it work."""
    own = dict(_QUIET)
    if address == _LOCAL and "RAY_AUTH_MODE" not in os.environ:
        if _reached_without:
            raise ValueError(
                "--cluster local has a secret, which Ray reads once in a process, and this one was "
                f"on the cluster {_reached_without[0]} before; start another process for it"
            )
        own |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": _secret()}
    elif address != _LOCAL:
        _reached_without.append(address)
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


@functools.cache
def _secret() -> str:
    """One for this process: Ray reads it once."""
    return secrets.token_hex(32)
