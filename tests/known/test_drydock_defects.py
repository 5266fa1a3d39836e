"""What reading Drydock's source shows to be wrong there, by the letters of docs/internals/known-violations.md."""

from __future__ import annotations

import pytest

from penstock.domain.jobs.jobs import Outcome, State
from penstock.domain.users.users import User
from penstock.kernel.errors import Misconfigured
from penstock.ports import NotYet
from penstock.usecases.jobs import cancel
from penstock.usecases.pools import scheduler
from tests.known import breaks, breaks_later
from tests.known.caught import fails_with
from tests.known.races import grants, just_before
from tests.known.site import Known, assert_nothing_is_left, holders
from tests.usecases.steps import hello, job_of, run_to_end, submit, sweep

WEEK = 7 * 24 * 3600


@fails_with(breaks.keeps_a_lock)
def test_defect_a_an_error_leaves_the_resource_locked(twin: Known, ada: User) -> None:
    """acquireOnResource: an exception between GET_LOCK and the try left the lock taken. QUEUE-1"""
    first = submit(twin, ada, resources=["bench"])

    def breaks_down() -> None:
        raise ConnectionError("the table cannot be reached")

    with pytest.MonkeyPatch.context() as patch, pytest.raises(ConnectionError):  # noqa: PT012
        patch.setattr(scheduler, "DIRECT_TRIES", 0)
        with just_before(twin, grants, breaks_down):
            twin.run()
    second = submit(twin, ada, resources=["bench"])
    twin.run()
    sweep(twin)
    assert holders(twin, "resource/bench") == {"bench-1": first}, "who comes by next serves both"
    run_to_end(twin, first)
    assert holders(twin, "resource/bench") == {"bench-1": second}


@fails_with(breaks.waits_for_one_slot)
def test_defect_b_a_denied_reclaim_is_waited_for_for_ever(twin: Known, ada: User) -> None:
    """removeReclaimedResourcePHIDs is never called: the lease waits for that one, whatever else is free. QUEUE-1"""
    made = [submit(twin, ada, resources=["licence"]) for _ in range(3)]
    twin.run()
    other = holders(twin, "resource/licence")["2"]
    run_to_end(twin, other)
    assert holders(twin, "resource/licence").get("2") == made[2]


@fails_with(breaks_later.outlives_its_lease)
def test_defect_c_a_resource_nobody_wants_any_more_is_built_on(twin: Known, ada: User) -> None:
    """It then sat idle until somebody reclaimed it. UNIT-1"""
    twin.well.says = [NotYet(60, "it is being built")]
    first, second = (submit(twin, ada, resources=["bench"]) for _ in range(2))
    twin.run()
    cancel.cancel(twin.on, ada, first)
    twin.run()
    assert holders(twin, "resource/bench") == {"bench-1": second}, "at once"
    twin.pass_time(61)
    twin.run()
    assert len(twin.well.asked) == 2, "the first one's build is not gone on with"
    run_to_end(twin, second)
    assert_nothing_is_left(twin)


@fails_with(breaks.waits_without_deadline)
def test_defect_d_a_build_that_hangs_is_waited_for_for_ever(twin: Known, ada: User) -> None:
    """A pending resource parked its lease without any timeout. JOB-1"""
    twin.well.says = [NotYet(24 * 3600, "it is being built")] * 100
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    sweep(twin, WEEK)
    assert job_of(twin, job).state is State.SETTLED
    assert job_of(twin, job).end.outcome is Outcome.ERRORED
    assert "bench to be made ready (it is being built)" in str(job_of(twin, job).end.reason)
    assert_nothing_is_left(twin)


@fails_with(breaks_later.frees_without_serving)
def test_defect_e_a_release_wakes_nobody(twin: Known, ada: User) -> None:
    """Who waited for the slot of a lease found out by polling. QUEUE-1"""
    first, second = (submit(twin, ada, resources=["bench"]) for _ in range(2))
    twin.run()
    run_to_end(twin, first)
    assert holders(twin, "resource/bench") == {"bench-1": second}, "without any sweep"
    hello(twin, second)


@fails_with(breaks_later.errors_are_final)
def test_defect_f_one_plain_error_breaks_the_lease(twin: Known, ada: User) -> None:
    """Though building another resource, or trying again, might have worked. JOB-1"""
    twin.well.says = [Misconfigured("the image is being replaced")]
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    assert not job_of(twin, job).is_settled
    sweep(twin, 91)
    run_to_end(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED
    assert_nothing_is_left(twin)
