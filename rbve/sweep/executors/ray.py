"""On a Ray cluster (--cluster), where a lost worker or node costs minutes and no result."""

import math
import os
import secrets
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jax

from rbve import stopping
from rbve.files import append_json, locked
from rbve.spec import Spec
from rbve.sweep import child, copies, node
from rbve.sweep.cluster import Cluster, NodeStatus, Status
from rbve.sweep.connection import connected, one_line
from rbve.sweep.packing import Queue
from rbve.sweep.plan import Bundle, Stores
from rbve.sweep.worker import OnProgress
from rbve.training.run import Progress, is_finished

FAILURES = "failures.jsonl"  # OUT/failures.jsonl: why tasks were tried again
_ATTEMPTS = 3  # of a job whose worker or node is lost; its code may fail once less
_SECONDS, _STATUS_SECONDS = 0.2, 1.0  # between two looks
_LEAVING = 60.0  # seconds in which cancelled tasks save
_BUSY = 2.0  # seconds until a task is tried again whose folder is still in use
# Variables that change what is computed: a task has those of this process.
_SETTINGS = ("JAX_", "XLA_")
_ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}


def workers(devices: int) -> int:
    """Programs stay whole here: run_on() cuts them by how long their members take."""
    del devices
    return 1


def run(bundles: Sequence[Bundle], out: Path, on_progress: OnProgress, stores: Stores) -> list[str]:
    return run_on(bundles, out, on_progress, stores, Cluster())


def run_on(
    bundles: Sequence[Bundle],
    out: Path,
    on_progress: OnProgress,
    stores: Stores,
    cluster: Cluster,
) -> list[str]:
    """What is lost is tried again, from its checkpoints; after an error none is begun.

    Results and progress are files in `out`, which all nodes see; data that a node does not see is
    copied to it. The cluster is left as it was, whatever ends this.
    """
    del stores  # workers open their own
    folder = out / child.FOLDER
    with locked(folder):
        folder.mkdir(exist_ok=True)
        for left in folder.iterdir():  # of a driver that was killed
            left.unlink()
        try:
            with connected(cluster.address) as (ray, shared_memory):
                driver = _Driver(ray, bundles, out, on_progress, cluster)
                with _token(folder) as token:
                    return driver.run(token, shared_memory)
        finally:
            with suppress(OSError):  # the logs of those that failed
                folder.rmdir()


@contextmanager
def _token(folder: Path) -> Iterator[str]:
    file = folder / f"{secrets.token_hex(4)}.token"
    file.touch()
    try:
        yield file.name
    finally:
        file.unlink(missing_ok=True)


@dataclass
class _Task:
    bundle: Bundle
    file: Path
    follower: child.Follower
    node: str = ""  # id of its node, once it has begun
    told: float = 0.0  # when it last told of something
    steps: dict[str, int] = field(default_factory=dict)  # job -> told


@dataclass
class _Node:
    name: str
    cores: float
    finished: int = 0
    updates: int = 0


class _Driver:
    """The loop of one call: submit, follow, judge ends."""

    def __init__(
        self,
        ray: Any,
        bundles: Sequence[Bundle],
        out: Path,
        on_progress: OnProgress,
        cluster: Cluster,
    ) -> None:
        self.ray, self.out, self.on_progress, self.cluster = ray, out, on_progress, cluster
        self.folder = out / child.FOLDER
        self.queue = Queue(bundles)
        self.devices = bundles[0].devices
        # XLA cuts the sums of long products by how many devices there are, and adds the parts: with
        # as many as in this process rows are equal to the last bit, whatever a node has.
        self.threads = jax.local_device_count("cpu")
        self.stores = {
            job.data.path: mark
            for bundle in bundles
            for job in bundle.jobs
            if (mark := copies.mark_of(Path(job.data.path)))
        }
        self.running: dict[Any, _Task] = {}
        self.nodes: dict[str, _Node] = {}
        self.lost: dict[str, int] = {}  # job -> how often
        self.begun = self.retried = 0
        self.reason = ""
        self.again: list[tuple[float, tuple[Spec, ...]]] = []  # when, what
        self.failures: list[str] = []
        self.error: ValueError | None = None
        self.shown = 0.0

    def run(self, token: str, shared_memory: int) -> list[str]:
        self.needs = node.Needs(
            node.versions(), str(self.folder), token, self.stores, shared_memory
        )
        self._look_at_all()
        try:
            while self.running or (self.error is None and (len(self.queue) or self.again)):
                if self.error is None:
                    self._submit()
                self._wait()
                stopping.check()
                for task in self.running.values():
                    self._tell(task)
                self._show()
        finally:
            self._leave()
        if self.error is not None:
            raise self.error
        return self.failures

    def _look_at_all(self) -> None:
        """Before anything is trained: can every node help?"""
        looks = {
            each["NodeID"]: self._at(each["NodeID"], node.look).remote(self.needs)
            for each in self._alive()
        }
        for place, ref in looks.items():
            try:
                found = self.ray.get(ref)
            except self.ray.exceptions.RayTaskError as error:
                raise ValueError(
                    f"a node of the cluster cannot run rbve ({one_line(error.cause or error)}); "
                    'install the same rbve[ray] there: pip install "rbve[ray]"'
                ) from None
            except self.ray.exceptions.RayError:
                continue  # lost meanwhile
            self._check(found)
            if found.note:
                warnings.warn(f"node {found.host}: {found.note}", stacklevel=2)
            self._ship(place, found)

    def _check(self, found: node.Look) -> None:
        if found.wrong:
            raise ValueError(f"node {found.host} {found.wrong}")

    def _ship(self, place: str, found: node.Look) -> None:
        """Copy to a node the stores that it does not see."""
        for path in found.missing:
            receiver = self._at(place, copies.Receiver).remote(self.stores[path])
            for piece in copies.pieces(Path(path)):
                self.ray.get(receiver.write.remote(*piece))
                stopping.check()
            self.ray.get(receiver.finish.remote())
            self.ray.kill(receiver)

    def _at(self, place: str, what: Any) -> Any:
        """A remote function or actor on one node, where it takes no core."""
        strategies = self.ray.util.scheduling_strategies
        where = strategies.NodeAffinitySchedulingStrategy(place, soft=False)
        return self.ray.remote(what).options(num_cpus=0, scheduling_strategy=where)

    def _alive(self) -> list[dict[str, Any]]:
        return [each for each in self.ray.nodes() if each["Alive"]]

    def _slots(self) -> int:
        """How many tasks run at a time."""
        held = [each["Resources"] for each in self._alive()]
        by_cores = sum(int(each.get("CPU", 0)) // self.devices for each in held)
        if not self.cluster.gpus:
            return max(1, by_cores)
        return max(1, int(sum(each.get("GPU", 0) for each in held) / self.cluster.gpus))

    def _submit(self) -> None:
        """Twice as many tasks as can run: those that wait tell an autoscaler of the need."""
        due = [jobs for when, jobs in self.again if time.monotonic() >= when]
        self.again = [each for each in self.again if each[1] not in due]
        for jobs in due:
            self.queue.put_back(jobs)
        slots = self._slots() if len(self.queue) else 0
        while len(self.queue) and len(self.running) < 2 * slots:
            bundle = Bundle(self.queue.take(slots), self.devices, self.stores)
            file = bundle.write(self.folder, f"-{self.begun}")
            self.begun += 1
            options = {"num_cpus": self.devices, "num_gpus": self.cluster.gpus, "max_retries": 0}
            settings = {k: v for k, v in os.environ.items() if k.startswith(_SETTINGS)}
            settings |= {"JAX_NUM_CPU_DEVICES": str(self.threads)}
            task = _Task(bundle, file, child.Follower(file))
            ref = (
                self.ray.remote(node.run)
                .options(**options)
                .remote(
                    self.needs, str(file), str(self.out), settings | _ONE_THREAD, os.getcwd(),
                    self.devices,
                )
            )  # fmt: skip
            self.running[ref] = task

    def _wait(self) -> None:
        if not self.running:
            time.sleep(_SECONDS)
            return
        ready, _ = self.ray.wait(list(self.running), timeout=_SECONDS)
        for ref in ready:
            task = self.running[ref]
            self._tell(task)
            del self.running[ref]
            try:
                self._end(task, ref)
            except ValueError as error:
                self.error = self.error or error

    def _tell(self, task: _Task) -> None:
        """What its worker has written since last asked."""
        jobs = {job.id: job for job in task.bundle.jobs}
        for told in task.follower.lines():
            now = time.monotonic()
            if "node" in told:
                task.node, task.told = told["node"], now
            elif "note" in told:
                warnings.warn(told["note"], stacklevel=2)
            else:
                job, step = jobs[told["job"]], told["step"]
                updates = step - task.steps.get(job.id, self._begin(job, step))
                task.steps[job.id] = step
                self.queue.learn(job, updates, now - task.told)
                task.told = now
                if task.node in self.nodes:
                    self.nodes[task.node].updates += updates
                self.on_progress(Progress(job, step, told["metrics"]))

    @staticmethod
    def _begin(job: Spec, step: int) -> int:
        """Where the interval began that ended at `step`."""
        every = job.evaluation.every
        return (step - 1) // every * every

    def _end(self, task: _Task, ref: Any) -> None:
        try:
            ended = self.ray.get(ref)
        except self.ray.exceptions.RayTaskError as error:
            raise ValueError(f"a task failed: {one_line(error.cause or error)}") from None
        except self.ray.exceptions.RayError as error:
            what = one_line(error).partition(". ")[0]  # Ray goes on with advice of its own
            self._retry(task, f"{type(error).__name__}: {what}", _ATTEMPTS)
            return
        self._check(ended.look)
        if ended.look.missing:
            self._ship(ended.place, ended.look)
            self.queue.put_back(task.bundle.jobs)
        elif ended.code in (0, child.DAMAGED):
            self.failures += [ended.last] if ended.code else []
            if task.node in self.nodes:
                self.nodes[task.node].finished += 1
        elif ended.code == child.FAILED:
            child.remove(task.file)
            raise ValueError(ended.last)
        elif ended.code == child.IN_USE:  # by a worker of a node that was given up, as it saves
            self._retry(task, ended.last, math.ceil(_LEAVING / _BUSY), _BUSY)
        elif name := child.end_of(ended.code):
            self._retry(task, f"worker on {ended.look.host} ended by {name}", _ATTEMPTS)
        else:
            self._retry(task, f"worker on {ended.look.host} failed: {ended.last}", _ATTEMPTS - 1)
            return
        child.remove(task.file)

    def _retry(self, task: _Task, reason: str, attempts: int, wait: float = 0.0) -> None:
        """Those of its jobs that are not finished, at once or after so many seconds."""
        left = tuple(job for job in task.bundle.jobs if not is_finished(self.out / job.id))
        for job in left:
            self.lost[job.id] = self.lost.get(job.id, 0) + 1
        given_up = any(self.lost[job.id] >= attempts for job in left)
        when = datetime.now(UTC).isoformat(timespec="seconds")
        jobs = [job.id for job in left]
        append_json(self.out / FAILURES, {"time": when, "jobs": jobs, "reason": reason})
        if left and given_up:
            words = f"{child.whose(left)} failed {attempts} times: {reason}"
            log = task.file.with_suffix(child.LOG)
            raise ValueError(f"{words}; see {log if log.exists() else self.out / FAILURES}")
        self.retried, self.reason = self.retried + 1, reason
        self.again.append((time.monotonic() + wait, left))

    def _show(self) -> None:
        if time.monotonic() - self.shown < _STATUS_SECONDS:
            return
        self.shown = time.monotonic()
        alive = self._alive()
        for each in alive:
            host, cores = each["NodeManagerHostname"], each["Resources"].get("CPU", 0)
            self.nodes.setdefault(each["NodeID"], _Node(host, cores))
        held = {each["NodeID"] for each in alive}
        begun = [task.node for task in self.running.values() if task.node]
        rows = [
            NodeStatus(
                own.name, own.cores, begun.count(key), own.finished, own.updates, key in held
            )
            for key, own in self.nodes.items()
        ]
        queued = len(self.running) - len(begun)
        waiting = len(self.queue) + sum(len(jobs) for _, jobs in self.again)
        self.cluster.on_status(Status(rows, waiting, queued, self.retried, self.reason))

    def _leave(self) -> None:
        """Interrupted: tasks that wait are taken back, those at work save and end."""
        for ref in self.running:
            with suppress(self.ray.exceptions.RayError):  # the cluster itself is gone
                self.ray.cancel(ref)
        if self.running:
            self.ray.wait(list(self.running), num_returns=len(self.running), timeout=_LEAVING)
        for task in self.running.values():
            child.remove(task.file)
        self.running.clear()
