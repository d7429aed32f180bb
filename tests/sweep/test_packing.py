"""Tasks of a cluster take minutes, shrink towards the end, and keep programs together."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rbve.spec import Spec
from rbve.sweep.packing import Queue
from rbve.sweep.plan import Bundle

SmallJob = Callable[..., Spec]


@pytest.fixture
def bundles(small_job: SmallJob) -> list[Bundle]:
    """Ten members of one program and four of another, 1,000 updates each."""
    plan = {"steps": 1000}
    first = tuple(small_job("bve", plan, seed=seed) for seed in range(10))
    return [Bundle(first), Bundle(tuple(small_job("rbve", plan, seed=k) for k in range(4)))]


def tasks(queue: Queue, slots: int) -> list[tuple[Spec, ...]]:
    taken = []
    while len(queue):
        taken.append(queue.take(slots))
    return taken


def test_members_of_seconds_share_a_task(bundles: list[Bundle]) -> None:
    queue = Queue(bundles)
    queue.learn(bundles[0].jobs[0], 1000, 10.0)  # 14 members of 10 seconds, the others alike
    sizes = [len(task) for task in tasks(queue, 1)]
    assert sizes == [7, 3, 2, 2]  # half of what is left, 20 seconds at least


def test_a_task_takes_three_minutes_at_most(bundles: list[Bundle]) -> None:
    queue = Queue(bundles)
    queue.learn(bundles[0].jobs[0], 100, 10.0)  # 100 seconds a member
    queue.learn(bundles[1].jobs[0], 1000, 1000.0)  # longer than a task: one at a time
    first, *_, last = tasks(queue, 1)
    assert first == bundles[0].jobs[:1]
    assert last == bundles[1].jobs[3:]


def test_every_member_is_taken_once_in_order(bundles: list[Bundle]) -> None:
    taken = [job for task in tasks(Queue(bundles), 3) for job in task]
    assert taken == [*bundles[0].jobs, *bundles[1].jobs]


def test_what_is_put_back_comes_first_among_its_own(bundles: list[Bundle]) -> None:
    queue = Queue(bundles)
    taken = queue.take(8)
    queue.put_back(taken)
    assert [job for task in tasks(queue, 8) for job in task] == [
        *bundles[0].jobs,
        *bundles[1].jobs,
    ]


def test_a_program_that_has_not_run_goes_by_the_others(bundles: list[Bundle]) -> None:
    queue = Queue(bundles)
    unseen = bundles[1].jobs[0]
    assert queue.seconds(unseen) == pytest.approx(1.0)  # a millisecond an update
    queue.learn(bundles[0].jobs[0], 500, 2.0)
    assert queue.seconds(unseen) == pytest.approx(4.0)
    queue.learn(unseen, 1000, 7.0)
    assert queue.seconds(unseen) == pytest.approx(7.0)
    assert queue.seconds(bundles[0].jobs[0]) == pytest.approx(4.0)
