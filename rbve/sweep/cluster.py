"""Where a cluster is, what a task asks of it, and how it is doing: for executors that use one."""

from collections.abc import Callable, Sequence
from typing import NamedTuple


class NodeStatus(NamedTuple):
    name: str
    cores: float
    tasks: int  # at work
    finished: int  # tasks
    updates: int  # done there
    alive: bool


class Status(NamedTuple):
    nodes: Sequence[NodeStatus]
    waiting: int  # members in no task yet
    queued: int  # tasks that no node has begun
    retried: int  # tasks
    reason: str  # of the last retry


class Cluster(NamedTuple):
    """A Ray cluster to train on.

    Attributes:
        address: "local" = this machine, started and ended with the work; "auto" = the one that runs
            here; else HOST:PORT of its head.
        gpus: Accelerators that each task asks for: a share of one, or several; 0 = cores alone.
        on_status: Called about every second.
    """

    address: str = "local"
    gpus: float = 0.0
    on_status: Callable[[Status], None] = lambda status: None


def on_cluster(where: str | Cluster | None) -> Cluster | None:
    """By its address alone, too."""
    return Cluster(where) if isinstance(where, str) else where
