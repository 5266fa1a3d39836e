"""What a job holds and cannot use yet: how long that was. [QUEUE-1] [QUEUE-2] [QUEUE-3]"""

from __future__ import annotations

from penstock.domain.users import User
from penstock.usecases import jobs, settling
from penstock.web import views
from tests.twin.world import Twin
from tests.usecases.test_one_job import finish, hello, job_of, submit

UNUSED = tuple[int, str, str, float, float]


def held(twin: Twin, job: str) -> list[UNUSED]:
    """What `penstock job timings` shows, in whole seconds: making an id takes a millisecond."""
    row = job_of(twin, job)
    shown = views.timings(row, jobs.every_lease(twin.on, row), twin.world.now()).held
    return [(one.attempt, one.name, one.type, round(one.seconds), round(one.unused_seconds)) for one in shown]


def test_a_job_is_told_how_long_what_it_held_was_not_used(twin: Twin, ada: User) -> None:
    first = submit(twin, ada, resources=["licence"])
    second, third = submit(twin, ada, resources=["bench", "licence"]), submit(twin, ada, resources=["licence"])
    twin.run()
    twin.pass_time(100)
    hello(twin, first)
    twin.pass_time(20)
    assert held(twin, second) == [(1, "bench", "bench", 120, 120)]
    assert held(twin, third) == [(1, "licence", "licence", 120, 120), (1, "worker", "linux", 120, 120)]
    finish(twin, first)
    twin.pass_time(5)
    assert held(twin, first) == [(1, "licence", "licence", 120, 100), (1, "worker", "linux", 120, 100)]
    assert held(twin, second) == [
        (1, "bench", "bench", 125, 125), (1, "licence", "licence", 5, 5), (1, "worker", "linux", 5, 5)
    ]  # fmt: skip


def test_each_attempt_is_told_by_itself(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    twin.pass_time(60)
    settling.settle(twin.on, job, 1, "Lost", "its flow ended")
    twin.run()
    twin.pass_time(5)
    hello(twin, job)
    twin.pass_time(30)
    finish(twin, job)
    assert held(twin, job) == [
        (1, "bench", "bench", 60, 60), (1, "worker", "linux", 60, 60),
        (2, "bench", "bench", 35, 5), (2, "worker", "linux", 35, 5),
    ]  # fmt: skip
