"""An agent is told what it may do, and only while its attempt is the present one. [SEC-2] [JOB-1]"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.artifacts.artifacts import Artifact
from penstock.domain.artifacts.volumes import object_name
from penstock.domain.commands import AgentLine, Hello
from penstock.domain.jobs.jobs import Job, Outcome, Report, Result, State
from penstock.domain.logs.logs import Line
from penstock.domain.pools.pools import Lease, LeaseState
from penstock.domain.replies import ResultReceived
from penstock.domain.site.site import Limits
from penstock.domain.units.units import UnitState
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Change, Check, Key, Replace, Row
from penstock.system import NoForge
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases.artifacts import outputs, owners
from penstock.usecases.jobs import cancel
from penstock.usecases.logs import logs
from penstock.usecases.units import drivers, maintenance
from penstock.usecases.workers import agents
from tests.rows import changed
from tests.usecases.exact import (
    Flows,
    commits,
    drop,
    lease_of,
    pool_row,
    put,
    running,
    site,
    unit_of,
)
from tests.usecases.outputs import files
from tests.usecases.races import before_the_next_commit
from tests.usecases.steps import TOKEN, dies_after_the_report, hello, job_of, submit, told, worker_of


def test_a_hello_is_told_once_with_its_host(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    worker = worker_of(twin, job).id
    ask = Hello(worker, drivers.bootstrap_key(twin.on.signing_key(), worker), TOKEN, "forge")
    for _ in range(2):
        agents.hello(twin.on, ask)
    assert [line for line in told(twin, job) if line.startswith("running on")] == [
        f"running on {worker} (target linux, host forge), ready after 0 s"
    ]


@pytest.mark.parametrize("kind", [Job, Lease])
def test_a_hello_that_is_repeated_while_it_is_heard_gets_the_same_answer(
    twin: Twin, ada: User, kind: type[Row]
) -> None:
    """Its rows are not read at one moment: a worker whose job began in between is not sent home."""
    job = submit(twin, ada)
    twin.run()
    worker = worker_of(twin, job).id
    ask = Hello(worker, drivers.bootstrap_key(twin.on.signing_key(), worker), TOKEN, "forge")
    get, told_first = twin.store.get, list[Any]()

    def racing(key: Key, of_kind: type[Any]) -> Any:
        if of_kind is kind:
            twin.store.get = get  # type: ignore[method-assign]
            told_first.append(agents.hello(twin.on, ask))
        return get(key, of_kind)

    twin.store.get = racing  # type: ignore[method-assign]
    assert [agents.hello(twin.on, ask)] == told_first
    assert job_of(twin, job).state is State.RUNNING


def test_a_worker_whose_job_acquires_nothing_any_more_is_sent_home(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    worker = worker_of(twin, job).id
    put(twin, job_of(twin, job), state=State.RUNNING)
    with pytest.raises(Refused) as refused:
        agents.hello(twin.on, Hello(worker, drivers.bootstrap_key(twin.on.signing_key(), worker), TOKEN))
    assert refused.value.status == 410


def test_a_hello_without_a_host_names_none(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    assert f"running on {worker_of(twin, job).id} (target linux), ready after 0 s" in told(twin, job)


def test_a_worker_that_had_no_job_cannot_fail_to_clean_up_after_it(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    worker = worker_of(twin, job).id
    ask = Hello(worker, drivers.bootstrap_key(twin.on.signing_key(), worker), TOKEN, broken="it is busy")
    assert agents.hello(twin.on, ask).job == job
    assert worker_of(twin, job).health.broken is None


def test_a_hello_that_is_repeated_says_nothing_new_of_its_target(twin: Twin, ada: User) -> None:
    """Others broke since the first: what began the count anew once does not do so again."""
    job = submit(twin, ada)
    twin.run()
    put(twin, worker_of(twin, job), is_probe=True)
    worker = worker_of(twin, job).id
    ask = Hello(worker, drivers.bootstrap_key(twin.on.signing_key(), worker), TOKEN)
    for broken, left in ((2, 0), (1, 1)):
        put(twin, pool_row(twin, "target/linux"), broken=broken)
        assert agents.hello(twin.on, ask).job == job
        assert pool_row(twin, "target/linux").broken == left


@pytest.mark.parametrize("publishes", [False, True])
def test_a_machine_that_is_held_while_its_agent_says_that_it_is_broken_stays(
    twin: Twin, ada: User, root: User, publishes: bool
) -> None:
    """UNIT-3: the hold comes between what was read and the report."""
    job = running(twin, ada)
    put(twin, job_of(twin, job), publishes=publishes)
    caller = agents.authenticate(twin.on, job, TOKEN)
    worker = caller.unit
    before_the_next_commit(twin, lambda: maintenance.hold(twin.on, root, worker.is_a, worker.id, "looking", 3600))
    said = agents.report_finished(twin.on, caller, Result.SUCCEEDED, "it ended", 0, "its fan stands still")
    found = worker_of(twin, job)
    assert found.hold
    assert (found.hold.reason, found.health.broken) == ("looking", "its fan stands still")
    assert said == ResultReceived(3600)


@pytest.mark.parametrize("what", ["job", "unit"])
def test_what_moves_while_an_agent_says_hello_is_not_written_over(twin: Twin, ada: User, what: str) -> None:
    """JOB-2: it is read once more, and says something else now."""
    job = submit(twin, ada)
    twin.run()
    row = job_of(twin, job) if what == "job" else worker_of(twin, job)
    moved = {"cancelled_by": "ada"} if what == "job" else {"state": UnitState.DIRTY}
    ask = Hello(worker_of(twin, job).id, drivers.bootstrap_key(twin.on.signing_key(), worker_of(twin, job).id), TOKEN)
    before_the_next_commit(twin, lambda: put(twin, row, **moved))
    with pytest.raises(Refused, match="no longer wanted"):
        agents.hello(twin.on, ask)
    assert twin.store.get(row.key, type(row)) == changed(row, version=row.version + 1, **moved)  # type: ignore[arg-type]
    assert job_of(twin, job).state is State.ACQUIRING


NEWCOMER: dict[str, Any] = {
    "queued": lambda twin, job: put(twin, job_of(twin, job), state=State.QUEUED),
    "cancelled": lambda twin, job: put(twin, job_of(twin, job), cancelled_by="ada"),
    "settled": lambda twin, job: put(twin, job_of(twin, job), state=State.SETTLED),
    "no job": lambda twin, job: drop(twin, job_of(twin, job)),
    "next attempt": lambda twin, job: put(twin, job_of(twin, job), attempt=2),
    "dirty": lambda twin, job: put(twin, worker_of(twin, job), state=UnitState.DIRTY),
}


@pytest.mark.parametrize("what", NEWCOMER)
def test_a_worker_that_nobody_waits_for_is_sent_home(twin: Twin, ada: User, what: str) -> None:
    job = submit(twin, ada)
    twin.run()
    worker = worker_of(twin, job).id
    NEWCOMER[what](twin, job)
    rows = dict(twin.store.rows)
    with pytest.raises(Refused, match="no longer wanted"):
        agents.hello(twin.on, Hello(worker, drivers.bootstrap_key(twin.on.signing_key(), worker), TOKEN))
    assert twin.store.rows == rows


@pytest.mark.parametrize("state", [UnitState.CLEANING, UnitState.IDLE])
def test_a_key_has_served_its_turn_when_its_first_job_is_over(twin: Twin, ada: User, state: UnitState) -> None:
    """SEC-2: the job may have read the key, and the token with it."""
    job = running(twin, ada)
    worker = worker_of(twin, job)
    put(twin, worker, state=state, leases=1, token_hash=None, past_hash=worker.session.token_hash)
    with pytest.raises(Refused) as refused:
        agents.hello(twin.on, Hello(worker.id, drivers.bootstrap_key(twin.on.signing_key(), worker.id), TOKEN))
    assert refused.value.code == "wrong-key"


def test_a_worker_that_never_was_has_no_key(twin: Twin) -> None:
    with pytest.raises(Refused) as refused:
        agents.hello(twin.on, Hello("w-none", drivers.bootstrap_key(twin.on.signing_key(), "w-none"), TOKEN))
    assert refused.value.code == "wrong-key"


def test_a_refusal_keeps_nothing_of_the_call_that_was_refused(twin: Twin, ada: User) -> None:
    """SEC-1: an exception that is raised again and again has every frame, with its tokens, for as long as it lives."""
    job = running(twin, ada)
    put(twin, worker_of(twin, job), state=UnitState.DIRTY)
    frames = []
    for _ in range(2):
        with pytest.raises(Refused, match="no longer wanted") as refused:
            agents.authenticate(twin.on, job, TOKEN)
        frames.append(len(refused.traceback))
    assert frames[0] == frames[1]


def test_a_worker_that_reported_and_says_hello_again_is_sent_home(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    put(twin, job_of(twin, job), report=Report(Result.FAILED, "it failed", START))
    worker = worker_of(twin, job).id
    with pytest.raises(Refused, match="no longer wanted"):
        agents.hello(twin.on, Hello(worker, drivers.bootstrap_key(twin.on.signing_key(), worker), TOKEN))


def test_an_assignment_says_who_holds_what_until_when(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, resources=["bench"], timeout=600)
    twin.run()
    worker = worker_of(twin, job)
    ask = Hello(worker.id, drivers.bootstrap_key(twin.on.signing_key(), worker.id), TOKEN)
    agents.hello(twin.on, ask)
    begun = job_of(twin, job).times.started
    assert begun
    twin.pass_time(10)
    said = agents.hello(twin.on, ask)
    assert said.deadline == (begun + timedelta(seconds=600)).isoformat()
    assert (said.fence, said.factory) == (worker.lease.fence, "hand")
    assert list(said.resources) == ["bench"]
    put(twin, unit_of(twin, job, 1), fence=9)
    assert agents.hello(twin.on, ask).resources == {}
    put(twin, lease_of(twin, job, 1), unit=None)
    assert agents.hello(twin.on, ask).resources == {}
    put(twin, job_of(twin, job), times=replace(job_of(twin, job).times, started=None))
    now = twin.world.now()
    assert agents.hello(twin.on, ask).deadline == (now + timedelta(seconds=600)).isoformat()
    drop(twin, lease_of(twin, job, 0))
    assert agents.hello(twin.on, ask).fence == 0
    put(twin, job_of(twin, job), spec=None)
    with pytest.raises(Refused, match="no longer kept"):
        agents.hello(twin.on, ask)


@pytest.mark.parametrize("change", [{"token_hash": None}, {"state": UnitState.DIRTY}, {"attempt": 2}])
def test_a_token_is_of_a_worker_that_is_at_work_for_this_attempt(twin: Twin, ada: User, change: dict[str, Any]) -> None:
    job = running(twin, ada)
    put(twin, worker_of(twin, job), **change)
    with pytest.raises(Refused, match="no longer wanted"):
        agents.authenticate(twin.on, job, TOKEN)


@pytest.mark.parametrize("change", [None, {"fence": 9}, {"state": UnitState.DIRTY}])
def test_a_heartbeat_of_a_worker_that_lost_its_lease_renews_nothing(
    twin: Twin, ada: User, change: dict[str, Any] | None
) -> None:
    job = running(twin, ada)
    caller = agents.authenticate(twin.on, job, TOKEN)
    if change:
        put(twin, worker_of(twin, job), **change)
    else:
        drop(twin, worker_of(twin, job))
    with pytest.raises(Refused, match="no longer wanted"):
        agents.heartbeat(twin.on, caller)


def test_lines_take_the_place_of_the_next_heartbeat_and_of_no_other(twin: Twin, ada: User) -> None:
    """JOB-2: the answer has `lease_seconds` exactly if the worker's row has its new end."""
    job, beat = running(twin, ada), Limits().heartbeat
    for first, (age, is_near) in enumerate([(beat * 3 // 4, False), (1, True), (1, False), (beat - 1, True)], 1):
        twin.pass_time(age)
        before, caller = worker_of(twin, job), agents.authenticate(twin.on, job, TOKEN)
        told = agents.append_events(twin.on, caller, first, [LINE])
        assert told.lease_seconds == (Limits().lease if is_near else None)
        due = twin.world.now() + timedelta(seconds=Limits().lease) if is_near else before.due
        assert worker_of(twin, job).due == due


def test_a_heartbeat_reads_its_worker_anew_only_if_somebody_wrote_it_since(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    caller = agents.authenticate(twin.on, job, TOKEN)
    put(twin, worker_of(twin, job), reason="somebody wrote this")
    agents.heartbeat(twin.on, caller)
    assert worker_of(twin, job).step.reason == "somebody wrote this"
    assert worker_of(twin, job).session.heard == twin.world.now()


@pytest.mark.parametrize("change", [None, {"attempt": 2}, {"state": State.SETTLED}])
def test_a_report_of_an_attempt_that_is_over_is_refused(twin: Twin, ada: User, change: dict[str, Any] | None) -> None:
    job = running(twin, ada)
    caller = agents.authenticate(twin.on, job, TOKEN)
    if change:
        put(twin, job_of(twin, job), **change)
    else:
        drop(twin, job_of(twin, job))
    with pytest.raises(Refused, match="no longer wanted"):
        agents.report_finished(twin.on, caller, Result.SUCCEEDED, "it ended", 0)


def first_commit(written: list[Sequence[Change]]) -> dict[str, Row]:
    """What the first commit left, by kind."""
    return {change.row.kind: change.row for change in written[0] if isinstance(change, Replace)}


@pytest.mark.parametrize("broken", ["", "its fan stands still"])
def test_a_report_is_written_with_the_end_of_its_attempt(twin: Twin, ada: User, broken: str) -> None:
    """JOB-1: nobody can come between the two."""
    job = running(twin, ada)
    caller, written = agents.authenticate(twin.on, job, TOKEN), commits(twin)
    agents.report_finished(twin.on, caller, Result.SUCCEEDED, "it ended", 0, broken)
    left = first_commit(written)
    assert left["job"] == changed(job_of(twin, job), version=left["job"].version)
    assert job_of(twin, job).is_settled
    assert lease_of(twin, job, 0).state is LeaseState.RELEASING
    found = worker_of(twin, job)
    assert (found.state, found.health.broken) == (UnitState.DIRTY, broken or None)
    assert "unit" in left


def uploaded(twin: Twin, job: str, count: int) -> list[str]:
    """Files that have arrived, and that nobody has said so of."""
    names = [each.id for each in outputs.begin(twin.on, job_of(twin, job), files(count)).uploads]
    for name in names:
        twin.objects.store(object_name(name), b"x")
    return names


def kept(twin: Twin, job: str) -> list[str]:
    return [row.id for row in outputs.list_outputs(twin.on, job)[0]]


@pytest.mark.parametrize("publishes", [False, True])
def test_the_last_outputs_are_written_with_the_report(twin: Twin, ada: User, publishes: bool) -> None:
    """ART-1: who sees the end of a job finds all that it sent. They need no check of the attempt of their own."""
    job = running(twin, ada)
    put(twin, job_of(twin, job), publishes=publishes)
    names = uploaded(twin, job, 2)
    caller, written = agents.authenticate(twin.on, job, TOKEN), commits(twin)
    agents.report_finished(twin.on, caller, Result.SUCCEEDED, "it ended", 0, uploaded=[*names, names[0]])
    assert kept(twin, job) == names
    assert sum(isinstance(change.row, Artifact) for change in written[0] if isinstance(change, Replace)) == 2
    assert not any(isinstance(change, Check) for changes in written for change in changes)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


def test_a_report_with_as_many_outputs_as_it_may_have_and_all_resources_is_one_write(ada: User) -> None:
    twin = site(
        site_toml(
            targets={"default": {"limit": 1}},
            wells={"locks": "lock"},
            resources={"plain": {"well": "locks", "limit": limits.RESOURCES}},
        )
    )
    job = running(twin, ada, resources={f"p{number:02d}": {"type": "plain"} for number in range(limits.RESOURCES)})
    names = uploaded(twin, job, limits.OUTPUTS_WITH_REPORT)
    caller, written = agents.authenticate(twin.on, job, TOKEN), commits(twin)
    agents.report_finished(twin.on, caller, Result.SUCCEEDED, "it ended", 0, uploaded=names)
    assert limits.OUTPUTS_WITH_REPORT + limits.RESOURCES < len(written[0]) < limits.TRANSACTION_ITEMS - 10
    assert len(kept(twin, job)) == limits.OUTPUTS_WITH_REPORT


def test_a_report_with_an_output_that_is_not_there_records_nothing(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    there, missing = uploaded(twin, job, 2)
    del twin.objects.objects[object_name(missing)]
    caller, written = agents.authenticate(twin.on, job, TOKEN), commits(twin)
    for names, status in (([there, missing], 409), ([there, "A.B"], 404), ([there] * 51, 413)):
        with pytest.raises(Refused) as refused:
            agents.report_finished(twin.on, caller, Result.SUCCEEDED, "it ended", 0, uploaded=names)
        assert refused.value.status == status
    assert (written, kept(twin, job)) == ([], [])


def test_a_report_that_is_refused_for_an_output_shows_nothing_of_the_machine(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a script that ended shows is noted once the report is taken."""
    noted: list[Result] = []
    monkeypatch.setattr(agents, "_note_working", lambda on, caller, result: noted.append(result))
    job = running(twin, ada)
    caller = agents.authenticate(twin.on, job, TOKEN)
    with pytest.raises(Refused):
        agents.report_finished(twin.on, caller, Result.SUCCEEDED, "it ended", 0, uploaded=["A.B"])
    assert noted == []
    agents.report_finished(twin.on, caller, Result.SUCCEEDED, "it ended", 0)
    assert noted == [Result.SUCCEEDED]


def test_a_report_with_an_output_that_goes_meanwhile_records_nothing(twin: Twin, ada: User) -> None:
    """ART-1: the agent hears of it, or it would believe that the file is kept."""
    job = running(twin, ada)
    (name,) = uploaded(twin, job, 1)
    caller = agents.authenticate(twin.on, job, TOKEN)
    before_the_next_commit(twin, lambda: owners.release_output(twin.on, name, f"job#{job}"))
    with pytest.raises(Refused, match="output"):
        agents.report_finished(twin.on, caller, Result.SUCCEEDED, "it ended", 0, uploaded=[name])
    assert not job_of(twin, job).is_settled


def test_a_report_that_is_repeated_keeps_its_outputs(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    put(twin, job_of(twin, job), publishes=True)
    names = uploaded(twin, job, 1)
    caller = agents.authenticate(twin.on, job, TOKEN)
    with dies_after_the_report(twin):
        agents.report_finished(twin.on, caller, Result.SUCCEEDED, "it ended", 0, uploaded=names)
    agents.report_finished(twin.on, caller, Result.SUCCEEDED, "it ended", 0, uploaded=names)
    assert (kept(twin, job), job_of(twin, job).end.outcome) == (names, Outcome.SUCCEEDED)


def test_the_report_of_a_job_that_publishes_is_written_before_it_publishes(twin: Twin, ada: User) -> None:
    """JOB-1: what is published has succeeded, whoever dies."""
    job = running(twin, ada, hold_on_failure=600)
    put(twin, job_of(twin, job), publishes=True)
    caller, written = agents.authenticate(twin.on, job, TOKEN), commits(twin)
    agents.report_finished(twin.on, caller, Result.FAILED, "it failed", 1)
    left = first_commit(written)
    assert left.keys() == {"job", "unit"}
    assert left["job"].state is State.RUNNING  # type: ignore[attr-defined]
    assert left["job"].run.report == Report(Result.FAILED, "it failed", twin.world.now(), 1)  # type: ignore[attr-defined]
    assert left["unit"].hold  # type: ignore[attr-defined]
    assert job_of(twin, job).end.reason == "it failed"


def test_a_report_that_is_told_twice_is_written_once(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    caller = agents.authenticate(twin.on, job, TOKEN)
    flows, written = Flows(twin), commits(twin)
    with dies_after_the_report(twin):
        for _ in range(2):
            agents.report_finished(twin.on, caller, Result.SUCCEEDED, "it ended", 0)
    assert len(written) == 1
    agents.report_finished(twin.on, caller, Result.SUCCEEDED, "it ended", 0)
    assert job_of(twin, job).is_settled
    assert flows.succeeded == [], "its flow was over with the agent's hello"
    with pytest.raises(Refused, match="is not"):
        agents.report_finished(twin.on, caller, Result.LOST, "", None)


def test_an_agent_hears_whether_its_job_is_cancelled(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    for cancelled in (False, True):
        assert agents.append_events(twin.on, agents.authenticate(twin.on, job, TOKEN), 0, [LINE]).cancel is cancelled
        cancel.cancel(twin.on, ada, job) if not cancelled else None


LINE = Line(START, "stdout", "hello", 0)


def test_a_batch_may_be_as_big_as_is_said_and_no_bigger(twin: Twin) -> None:
    from penstock.kernel import limits

    def line(size: int) -> AgentLine:
        return AgentLine("2026-01-01T00:00:00+00:00", "stdout", "x" * size, 0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "EVENT_BATCH_BYTES", 10)
        assert agents.parse_lines([line(4), line(6)])
        with pytest.raises(Refused, match="send at most"):
            agents.parse_lines([line(4), line(7)])
    kept = agents._row_bytes([line(100)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "ROW_BYTES", kept)
        assert agents.parse_lines([line(100)])
        with pytest.raises(Refused, match="send at most"):
            agents.parse_lines([line(101)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "EVENTS_PER_BATCH", 2)
        assert agents.parse_lines([line(1)] * 2)
        with pytest.raises(Refused, match="send at most 2 lines"):
            agents.parse_lines([line(1)] * 3)


@pytest.fixture
def far_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose own zone is another."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Etc/GMT-9")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("far_east")
def test_a_time_is_kept_in_utc_whatever_the_machines_zone_is() -> None:
    def at(text: str) -> str:
        return agents.parse_lines([AgentLine(text, "stdout", "x", 0)])[0].time.isoformat()

    assert at("2026-01-01T00:00:00") == "2026-01-01T00:00:00+00:00"
    assert at("2026-01-01T00:00:00+02:00") == "2025-12-31T22:00:00+00:00"


def test_a_resource_says_no_hello(twin: Twin, ada: User) -> None:
    """SEC-2: also who could compute its key is no agent."""
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    unit = unit_of(twin, job, 1)
    with pytest.raises(Refused, match="not the key"):
        agents.hello(twin.on, Hello(unit.id, drivers.bootstrap_key(twin.on.signing_key(), unit.id), TOKEN))


@pytest.mark.parametrize("kept", [True, False])
def test_a_worker_is_told_whether_it_is_kept(twin: Twin, ada: User, kept: bool) -> None:
    job = submit(twin, ada)
    twin.run()
    worker = worker_of(twin, job)
    put(twin, worker, is_kept=kept)
    ask = Hello(worker.id, drivers.bootstrap_key(twin.on.signing_key(), worker.id), TOKEN)
    assert [agents.hello(twin.on, ask).reuse for _ in range(2)] == [kept, kept], "also if its answer was lost"


def test_lines_are_kept_until_the_report_and_not_after_it(twin: Twin, ada: User) -> None:
    """JOB-1: what an agent says after it said how the script ended is no part of the attempt."""
    job = running(twin, ada)
    caller = agents.authenticate(twin.on, job, TOKEN)
    agents.append_events(twin.on, caller, 1, [replace(LINE, payload="before")])
    put(twin, job_of(twin, job), report=Report(Result.SUCCEEDED, "it ended", START))
    agents.append_events(twin.on, agents.authenticate(twin.on, job, TOKEN), 2, [replace(LINE, payload="after")])
    assert [line for line in told(twin, job) if line in ("before", "after")] == ["before"]


def test_a_token_that_could_be_guessed_is_refused(twin: Twin, ada: User) -> None:
    """SEC-2: with the worker's key as well; nothing is written."""
    job = submit(twin, ada)
    twin.run()
    worker = worker_of(twin, job).id
    rows = dict(twin.store.rows)
    with pytest.raises(Refused, match="43 to 128 characters") as refused:
        agents.hello(twin.on, Hello(worker, drivers.bootstrap_key(twin.on.signing_key(), worker), "t" * 42))
    assert refused.value.code == "weak-token"
    assert twin.store.rows == rows


@pytest.mark.parametrize(("job", "looks"), [("0" * 26, 1), ("x" * 3000, 0), ("", 0)])
def test_a_job_that_is_not_there_is_nobodys(twin: Twin, job: str, looks: int) -> None:
    """SEC-2: and what cannot be a job's id is not looked up, for a key may be too long for the table."""
    get, asked = twin.store.get, list[Any]()

    def noting(key: Any, kind: type[Any]) -> Any:
        asked.append(key)
        return get(key, kind)

    twin.store.get = noting  # type: ignore[method-assign]
    with pytest.raises(Refused, match="not of the worker of that job"):
        agents.authenticate(twin.on, job, TOKEN)
    assert len(asked) == looks


@pytest.mark.parametrize(("is_probe", "broken", "left"), [(True, "", 0), (True, "its fan", 2), (False, "", 2)])
def test_only_a_probe_on_which_a_script_ended_well_begins_the_count_of_broken_ones_anew(
    twin: Twin, ada: User, is_probe: bool, broken: str, left: int
) -> None:
    """Its target is made again without limits then: who is none, or is broken, says nothing of that."""
    job = running(twin, ada)
    put(twin, worker_of(twin, job), is_probe=is_probe)
    put(twin, pool_row(twin, "target/linux"), broken=2)
    caller = agents.authenticate(twin.on, job, TOKEN)
    agents.report_finished(twin.on, caller, Result.SUCCEEDED, "it ended", 0, broken)
    assert pool_row(twin, "target/linux").broken == left


def test_a_worker_that_is_no_probe_says_nothing_of_its_target_with_its_hello(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    put(twin, pool_row(twin, "target/linux"), broken=2)
    worker = worker_of(twin, job).id
    agents.hello(twin.on, Hello(worker, drivers.bootstrap_key(twin.on.signing_key(), worker), TOKEN))
    assert pool_row(twin, "target/linux").broken == 2


def test_an_attempt_that_ends_because_its_machine_is_broken_says_so_once(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    agents.report_broken(twin.on, agents.authenticate(twin.on, job, TOKEN), "its fan stands still")
    twin.run()
    assert len([line for line in told(twin, job) if "is broken: its fan stands still" in line]) == 1


@pytest.mark.usefixtures("by_flow")
def test_the_flow_that_waits_for_a_worker_goes_on_with_its_hello(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    flows, worker = Flows(twin), worker_of(twin, job).id
    agents.hello(twin.on, Hello(worker, drivers.bootstrap_key(twin.on.signing_key(), worker), TOKEN))
    assert flows.succeeded == [lease_of(twin, job, 0).token]


@pytest.mark.parametrize(("minutes", "shown"), [(-30, -5), (-4, -4)])
def test_lines_are_from_after_the_start_of_their_script(twin: Twin, ada: User, minutes: int, shown: int) -> None:
    """A worker took an hour; what it says of the time before, it cannot know. Clocks differ by five minutes."""
    job = submit(twin, ada)
    twin.run()
    twin.pass_time(3600)
    hello(twin, job)
    begun = job_of(twin, job).times.started
    assert begun
    caller = agents.authenticate(twin.on, job, TOKEN)
    agents.append_events(twin.on, caller, 1, [replace(LINE, time=begun + timedelta(minutes=minutes))])
    (event,) = [event for event in logs.read(twin.on, job, 0, 100) if event.line.payload == LINE.payload]
    assert event.line.time == begun + timedelta(minutes=shown)


def test_only_a_job_with_a_check_run_tells_github_that_it_runs(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    told_github: list[Any] = []
    monkeypatch.setattr(NoForge, "enqueue", lambda forge, hint: told_github.append(hint))
    running(twin, ada)
    assert told_github == []


def test_the_log_says_what_is_wrong_with_a_machine_before_how_the_job_ended(twin: Twin, ada: User) -> None:
    job = running(twin, ada, retries=0)
    caller = agents.authenticate(twin.on, job, TOKEN)
    agents.report_finished(twin.on, caller, Result.FAILED, "the disk is full", 0, broken="its disk is full")
    lines = told(twin, job)
    broken, settled = (next(at for at, line in enumerate(lines) if text in line) for text in ("is broken", "settled"))
    assert broken < settled
