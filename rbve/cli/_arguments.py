"""What several commands take."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import arg

from rbve import envs
from rbve.loggers import LOGGERS
from rbve.sweep.cluster import Cluster
from rbve.sweep.executors import EXECUTORS

_ENVS = ", ".join([*envs.names(), *(f"{each}:ID" for each in envs.ADAPTERS)])

_OWN = "gymnasium:MODULE:ID for one of your own, which MODULE registers (here or in PYTHONPATH)"
_FILE = "Algorithm file of a saved policy, needed where it has scores of its own."
_LEGAL = (
    "All actions are legal, where the policy's data has masks and the environment none; "
    "masks of an environment are used."
)
_WHERE = "; ".join(f"{name}: {EXECUTORS.summary(name)}" for name in EXECUTORS.names())
EnvName = Annotated[str, arg(help=f"Environment: {_ENVS}; {_OWN}.", metavar="ENV")]
AlgorithmFile = Annotated[Path | None, arg(help=_FILE, metavar="FILE")]
Legal = Annotated[Literal["all"] | None, arg(help=_LEGAL)]
ExecutorName = Annotated[str, arg(help=f"Where members train: {_WHERE}.", metavar="NAME")]
_CLUSTER = (
    "Train on a Ray cluster: local (the cores of this machine), auto (the cluster that runs here) "
    "or HOST:PORT of its head; --out must lie on a file system that all nodes share. Run the same "
    "command again after a fault. docs/clusters.md tells more."
)
_GPUS = "With --cluster: accelerators that each task asks for, a share of one or several."
ClusterName = Annotated[str | None, arg(help=_CLUSTER, metavar="WHERE")]
Gpus = Annotated[float, arg(help=_GPUS, metavar="N")]
_HOSTS = (
    "Share every batch with processes on other machines that see the same DATA and OUT: the same "
    "command on each, with HOST:PORT,COUNT,INDEX, where the first listens, how many there are and "
    "which this is, from 0. --devices counts those of all."
)
HostsText = Annotated[str | None, arg(help=_HOSTS, metavar="HOST:PORT,COUNT,INDEX")]
_LOGS = "; ".join(f"{name}: {LOGGERS.summary(name)}" for name in LOGGERS.names())
_LOG = f"Where rows go besides OUT while members train: {_LOGS}."
LogNames = Annotated[tuple[str, ...], arg(help=_LOG, metavar="NAME")]
Json = Annotated[bool, arg(name="json", help="Print figures as JSON.")]


def find_modules_here(env: str | None) -> None:
    """Lets a user's 'gymnasium:MODULE:ID' be found in the working directory, as by `python -m`."""
    kind, *rest = (env or "").split(":")
    if kind == "gymnasium" and len(rest) > 1 and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))


def cluster_of(where: str | None, gpus: float, on_status: Any) -> Cluster | None:
    """What --cluster and --gpus ask for."""
    if where is None and gpus:
        raise ValueError("--gpus is of a cluster; add --cluster auto, or leave it out")
    if gpus < 0:
        raise ValueError(f"--gpus is a number of accelerators, 0 or more; got {gpus:g}")
    return None if where is None else Cluster(where, gpus, on_status)


def need_one(name: str, values: Sequence[Any]) -> None:
    if len({*values}) < len(values):
        raise ValueError(f"{name} names a value twice")
    if not values:
        raise ValueError(f"{name} needs at least one value; add --help to see what it takes")
