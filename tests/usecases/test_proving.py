"""Tests of factories, through the real use cases: what is checked, and that nothing is left in any case. [UNIT-1]"""

from __future__ import annotations

import pytest

from penstock.domain.artifacts.volumes import object_name
from penstock.domain.commands import AgentFile, Hello
from penstock.domain.jobs.jobs import Outcome, Proves, Result, State
from penstock.domain.logs.logs import Line
from penstock.domain.pools.pools import Claim, Slot, SlotState
from penstock.domain.probes import factory_test as checks
from penstock.domain.units.units import MAX_SEARCHES, Unit, UnitState, unit_key
from penstock.domain.units.visibility import SEARCH_LATE, SEARCH_SECONDS
from penstock.domain.users.users import User
from penstock.kernel.errors import DriverError, Misconfigured, NoCapacity, RateLimited, Refused
from penstock.kernel.limits import PRIORITY
from penstock.ports import NotYet
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases import cooldowns
from penstock.usecases.artifacts import outputs
from penstock.usecases.jobs import cancel
from penstock.usecases.probes import factory_test
from penstock.usecases.probes.factory_test import Progress
from penstock.usecases.site import apply
from penstock.usecases.units import driver_calls, drivers, maintenance
from penstock.usecases.workers import agents
from tests.usecases.exact import commits, drop
from tests.usecases.races import before_the_next_commit
from tests.usecases.steps import TOKEN, finish, hello, job_of, slots, submit, sweep, worker_of
from tests.usecases.warm import Agent, worker_at_rest

SITE = site_toml(
    factories={"hand": "hand", "other": "hand", "unused": "hand"},
    targets={
        "closed": {"limit": 0},
        "linux": {"limit": 2, "warm": {"max": 2, "idle": "10m"}},
        "default": "linux",
        "mac": {"factory": "other", "limit": 1},
        "shut": {"limit": 1},
    },
)


@pytest.fixture
def twin() -> Twin:
    made = Twin()
    apply.apply(made.on, "admin", SITE, "site.toml")
    made.run()
    return made


def begin(twin: Twin, root: User, **changes: object) -> str:
    ask = {"name": "hand", "target": None, "keep": None, "key": None, **changes}
    job = factory_test.start(twin.on, root, **ask).job  # type: ignore[arg-type]
    twin.run()
    return job


def progress(twin: Twin, root: User, job: str) -> Progress:
    return factory_test.progress(twin.on, root, "hand", job, "1.2")


def oks(twin: Twin, root: User, job: str) -> dict[str, bool | None]:
    return {check.check: check.ok for check in progress(twin, root, job).checks}


def say_hello(twin: Twin, job: str) -> None:
    worker = worker_of(twin, job).id
    agents.hello(
        twin.on, Hello(worker, drivers.bootstrap_key(twin.on.signing_key(), worker), TOKEN, "host", version="1.2")
    )
    twin.run()


def run_as_it_should(twin: Twin, job: str) -> None:
    """What the agent of a good machine does."""
    say_hello(twin, job)
    worker, now = worker_of(twin, job).id, twin.world.now()
    lines = [f"penstock test: job {job} on worker {worker}", checks.AS_DOCUMENTED]
    agents.append_events(
        twin.on, agents.authenticate(twin.on, job, TOKEN), 1, [Line(now, "stdout", each) for each in lines]
    )
    running = agents.authenticate(twin.on, job, TOKEN).job
    made = f"penstock test of job {job}\n".encode()
    file = AgentFile(checks.OUTPUT, size=len(made), sha256=checks.digest(job))
    (upload,) = outputs.begin(twin.on, running, [file]).uploads
    twin.objects.objects[object_name(upload.id)] = made
    outputs.commit(twin.on, running, [upload.id])
    finish(twin, job)


def wait(twin: Twin, seconds: float) -> None:
    twin.pass_time(seconds)
    twin.run()


def test_a_factory_that_works_passes_and_nothing_is_left(twin: Twin, root: User) -> None:
    job = begin(twin, root)
    row = job_of(twin, job)
    assert (row.request.priority, row.owner, row.limits.retries, row.request.target, row.provenance.proves) == (
        PRIORITY, "root", 0, "linux", Proves("hand"),
    )  # fmt: skip
    assert row.request.tags == {checks.TAG: "hand"}
    assert oks(twin, root, job)["listed with its tags"] is True
    assert not progress(twin, root, job).is_over
    run_as_it_should(twin, job)
    found = progress(twin, root, job)
    assert [(check.check, check.detail) for check in found.checks if not check.ok] == []
    assert found.is_over
    assert found.is_passed
    assert worker_of(twin, job).state is UnitState.GONE
    assert not twin.drivers.hand.made
    assert [entry.what for entry in worker_of(twin, job).journal.entries if "list" in entry.what] == [
        "its factory lists it, with our tags",
        "its factory does not list it any more",
    ]


def test_it_gets_a_new_worker_although_one_is_warm_and_its_own_is_not_kept(twin: Twin, ada: User, root: User) -> None:
    warm = [worker_at_rest(twin, ada)]
    job = begin(twin, root)
    assert worker_of(twin, job).id != warm[0].worker
    run_as_it_should(twin, job)
    assert worker_of(twin, job).state is UnitState.GONE
    assert twin.store.get(unit_key(warm[0].worker), Unit).state is UnitState.IDLE  # type: ignore[union-attr]
    assert progress(twin, root, job).is_passed


def test_where_only_warm_workers_are_in_its_way_one_makes_room(twin: Twin, ada: User, root: User) -> None:
    """QUEUE-1: without anything new from outside."""
    both = [submit(twin, ada, target="linux") for _ in range(2)]
    twin.run()
    found = [Agent(twin, worker_of(twin, job).id) for job in both]
    for agent, job in zip(found, both, strict=True):
        agent.hello()
        agent.finish(job)
        agent.hello()
    assert len(twin.store.find("pool#target/linux", "free#warm#", Slot)) == 2
    job = begin(twin, root)
    assert not [row for row in twin.store.rows.values() if isinstance(row, Claim)]
    run_as_it_should(twin, job)
    assert progress(twin, root, job).is_passed


def test_the_agent_of_an_ordinary_job_is_not_looked_for(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, target="linux")
    twin.run()
    hello(twin, job)
    finish(twin, job)
    assert worker_of(twin, job).seen is None


def test_a_list_that_lags_is_asked_again_for_a_minute(twin: Twin, root: User) -> None:
    there, listed = twin.drivers.hand.list, []
    twin.drivers.hand.list = lambda: listed  # type: ignore[method-assign]
    job = begin(twin, root)
    assert oks(twin, root, job)["listed with its tags"] is None
    wait(twin, SEARCH_SECONDS)
    twin.drivers.hand.list = there  # type: ignore[method-assign]
    assert worker_of(twin, job).seen.there.tries == 2  # type: ignore[union-attr]
    wait(twin, SEARCH_SECONDS)
    assert oks(twin, root, job)["listed with its tags"] is True
    assert not [one for one in twin.queues.messages if one[1] == "factory"]


def test_a_machine_without_our_tags_is_found_out_and_destroyed(twin: Twin, root: User) -> None:
    """It works otherwise; but nobody would ever find it if its row were lost."""
    twin.drivers.hand.list = lambda: []  # type: ignore[method-assign]
    job = begin(twin, root)
    for _ in range(MAX_SEARCHES):
        wait(twin, SEARCH_SECONDS)
    assert not twin.queues.messages
    assert oks(twin, root, job)["listed with its tags"] is False
    run_as_it_should(twin, job)
    found = progress(twin, root, job)
    assert found.is_over
    assert not found.is_passed
    assert [check.check for check in found.checks if not check.ok] == ["listed with its tags"]


def test_a_list_that_cannot_be_had_is_why(twin: Twin, root: User) -> None:
    def slow() -> list[str]:
        raise RateLimited("slow down")

    twin.drivers.hand.list = slow  # type: ignore[method-assign]
    job = begin(twin, root)
    (check,) = [one for one in progress(twin, root, job).checks if one.check == "listed with its tags"]
    assert (check.ok, check.detail) == (None, "RateLimited: slow down")


def test_a_machine_that_is_still_listed_is_not_gone(twin: Twin, root: User) -> None:
    job = begin(twin, root)
    worker = worker_of(twin, job).id
    twin.drivers.hand.list = lambda: [worker]  # type: ignore[method-assign]
    run_as_it_should(twin, job)
    assert worker_of(twin, job).state is UnitState.GONE
    assert not progress(twin, root, job).is_over
    for _ in range(MAX_SEARCHES):
        wait(twin, SEARCH_SECONDS)
    assert progress(twin, root, job).is_over
    assert oks(twin, root, job)["not listed any more"] is False
    assert not twin.queues.messages


def test_a_look_whose_message_is_lost_is_made_up_for_by_who_asks(twin: Twin, root: User) -> None:
    twin.drivers.hand.list = lambda: []  # type: ignore[method-assign]
    job = begin(twin, root)
    twin.queues.messages.clear()
    wait(twin, SEARCH_SECONDS)
    progress(twin, root, job)
    assert not twin.queues.messages
    twin.pass_time(SEARCH_LATE.total_seconds() + 1)
    progress(twin, root, job)
    assert [each[1:] for each in twin.queues.messages] == [("factory", {"unit": worker_of(twin, job).id})]
    twin.run()
    assert worker_of(twin, job).seen.there.tries == 2  # type: ignore[union-attr]


def test_the_next_search_is_requested_from_the_function_that_makes_workers(twin: Twin, root: User) -> None:
    twin.drivers.hand.list = lambda: []  # type: ignore[method-assign]
    job = begin(twin, root)
    assert [each[1:] for each in twin.queues.messages] == [("factory", {"unit": worker_of(twin, job).id})]


def test_a_search_for_a_worker_without_a_row_does_nothing(twin: Twin) -> None:
    written = commits(twin)
    driver_calls.check_visibility(twin.on, "w-none")
    assert written == []
    assert not twin.queues.messages


def test_a_worker_whose_row_goes_during_a_search_is_searched_for_no_more(twin: Twin, root: User) -> None:
    listed = list[str]()
    twin.drivers.hand.list = lambda: listed  # type: ignore[method-assign]
    job = begin(twin, root)
    worker = worker_of(twin, job)
    twin.queues.messages.clear()
    twin.pass_time(SEARCH_SECONDS)

    def forget() -> list[str]:
        drop(twin, worker)
        return listed

    twin.drivers.hand.list = forget  # type: ignore[method-assign]
    written = commits(twin)
    driver_calls.check_visibility(twin.on, worker.id)
    assert written == []
    assert not twin.queues.messages


def test_a_worker_that_says_hello_just_before_its_search_is_recorded_stays_ready(twin: Twin, root: User) -> None:
    twin.drivers.hand.list = lambda: []  # type: ignore[method-assign]
    job = begin(twin, root)
    twin.queues.messages.clear()
    twin.pass_time(SEARCH_SECONDS)
    before_the_next_commit(twin, lambda: say_hello(twin, job))
    driver_calls.check_visibility(twin.on, worker_of(twin, job).id)
    found = worker_of(twin, job)
    assert found.state is UnitState.READY
    assert found.seen
    assert found.seen.there.tries == 2


def test_who_said_hello_while_it_was_looked_for_is_still_there(twin: Twin, root: User) -> None:
    """Rule 1: what was seen is written to the row as it is then."""

    def meanwhile() -> list[str]:
        say_hello(twin, job) if worker_of(twin, job).state is UnitState.CREATING else None
        return [worker_of(twin, job).id]

    job = factory_test.start(twin.on, root, "hand", None, None, None).job
    twin.drivers.hand.list = meanwhile  # type: ignore[method-assign]
    twin.run()
    assert worker_of(twin, job).state is UnitState.READY
    assert oks(twin, root, job)["listed with its tags"] is True


def test_what_was_destroyed_while_it_was_looked_for_was_not_seen_missing(twin: Twin, root: User) -> None:
    """A look that began while it was there does not say that it is gone, nor one that ends then that it was there."""
    seen = []

    def meanwhile() -> list[str]:
        twin.drivers.hand.list = lambda: []  # type: ignore[method-assign]
        found = [worker_of(twin, job).id]
        cancel.cancel(twin.on, root, job)
        seen.append(worker_of(twin, job).seen)
        twin.run()
        assert worker_of(twin, job).state is UnitState.GONE
        return found

    job = factory_test.start(twin.on, root, "hand", None, None, None).job
    twin.drivers.hand.list = meanwhile  # type: ignore[method-assign]
    twin.run()
    found = worker_of(twin, job).seen
    assert found
    assert found.there == seen[0].there  # type: ignore[union-attr]
    assert found.gone.found


def test_a_misconfigured_factory_fails_at_once_and_says_why(twin: Twin, root: User) -> None:
    """An ordinary job waits for the operator; here the operator waits for the answer."""
    twin.drivers.hand.says = [Misconfigured("no such image")]
    job = begin(twin, root)
    found = progress(twin, root, job)
    assert (found.job.end.outcome, found.job.end.reason) == (Outcome.FAILED, "no such image")
    assert [(one.check, one.detail) for one in found.checks if one.ok is False] == [("ordered", "no such image")]
    assert found.is_over
    assert not found.is_passed
    assert worker_of(twin, job).state is UnitState.GONE


def test_an_ordinary_job_of_a_misconfigured_factory_waits(twin: Twin, ada: User) -> None:
    twin.drivers.hand.says = [Misconfigured("no such image")]
    job = submit(twin, ada, target="linux")
    twin.run()
    assert job_of(twin, job).state is State.ACQUIRING


def test_a_cool_down_is_waited_for_and_said_at_the_beginning(twin: Twin, ada: User, root: User) -> None:
    twin.drivers.hand.says = [Misconfigured("no such image")]
    submit(twin, ada, target="linux")
    twin.run()
    begun = factory_test.start(twin.on, root, "hand", None, None, None)
    (wait_,) = begun.waits
    assert "misconfigured for type/linux; nobody asks again until 00:01 UTC" in wait_
    twin.run()
    found = progress(twin, root, begun.job)
    assert found.checks[1].ok is None
    assert "nobody asks again until 00:01 UTC" in found.checks[1].detail
    sweep(twin, 200)
    assert oks(twin, root, begun.job)["ordered"] is True


def test_a_cool_down_of_calls_is_said_and_one_of_another_scope_is_not(twin: Twin, ada: User, root: User) -> None:
    twin.drivers.hand.says = [NoCapacity("none"), RateLimited("slow down")]
    submit(twin, ada, target="shut")
    twin.run()
    assert factory_test.start(twin.on, root, "hand", "linux", None, None).waits == []
    twin.run()
    (wait_,) = factory_test.start(twin.on, root, "hand", "linux", None, None).waits
    assert "asks to slow down" in wait_


def test_no_capacity_is_waited_for(twin: Twin, root: User) -> None:
    twin.drivers.hand.says = [NoCapacity("none left")]
    job = begin(twin, root)
    found = progress(twin, root, job)
    assert found.job.state is State.ACQUIRING
    assert "none left" in found.checks[1].detail
    assert found.waits
    assert "none left" in found.waits


def test_a_machine_that_never_says_hello_fails_and_is_destroyed(twin: Twin, root: User) -> None:
    job = begin(twin, root)
    sweep(twin, 601)
    found = progress(twin, root, job)
    assert (found.job.end.outcome, found.job.attempt, found.waits) == (Outcome.ERRORED, 1, None)
    (check,) = [one for one in found.checks if one.ok is False]
    assert check.check == "agent said hello"
    assert "did not say hello in time" in check.detail
    assert found.is_over
    assert not twin.drivers.hand.made


def test_what_the_machine_said_goes_with_it(twin: Twin, root: User) -> None:
    twin.drivers.hand.evidence = lambda unit: "kernel panic"  # type: ignore[attr-defined]
    job = begin(twin, root)
    sweep(twin, 601)
    (check,) = [one for one in progress(twin, root, job).checks if one.ok is False]
    assert check.detail.endswith("kernel panic")


def test_a_test_that_is_cancelled_leaves_nothing(twin: Twin, root: User) -> None:
    job = begin(twin, root)
    cancel.cancel(twin.on, root, job)
    twin.run()
    found = progress(twin, root, job)
    assert found.is_over
    assert not found.is_passed
    assert not twin.drivers.hand.made


def test_a_factory_test_that_was_granted_nothing_is_over_when_it_is_cancelled(twin: Twin, root: User) -> None:
    first, second, third = (begin(twin, root) for _ in range(3))
    found = progress(twin, root, third)
    assert found.unit is None
    assert found.waits
    cancel.cancel(twin.on, root, third)
    twin.run()
    found = progress(twin, root, third)
    assert found.is_over
    assert found.checks[1].detail == "cancelled by root"
    assert {worker_of(twin, job).state for job in (first, second)} == {UnitState.CREATING}


def test_the_worker_of_a_factory_test_with_hold_is_held_from_the_beginning(twin: Twin, root: User) -> None:
    """UNIT-3: there is no moment between its failure and its end in which a hold would come too late."""
    job = begin(twin, root, keep=3600)
    say_hello(twin, job)
    finish(twin, job, Result.FAILED)
    unit = worker_of(twin, job)
    assert unit.state is UnitState.DIRTY
    assert unit.hold
    assert (unit.hold.by, unit.hold.reason) == ("root", "a test of factory hand: to look at it if that fails")
    found = progress(twin, root, job)
    assert not found.is_over
    assert [one.detail for one in found.checks if one.check == "destroyed"] == ["held until 2026-01-01 01:00:00Z"]
    maintenance.release(twin.on, root, unit.is_a, unit.id)
    twin.run()
    assert progress(twin, root, job).is_over


def test_a_held_machine_goes_by_itself_when_the_hold_ends(twin: Twin, root: User) -> None:
    job = begin(twin, root, keep=600)
    run_as_it_should(twin, job)
    assert not progress(twin, root, job).is_over
    sweep(twin, 700)
    assert progress(twin, root, job).is_passed


@pytest.mark.parametrize(
    ("ask", "status", "code", "says"),
    [
        ({"name": "nowhere"}, 404, "factory-not-found", "there are: hand, other, unused"),
        ({"name": "unused"}, 422, "no-target", "serves no target"),
        ({"target": "windows"}, 422, "unknown-target", "factory hand serves: closed, linux, shut"),
        ({"target": "mac"}, 422, "other-factory", "target mac is served by factory other; factory hand serves"),
        ({"target": "closed"}, 409, "would-wait", "target/closed has a limit of 0"),
        ({"target": "shut"}, 409, "would-wait", "target/shut is paused by an operator"),
        ({"keep": 0}, 400, "bad-request", "1 second to 7 days"),
        ({"keep": 7 * 86400 + 1}, 400, "bad-request", "1 second to 7 days"),
    ],
)
def test_what_cannot_be_tested_is_refused(
    twin: Twin, root: User, ask: dict[str, object], status: int, code: str, says: str
) -> None:
    apply.pause(twin.on, "target/shut", paused=True)
    rows = dict(twin.store.rows)
    with pytest.raises(Refused, match=says) as refused:
        begin(twin, root, **ask)
    assert (refused.value.status, refused.value.code) == (status, code)
    assert twin.store.rows == rows


@pytest.mark.parametrize(("target", "chosen"), [(None, "linux"), ("default", "linux"), ("shut", "shut")])
def test_the_target_is_the_first_that_has_a_limit_or_what_is_named(
    twin: Twin, root: User, target: str | None, chosen: str
) -> None:
    begun = factory_test.start(twin.on, root, "hand", target, None, None)
    assert (begun.target, job_of(twin, begun.job).request.target_resolved) == (chosen, chosen)


def test_a_site_without_factories_says_so(root: User) -> None:
    with pytest.raises(Refused, match="there are: none"):
        begin(Twin(), root)


def test_a_limit_that_an_operator_lowered_to_nothing_is_refused_too(twin: Twin, root: User) -> None:
    apply.resize(twin.on, "target/linux", 0)
    with pytest.raises(Refused, match="pool resize target/linux 1"):
        begin(twin, root)


def test_the_longest_hold_that_may_be(twin: Twin, root: User) -> None:
    assert job_of(twin, begin(twin, root, keep=7 * 86400)).provenance.proves == Proves("hand", 7 * 86400)


def test_the_same_request_twice_is_one_test(twin: Twin, root: User) -> None:
    assert begin(twin, root, key="k") == begin(twin, root, key="k")


def test_the_same_request_is_one_test_even_if_the_target_was_paused_meanwhile(twin: Twin, root: User) -> None:
    first = begin(twin, root, key="k")
    apply.pause(twin.on, "target/linux", paused=True)
    assert begin(twin, root, key="k") == first
    with pytest.raises(Refused, match="is paused by an operator"):
        begin(twin, root, key="another")


def test_only_a_test_of_that_factory_is_shown_as_one(twin: Twin, ada: User, root: User) -> None:
    plain, job = submit(twin, ada, target="linux"), begin(twin, root)
    for name, wanted in (("hand", plain), ("other", job), ("hand", "nothing")):
        with pytest.raises(Refused) as refused:
            factory_test.progress(twin.on, root, name, wanted, "1.2")
        assert refused.value.status == 404


def test_a_factory_that_the_site_no_longer_has(twin: Twin, root: User) -> None:
    job = begin(twin, root)
    apply.apply(twin.on, "admin", '[factories.other]\ndriver = "hand"\n', "site.toml")
    assert progress(twin, root, job).checks[0].detail == "it is gone"


def test_a_machine_that_takes_its_time_to_go(twin: Twin, root: User) -> None:
    job = begin(twin, root)
    destroy = twin.drivers.hand.destroy
    twin.drivers.hand.destroy = lambda unit, now: NotYet(30, "it is shutting down")  # type: ignore[method-assign]
    run_as_it_should(twin, job)
    found = progress(twin, root, job)
    assert not found.is_over
    assert [one.detail for one in found.checks if one.check == "destroyed"] == ["it is shutting down"]
    twin.drivers.hand.destroy = destroy  # type: ignore[method-assign]
    wait(twin, 30)
    assert progress(twin, root, job).is_passed
    assert len(slots(twin, "target/linux", SlotState.FREE)) == 2


def test_a_list_that_fails_is_a_failure_of_its_maker(twin: Twin, root: User) -> None:
    twin.drivers.hand.list = lambda: []  # type: ignore[method-assign]
    job = begin(twin, root)
    twin.pass_time(SEARCH_SECONDS)

    def fails() -> list[str]:
        raise DriverError("it is away")

    twin.drivers.hand.list = fails  # type: ignore[method-assign]
    driver_calls.check_visibility(twin.on, worker_of(twin, job).id)
    assert len(cooldowns.failures(twin.on, "factory/hand")) == 1
