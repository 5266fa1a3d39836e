"""What we say ourselves of one job has a bound, and how the job ended is told all the same."""

from __future__ import annotations

from penstock.domain.logs.logs import SERVICE_EVENTS, SERVICE_LIMIT_NOTICE, Batch
from penstock.domain.users.users import User
from penstock.testing.twin import Twin
from penstock.usecases.logs import logs
from tests.usecases.exact import put
from tests.usecases.steps import finish, hello, submit, told


def test_a_job_that_is_handed_over_and_back_for_weeks_has_a_bounded_log(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    before = logs.count(twin.on, job)
    for _ in range(SERVICE_EVENTS // 1000 + 1):
        logs.append(twin.on, job, 1, "\n".join(["handed over"] * 1000))
    for _ in range(3):
        logs.append(twin.on, job, 1, "handed back")
    full = logs.count(twin.on, job)
    assert full == SERVICE_EVENTS + 1 > before
    twin.run()
    hello(twin, job)
    assert logs.count(twin.on, job) == full, "nobody is told of the worker any more"
    finish(twin, job)
    told = [event.line.payload for event in logs.read(twin.on, job, full - 1, 100)]
    assert told[0] == SERVICE_LIMIT_NOTICE
    assert told[1].startswith("settled: succeeded")
    assert len(told) == 2, "its clean-up is left out as well"


def test_how_a_job_ended_is_told_also_when_nothing_more_is(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    last = twin.store.find(f"job#{job}", "event#", Batch)[-1]
    put(twin, last, hushed=True)
    finish(twin, job)
    assert [line for line in told(twin, job) if line.startswith("settled: succeeded")]
