"""Why a job did not succeed: what is kept of what was told, and what the rows say by themselves. [JOB-1]"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.domain.jobs import failures, jobs, outcome, prerequisites, unused
from penstock.domain.jobs.failures import EVIDENCE, MEANINGS, Failure, Kind
from penstock.domain.jobs.jobs import Job, Outcome, Report, Result, State
from penstock.domain.jobs.outcome import NO_HELLO, SILENT, Ending, conclude
from penstock.domain.pools.pools import LeaseState
from penstock.domain.units import units
from penstock.domain.units.units import Drain, UnitKind, UnitState
from tests.domain.helpers import MINUTE, NOW, job, lease, unit

TOLD = Failure(Kind.DISK_FULL, {"path": "/work"}, 0, "build", ("full",))


def test_every_kind_says_what_to_do_and_which_evidence_it_has() -> None:
    assert set(MEANINGS) == set(Kind)
    for meaning in MEANINGS.values():
        assert meaning.what
        assert meaning.advice
        assert set(meaning.evidence) <= set(EVIDENCE)
    assert set(EVIDENCE) == {key for meaning in MEANINGS.values() for key in meaning.evidence}


def test_evidence_is_that_of_its_kind_and_type() -> None:
    given = {"exit_code": 3, "perhaps": None, "signal": 9, "path": "/work"}
    assert failures.failure(Kind.EXITED, given).evidence == {"exit_code": 3}
    assert failures.failure(Kind.EXITED, {"exit_code": "3", "perhaps": 7}).evidence == {}
    assert failures.failure(Kind.EXITED, {"exit_code": True}).evidence == {}


def test_what_is_too_long_is_cut() -> None:
    assert failures.short("x" * 10, 10) == "x" * 10
    assert failures.short("x" * 11, 10) == "x" * 9 + "…"
    kept = failures.failure(Kind.NOT_STARTED, {"error": "e" * 5000}).evidence["error"]
    assert len(kept) == failures.TEXT_CHARS
    found = failures.with_lines(Failure(Kind.EXITED), [str(n) for n in range(99)] + ["y" * 9000], is_console=True)
    assert len(found.lines) == failures.MAX_LINES
    assert (found.lines[0], len(found.lines[-1]), found.is_console) == ("80", failures.LINE_CHARS, True)


def test_an_agent_tells_the_kinds_that_are_its_own() -> None:
    found = failures.from_agent("killed", {"signal": 9, "cancelled_by": "x"}, 1, "n" * 9000, ["a", "b"])
    assert found == Failure(Kind.KILLED, {"signal": 9}, 1, found.task_name if found else "", ("a", "b"))
    assert found
    assert len(found.task_name) == failures.LINE_CHARS
    assert failures.from_agent("worker_lost", {}, None, "", []) is None
    assert failures.from_agent("no such kind", {}, None, "", []) is None


def settled(before: Job, error: str | None = None, cause: str | None = None) -> Failure:
    after = conclude(before, error, cause, NOW)
    assert after.is_settled
    assert after.run.failure
    return after.run.failure


@pytest.mark.parametrize(
    ("before", "error", "kind", "evidence"),
    [
        ({"report": Report(Result.FAILED, "said", NOW, 7)}, None, Kind.EXITED, {"exit_code": 7}),
        ({"report": Report(Result.FAILED, "said", NOW)}, None, Kind.EXITED, {}),
        (
            {"report": Report(Result.TIMED_OUT, "said", NOW)},
            None,
            Kind.TIMED_OUT,
            {"bound": "timeout", "bound_seconds": 600},
        ),
        ({"report": Report(Result.CANCELLED, "said", NOW)}, None, Kind.CANCELLED, {"cancelled_by": "the worker"}),
        ({"cancelled_by": "ada"}, "Cancelled", Kind.CANCELLED, {"cancelled_by": "ada"}),
        ({"cancelled_by": "ada"}, "Lost", Kind.CANCELLED, {"cancelled_by": "ada"}),
        ({"refused": "no privilege"}, "Cancelled", Kind.NOT_ALLOWED, {"error": "no privilege"}),
        ({"retries": 0, "state": State.ACQUIRING}, "Lost", Kind.WORKER_LOST, {}),
        ({}, "Unsatisfiable", Kind.UNSATISFIABLE, {"error": "why"}),
        (
            {},
            "QueueDeadline",
            Kind.QUEUE_EXPIRED,
            {"bound": "queue deadline", "bound_seconds": 3600, "error": "why"},
        ),
        ({}, prerequisites.DEPENDENCY_ERROR, Kind.DEPENDENCY_FAILED, {"error": "why"}),
        ({}, "TIMED_OUT", Kind.SERVICE_FAILED, {"error": "why"}),
        ({}, None, Kind.SERVICE_FAILED, {"error": "why"}),
    ],
)
def test_every_end_has_its_kind(
    before: dict[str, Any], error: str | None, kind: Kind, evidence: dict[str, Any]
) -> None:
    found = settled(job(**before), error, "why")
    assert (found.kind, dict(found.evidence)) == (kind, evidence)


@pytest.mark.parametrize("result", [Result.FAILED, Result.TIMED_OUT, Result.LOST])
def test_what_the_agent_told_stands(result: Result) -> None:
    assert settled(job(report=Report(result, "said", NOW), failure=TOLD, retries=0)) == TOLD


def test_a_cancelled_job_keeps_what_it_said_last() -> None:
    before = job(report=Report(Result.FAILED, "said", NOW), failure=TOLD, cancelled_by="ada")
    assert settled(before) == replace(TOLD, kind=Kind.CANCELLED, evidence={"cancelled_by": "ada"})


def test_a_job_that_succeeds_has_none() -> None:
    assert (
        conclude(job(report=Report(Result.SUCCEEDED, "said", NOW), failure=TOLD), None, None, NOW).run.failure is None
    )


@pytest.mark.parametrize(
    ("result", "told", "kind"),
    [
        (Result.LOST, None, Kind.WORKER_LOST),
        (Result.LOST, TOLD, Kind.DISK_FULL),
        (Result.FAILED, TOLD, Kind.DISK_FULL),
        (Result.FAILED, None, Kind.EXITED),
    ],
)
def test_an_attempt_that_is_followed_by_another_keeps_its_kind(
    result: Result, told: Failure | None, kind: Kind
) -> None:
    after = conclude(job(report=Report(result, "said", NOW), failure=told, retry_failed=True), None, None, NOW)
    assert (after.state, after.run.failure, after.history.attempts[-1].failure) == (State.QUEUED, None, kind)


def test_who_gives_back_has_no_failure() -> None:
    after = conclude(job(idle_hold=60), unused.IDLE_HOLD_ERROR, None, NOW)
    assert (after.run.failure, after.history.attempts[-1].failure) == (None, None)


def ended(*had: Any, **changes: Any) -> Ending:
    before = job(**{"state": State.RUNNING, "worker": "w-1", "retries": 0, **changes})
    return Ending(before, conclude(before, "Lost", "the cause", NOW), had, "Lost", is_overdue=False)


def test_a_lost_worker_shows_its_last_contact_and_who_reclaimed_it() -> None:
    drain = Drain("ec2", "spot notice: 120 s are left", NOW)
    found = outcome.lost_failure(ended(unit(state=UnitState.READY, heard=NOW, drain=drain, reason=SILENT)))
    assert found.kind is Kind.WORKER_LOST
    assert found.evidence == {
        "worker": "w-1",
        "lost_by": "silent",
        "last_heard": "2026-01-02T03:04:05+00:00",
        "notice": str(drain),
    }


def test_a_lost_worker_without_a_notice_shows_none() -> None:
    assert "notice" not in outcome.lost_failure(ended(unit(state=UnitState.READY, reason=SILENT))).evidence


def test_the_evidence_of_a_lost_worker_is_its_own_and_not_that_of_its_resources() -> None:
    notice = Drain("ada", "later", NOW)
    bench = unit(id="b-1", is_a=UnitKind.RESOURCE, state=UnitState.READY, heard=NOW, drain=notice, reason="another")
    found = outcome.lost_failure(ended(bench, unit(state=UnitState.READY, reason=SILENT)))
    assert (found.kind, found.evidence) == (Kind.WORKER_LOST, {"worker": "w-1", "lost_by": "silent"})


def test_the_words_of_its_driver_are_kept_and_ours_are_not() -> None:
    assert (
        outcome.lost_failure(ended(unit(reason="NoCapacity: none left"))).evidence["error"] == "NoCapacity: none left"
    )
    for ours in (NO_HELLO, SILENT, None):
        assert "error" not in outcome.lost_failure(ended(unit(reason=ours))).evidence


def test_the_failure_of_an_attempt_without_units_has_only_the_job() -> None:
    found = outcome.lost_failure(ended(worker=None))
    assert (found.kind, dict(found.evidence)) == (Kind.WORKER_LOST, {"lost_by": "vanished"})


def test_a_job_that_is_not_lost_is_lost_by_nothing() -> None:
    assert "lost_by" not in outcome.lost_failure(replace(ended(), error=None)).evidence


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"reason": "the cause"}, Kind.RESOURCE_LOST),
        ({"drain": Drain("ada", "it smokes", NOW, at_once=True)}, Kind.RESOURCE_LOST),
        ({"reason": "another"}, Kind.WORKER_LOST),
        ({"reason": None}, Kind.WORKER_LOST),
        ({"drain": Drain("ada", "later", NOW)}, Kind.WORKER_LOST),
    ],
)
def test_a_resource_that_was_lost_is_to_blame(changes: dict[str, Any], kind: Kind) -> None:
    bench = unit(id="b-1", is_a=UnitKind.RESOURCE, type="bench", state=UnitState.READY, **changes)
    found = outcome.lost_failure(ended(bench, unit(state=UnitState.READY)))
    assert found.kind is kind
    if kind is Kind.RESOURCE_LOST:
        assert (found.evidence["resource"], found.evidence["type"], found.evidence["worker"]) == ("b-1", "bench", "w-1")


def test_a_worker_is_no_resource_whatever_its_reason() -> None:
    assert outcome.lost_failure(ended(unit(reason="the cause"))).kind is Kind.WORKER_LOST


def test_who_waited_in_vain_says_for_what_and_what_the_maker_said() -> None:
    before = job(state=State.ACQUIRING)
    making = unit(reason="Misconfigured: no such image")
    ending = Ending(before, conclude(before, "QueueDeadline", "too long", NOW), [making], "QueueDeadline", True)
    held = [lease(1, LeaseState.READY, pool="a"), lease(2, LeaseState.GRANTED, pool="b"), lease(3, pool="b")]
    assert outcome.expired_failure(ending, held).evidence == {
        "bound": "queue deadline",
        "bound_seconds": 3600,
        "waited_for": "b",
        "error": "Misconfigured: no such image",
    }
    ready = replace(ending, units=[unit(reason="old", state=UnitState.READY)])
    assert outcome.expired_failure(ready, []).evidence == {
        "bound": "queue deadline",
        "bound_seconds": 3600,
        "error": "too long",
    }


def test_a_worker_knows_when_it_was_heard_of() -> None:
    spoke = units.hello(unit(), "hash", NOW, MINUTE)
    assert spoke.session.heard == NOW
    assert units.renew(spoke, NOW + MINUTE, MINUTE).session.heard == NOW + MINUTE


def test_a_settled_job_is_not_settled_again() -> None:
    once = jobs.settle(job(), Outcome.ERRORED, "lost", NOW)
    with pytest.raises(ValueError, match="is settled already: errored"):
        jobs.settle(once, Outcome.FAILED, "late", NOW)


def test_a_settled_job_is_due_only_while_its_flow_is_to_be_stopped() -> None:
    assert jobs.settle(job(stop_from=1), Outcome.ERRORED, "lost", NOW).due == NOW
    assert jobs.settle(job(), Outcome.ERRORED, "lost", NOW).due is None


@pytest.mark.parametrize(
    ("kind", "by", "asks"), [(Kind.CANCELLED, "ada", False), (Kind.CANCELLED, "bob", True), (Kind.EXITED, "ada", None)]
)
def test_who_cancelled_their_own_job_is_not_told_to_ask_somebody(kind: Kind, by: str, asks: bool | None) -> None:
    meaning = failures.meaning_of(Failure(kind, {"cancelled_by": by}), "ada")
    assert ("ask that user" in meaning.advice) is bool(asks)
    assert (meaning == MEANINGS[kind]) is (asks is not False)
