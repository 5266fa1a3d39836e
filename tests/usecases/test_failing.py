"""Why a job did not succeed whose agent did not say so: its rows and its log do. [JOB-1]"""

from __future__ import annotations

from typing import Any

from penstock.domain.commands import AgentLine, SubmitJob
from penstock.domain.jobs.failures import MAX_LINES, Failure, Kind
from penstock.domain.jobs.jobs import Outcome, Result, State
from penstock.domain.units.units import UnitKind
from penstock.domain.users.users import User
from penstock.kernel.errors import Misconfigured, Unsatisfiable
from penstock.ports import MachineFate, MachineNotice
from penstock.testing.twin import ScriptedDriver, Twin
from penstock.usecases.jobs import flow
from penstock.usecases.jobs import submit as jobs_submit
from penstock.usecases.units import cloud_events, maintenance
from penstock.usecases.workers import agents
from penstock.usecases.workers.agents import parse_lines
from tests.usecases.steps import TOKEN, dies_after_the_report, finish, hello, job_of, submit, sweep, worker_of
from tests.usecases.talkative import Talkative

TOLD = Failure(Kind.KILLED, {"signal": 9}, 0, "build", ("the end",))


def failure_of(twin: Twin, job: str, kind: Kind) -> dict[str, Any]:
    found = job_of(twin, job)
    assert found.is_settled
    assert found.run.failure
    assert found.run.failure.kind is kind
    return dict(found.run.failure.evidence)


def say(twin: Twin, job: str, *lines: str, first: int = 1, stream: str = "stdout", task: int = 0) -> None:
    sent = [AgentLine("2026-01-01T00:00:00Z", stream, line, task) for line in lines]
    agents.append_events(twin.on, agents.authenticate(twin.on, job, TOKEN), first, parse_lines(sent))


def test_a_worker_that_fell_silent_says_when_it_was_heard_of_and_what_it_said_last(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, retries=0)
    twin.run()
    hello(twin, job)
    say(twin, job, *(str(number) for number in range(30)))
    say(twin, job, "of the agent", first=31, stream="worker")
    say(twin, job, "the last", first=32, stream="stderr", task=2)
    twin.pass_time(5)
    agents.heartbeat(twin.on, agents.authenticate(twin.on, job, TOKEN))
    heard, worker = twin.on.world.now(), worker_of(twin, job).id
    for _ in range(3):
        sweep(twin, 400)
    assert failure_of(twin, job, Kind.WORKER_LOST) == {
        "worker": worker,
        "lost_by": "silent",
        "last_heard": heard.isoformat(timespec="seconds"),
    }
    found = job_of(twin, job).run.failure
    assert found
    assert (len(found.lines), found.lines[0], found.lines[-1]) == (MAX_LINES, "11", "the last")
    assert (found.task, found.is_console) == (2, False)


def test_a_machine_that_never_spoke_shows_its_console(twin: Twin, ada: User) -> None:
    twin.drivers.hand = Talkative("i-1 printed:\nkernel panic")
    job = submit(twin, ada, retries=0)
    twin.run()
    for _ in range(3):
        sweep(twin, 700)
    assert failure_of(twin, job, Kind.WORKER_LOST)["lost_by"] == "no_hello"
    found = job_of(twin, job).run.failure
    assert found
    assert (found.lines, found.is_console, found.task) == (("i-1 printed:", "kernel panic"), True, None)


def test_only_the_lines_of_its_last_attempt_count(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, retries=1)
    twin.run()
    hello(twin, job)
    say(twin, job, "of the first")
    for _ in range(8):
        sweep(twin, 700)
    found = job_of(twin, job)
    assert found.run.failure
    assert (found.run.failure.lines, found.run.failure.task) == ((), None)
    assert [past.failure for past in found.history.attempts] == [Kind.WORKER_LOST]


class Cloud(ScriptedDriver):
    """A factory whose cloud takes a machine back."""

    def read_event(self, event: Any) -> MachineNotice | None:
        return MachineNotice(str(event["worker"]), MachineFate.DRAINING, "spot interruption notice")


def test_a_spot_notice_is_evidence(twin: Twin, ada: User) -> None:
    twin.drivers.hand = Cloud()
    job = submit(twin, ada, retries=0)
    twin.run()
    hello(twin, job)
    cloud_events.handle(twin.on, {"worker": worker_of(twin, job).id})
    for _ in range(3):
        sweep(twin, 400)
    assert "spot interruption notice" in failure_of(twin, job, Kind.WORKER_LOST)["notice"]


def test_a_resource_that_an_operator_takes_away_is_to_blame(twin: Twin, ada: User, root: User) -> None:
    job = submit(twin, ada, retries=0, resources=["bench"])
    twin.run()
    hello(twin, job)
    bench = next(lease.unit for lease in flow.leases_of(twin.on, job_of(twin, job)) if lease.order)
    maintenance.recycle(twin.on, root, UnitKind.RESOURCE, bench or "", "it smokes")
    twin.run()
    evidence = failure_of(twin, job, Kind.RESOURCE_LOST)
    assert (evidence["resource"], evidence["type"], evidence["lost_by"]) == (bench, "bench", "recycled")
    assert "it smokes" in evidence["notice"]


def test_who_waited_in_vain_says_for_what(twin: Twin, ada: User) -> None:
    for _ in range(2):
        hello_to = submit(twin, ada)
        twin.run()
        hello(twin, hello_to)
    job = submit(twin, ada)
    twin.run()
    assert job_of(twin, job).state is State.ACQUIRING
    sweep(twin, job_of(twin, job).limits.queue_seconds + 1)
    sweep(twin, 200)
    evidence = failure_of(twin, job, Kind.QUEUE_EXPIRED)
    assert (evidence["waited_for"], evidence["bound"]) == ("target/linux", "queue deadline")


def test_what_an_agent_tells_is_kept(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    who = hello(twin, job)
    agents.report_finished(twin.on, who, Result.FAILED, "killed", None, failure=TOLD)
    assert job_of(twin, job).run.failure == TOLD, "it is the report's, and stands"
    twin.run()
    assert job_of(twin, job).run.failure == TOLD


def test_a_machine_that_is_broken_says_so_without_further_words(twin: Twin, ada: User) -> None:
    for told, kind in ((None, Kind.MACHINE_BROKEN), (TOLD, Kind.KILLED)):
        job = submit(twin, ada)
        twin.run()
        who = hello(twin, job)
        with dies_after_the_report(twin):
            agents.report_broken(twin.on, who, "no such device", told)
        found = job_of(twin, job).run.failure
        assert found
        assert found.kind is kind
        if told is None:
            assert found.evidence == {"worker": who.unit.id, "error": "no such device"}


def test_inputs_that_could_not_be_had_say_so_without_further_words(twin: Twin, ada: User) -> None:
    for told, kind in ((None, Kind.INPUT_FAILED), (TOLD, Kind.KILLED)):
        job = submit(twin, ada)
        twin.run()
        who = hello(twin, job)
        with dies_after_the_report(twin):
            agents.report_unprepared(twin.on, who, "it is gone", told)
        found = job_of(twin, job).run.failure
        assert found
        assert found.kind is kind
        if told is None:
            assert found.evidence == {"error": "it is gone"}


def test_a_job_that_succeeds_has_none(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    finish(twin, job)
    assert (job_of(twin, job).end.outcome, job_of(twin, job).run.failure) == (Outcome.SUCCEEDED, None)


class Never(ScriptedDriver):
    """A factory that can never make what it is asked for."""

    def create(self, *given: Any) -> Any:
        raise Unsatisfiable("there are no such machines")


def test_what_can_never_be_had_is_told_with_the_drivers_words(twin: Twin, ada: User) -> None:
    twin.drivers.hand = Never()
    job = submit(twin, ada)
    twin.run()
    assert "there are no such machines" in failure_of(twin, job, Kind.UNSATISFIABLE)["error"]


class Misled(ScriptedDriver):
    """A factory that is set up wrongly."""

    def create(self, *given: Any) -> Any:
        raise Misconfigured("no such image: ami-1")


def test_what_kept_a_maker_from_making_is_told_at_the_queue_deadline(twin: Twin, ada: User) -> None:
    twin.drivers.hand = Misled()
    job = submit(twin, ada)
    twin.run()
    for _ in range(3):
        sweep(twin, job_of(twin, job).limits.queue_seconds)
    assert "no such image: ami-1" in failure_of(twin, job, Kind.QUEUE_EXPIRED)["error"]


def test_a_job_whose_dependency_failed_says_so(twin: Twin, ada: User) -> None:
    first = submit(twin, ada)
    twin.run()
    hello(twin, first)
    ask = SubmitJob("#!/bin/bash\ntrue\n", dependencies={"first": {"job": first}})
    job = jobs_submit.submit(twin.on, ada, ask, None)
    finish(twin, first, Result.FAILED)
    twin.run()
    assert "has failed" in failure_of(twin, job, Kind.DEPENDENCY_FAILED)["error"]
