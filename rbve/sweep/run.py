"""Jobs by the hand of an executor: plan, run, and one line about what could not be trained."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import jax

from rbve import backend
from rbve.data.dataset import Dataset
from rbve.files import allow_open_files
from rbve.spec import Spec
from rbve.sweep.cluster import Cluster
from rbve.sweep.executors import CLUSTER, DEFAULT, EXECUTORS
from rbve.sweep.hosts import Hosts
from rbve.sweep.plan import Stores, bundles
from rbve.sweep.worker import OnProgress, run_bundle
from rbve.training.run import check_devices


def run_jobs(
    jobs: Sequence[Spec],
    out: Path,
    on_progress: OnProgress = lambda progress: None,
    datasets: Mapping[str, Dataset] | None = None,
    devices: int = 1,
    executor: str = DEFAULT,
    cluster: Cluster | None = None,
    hosts: Hosts | None = None,
) -> list[Path]:
    """Train every job that is not finished, equal ones once; returns their folders, in order.

    What is in a job's folder, below `out`, is resumed. `datasets` are opened stores by path, for
    data that is not on disk; over `devices` every job's batches are split; on a `cluster` if one is
    given, or with the processes that join `hosts`. ValueError where a job cannot be trained so, or,
    after all others were, where some could not be.
    """
    if hosts is not None:
        if cluster is not None or executor != DEFAULT or datasets:
            raise ValueError(
                "--hosts is of processes that you start, and data by path; leave --cluster and "
                "--executor out"
            )
        return _with_hosts(jobs, out, on_progress, devices, hosts)
    if cluster is not None and executor == DEFAULT:
        executor = CLUSTER
    chosen = EXECUTORS.load(executor)
    if cluster is not None and not hasattr(chosen, "run_on"):
        raise ValueError(f"executor {executor!r} is of one machine; leave it or --cluster out")
    if datasets and not getattr(chosen, "IN_PROCESS", False):
        raise ValueError(
            f"executor {executor!r} works in other processes, which cannot read a dataset held in "
            "memory; write it with rbve.data.write and give its path, or use executor 'threads'"
        )
    backend.prepare(devices)
    jobs = [job.resolved() for job in jobs]
    for job in jobs:
        check_devices(devices, jax.local_device_count(), job.sampling.batch_size)
    stores = Stores(dict(datasets or {}))
    # Workers go by absolute paths: ViZDoom changes the working directory while it starts.
    home = out.absolute()
    planned = bundles(jobs, home, stores, chosen.workers(devices), devices)
    allow_open_files(sum(len(bundle.jobs) for bundle in planned))
    failures: list[str] = []
    if planned and cluster is not None:
        failures = chosen.run_on(planned, home, on_progress, stores, cluster)
    elif planned:
        failures = chosen.run(planned, home, on_progress, stores)
    if failures:
        raise ValueError(f"all other runs are trained; {'; '.join(failures)}")
    return [out / job.id for job in jobs]


def _with_hosts(
    jobs: Sequence[Spec], out: Path, on_progress: OnProgress, devices: int, hosts: Hosts
) -> list[Path]:
    """One bundle after another, in each process alike."""
    hosts.join(devices)
    jobs = [job.resolved() for job in jobs]
    stores = Stores()
    with hosts.folder(out.absolute(), [job.id for job in jobs]) as home:
        for bundle in bundles(jobs, home, stores, 1, devices):
            run_bundle(bundle, home, on_progress if hosts.number == 0 else _silent, stores)
    return [out / job.id for job in jobs]


def _silent(progress: object) -> None:
    """The first process tells."""
