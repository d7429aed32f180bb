"""A Ray cluster of several nodes on this machine, to try faults on: Ray's own test cluster.

python tools/ray_cluster.py [--nodes 3] [--gpus 0] [--head-cores 1]

Prints its address, then takes a line at a time: "kill" ends one worker node at once, as a machine
that fails, "add" starts another, and the end of the input ends the cluster. Each node has one core
and a small object store; nothing is sent to anybody, and no page is served.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
STORE = 80 << 20  # bytes of a node's object store


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=3, help="how many, the head among them")
    parser.add_argument("--gpus", type=int, default=0, help="accelerators the last node claims")
    parser.add_argument("--head-cores", type=int, default=1, help="0 = the head takes no task")
    arguments = parser.parse_args()
    os.environ.update(QUIET)
    from ray.cluster_utils import Cluster

    size: dict[str, Any] = {"num_cpus": 1, "object_store_memory": STORE}
    head = {**size, "num_cpus": arguments.head_cores, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    workers = []
    for k in range(1, arguments.nodes):
        own = arguments.gpus if k == arguments.nodes - 1 else 0
        workers.append(cluster.add_node(**size, num_gpus=own))
    print(cluster.address, flush=True)
    for line in sys.stdin:
        if line.strip() == "kill":
            cluster.remove_node(workers.pop(), allow_graceful=False)
        elif line.strip() == "add":
            workers.append(cluster.add_node(**size))
        print(len(workers) + 1, flush=True)
    cluster.shutdown()


class RayCluster:
    """The program, from another one."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process, self.pid = process, process.pid
        self.address = self._line()

    def tell(self, word: str) -> int:
        """How many nodes there are then."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()
        return int(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line:
            raise RuntimeError(f"the cluster ended with code {self._process.wait()}")
        return line


@contextmanager
def running(nodes: int = 3, gpus: int = 0, head_cores: int = 1) -> Iterator[RayCluster]:
    """Such a cluster, and the variables with which drivers may reach it."""
    before = dict(os.environ)
    os.environ.update(QUIET)
    sizes = {"--nodes": nodes, "--gpus": gpus, "--head-cores": head_cores}
    words = [str(word) for pair in sizes.items() for word in pair]
    command = [sys.executable, __file__, *words]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    try:
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, **pipes) as process:
            try:
                yield RayCluster(process)
            finally:
                process.stdin.close()  # type: ignore[union-attr]
                process.wait(60)
    finally:
        os.environ.clear()
        os.environ.update(before)


if __name__ == "__main__":
    main()
