"""The functions that are woken by SQS, Step Functions and EventBridge."""

from __future__ import annotations

import importlib
import json
import threading
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.jobs.jobs import Job, Outcome, State, job_key
from penstock.domain.units.units import STEP_WITHIN, Creation, Unit, UnitKind, UnitLease, UnitState
from penstock.kernel.rows import Create
from penstock.ports import MachineFate, MachineNotice
from penstock.testing.twin import START
from penstock.usecases import sweep
from tests.functions.service import Context, Service
from tests.functions.stage import Stage

SERVE = {"do": "serve", "pools": ["target/linux"], "group": "target/linux"}


def batch(*bodies: Any) -> dict[str, Any]:
    """A batch as SQS sends it; what is text is sent as it is."""
    texts = [body if isinstance(body, str) else json.dumps(body) for body in bodies]
    return {
        "Records": [
            {"messageId": str(number), "eventSource": "aws:sqs", "body": text, "attributes": {}, "receiptHandle": "r"}
            for number, text in enumerate(texts)
        ]
    }


def wake(function: str, event: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = importlib.import_module(function).handler(event, Context())
    return answer


def failed(function: str, *bodies: Any) -> list[str]:
    return [item["itemIdentifier"] for item in wake(function, batch(*bodies))["batchItemFailures"]]


def job_of(service: Service, job: str) -> Job:
    found = service.twin.store.get(job_key(job), Job)
    assert found
    return found


def test_only_what_fails_is_delivered_again(service: Service) -> None:
    job = service.ask("POST", "/v1/jobs", {"script": "#!/bin/sh\n"}).json["id"]
    acquire = service.twin.queues.messages.pop()[2]
    assert failed("schedule", "not JSON", acquire, "[]", SERVE) == ["0", "2"]
    assert job_of(service, job).state == "acquiring"


@pytest.mark.parametrize("function", ["factory", "well"])
def test_a_unit_that_fails_does_not_stop_the_others(service: Service, function: str) -> None:
    service.submit()
    unit = next(row for row in service.twin.store.rows.values() if isinstance(row, Unit))
    assert failed(function, {"unit": "w-gone"}, "{", {"unit": unit.id}, {"unit": unit.id}) == ["1"]


def test_a_factory_writes_console_output_that_an_operator_asked_for(service: Service) -> None:
    service.submit()
    service.twin.run()
    unit = next(row for row in service.twin.store.rows.values() if isinstance(row, Unit))
    shown = service.ask("POST", f"/v1/workers/{unit.id}/console", as_="root")
    assert (shown.status, shown.json["id"]) == (200, unit.id)
    assert failed("factory", service.twin.queues.messages.pop()[2]) == []
    items = service.ask("GET", f"/v1/workers/{unit.id}/events", as_="root").json["items"]
    assert items[-1]["payload"].startswith("console output, asked for by root\n")


def test_nothing_goes_on_after_an_answer(service: Service) -> None:
    """Lambda freezes a process after its answer; a thread that was left would go on minutes later, or never."""
    before = set(threading.enumerate())
    service.submit(resources=["bench"])
    unit = next(row for row in service.twin.store.rows.values() if isinstance(row, Unit))
    wake("schedule", batch(SERVE))
    wake("factory" if unit.is_a is UnitKind.WORKER else "well", batch({"unit": unit.id}))
    wake("sweep", {})
    assert set(threading.enumerate()) == before


ENDED = {
    "version": "0", "id": "7bf73129", "detail-type": "EC2 Instance State-change Notification", "source": "aws.ec2",
    "account": "123456789012", "time": "2026-01-01T00:00:00Z", "region": "eu-west-1", "resources": [],
    "detail": {"instance-id": "i-1", "state": "terminated"},
}  # fmt: skip
"""As EventBridge sends it to a queue: the event itself is the message."""


def test_what_a_cloud_says_of_a_machine_is_heard(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    job = service.submit()
    unit = next(row for row in service.twin.store.rows.values() if isinstance(row, Unit))
    heard = []

    def read_event(event: dict[str, Any]) -> MachineNotice | None:
        heard.append(event)
        return MachineNotice(unit.id, MachineFate.LOST, "it ended") if event == ENDED else None

    monkeypatch.setattr(service.twin.drivers.hand, "read_event", read_event, raising=False)
    other = {**ENDED, "detail": {"instance-id": "i-2", "state": "terminated"}}
    assert failed("factory", other, ENDED, ENDED) == []
    assert heard == [other, ENDED], "the same message twice is taken once"
    service.twin.run()
    assert job_of(service, job).attempt == 2


@pytest.mark.parametrize(
    "message", [{}, [], 5, "x", {"unit": None}, {"source": "aws.ec2", "detail": None}, {"detail": {}}, ENDED], ids=str
)
def test_what_the_factory_function_does_not_understand_is_dropped(service: Service, message: Any) -> None:
    """Delivered again it would be no clearer. An event is dropped that no factory of the site understands."""
    service.submit()
    rows = dict(service.twin.store.rows)
    assert failed("factory", json.dumps(message)) == []
    assert service.twin.store.rows == rows


def test_an_event_that_meets_an_error_of_ours_is_delivered_again(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def get(*_: Any) -> Any:
        raise ConnectionError("the table is not there")

    monkeypatch.setattr(service.twin.store, "get", get)
    assert failed("factory", ENDED) == ["0"]


def test_an_event_that_a_factory_fails_at_is_dropped(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its driver would fail again, and the leases of its machines run out by themselves."""

    def read_event(event: dict[str, Any]) -> MachineNotice | None:
        raise ConnectionError("its own cloud is not there")

    monkeypatch.setattr(service.twin.drivers.hand, "read_event", read_event, raising=False)
    assert failed("factory", ENDED) == []


def test_a_batch_of_failures_is_reported_record_by_record(service: Service) -> None:
    assert failed("schedule", "a", "b") == ["0", "1"]


@pytest.mark.parametrize("message", [{"do": "dance"}, {}, {"do": "acquire"}, {"do": None, "job": 1}])
def test_a_message_that_nobody_understands_is_dropped(
    service: Service, capsys: pytest.CaptureFixture[str], message: dict[str, Any]
) -> None:
    rows = dict(service.twin.store.rows)
    assert failed("schedule", message) == []
    assert service.twin.store.rows == rows


def test_messages_about_what_is_not_there_do_nothing(service: Service) -> None:
    rows = dict(service.twin.store.rows)
    ghost = {"job": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "attempt": 1}
    messages = [
        {"do": "acquire", "order": 0, "token": "t", **ghost},
        {"do": "start", "job": ghost["job"]},
        {"do": "serve", "pools": ["target/none"], "group": "target/none"},
        {"do": "resize", "pool": "target/none"},
    ]
    assert failed("schedule", *messages) == []
    assert failed("factory", {"unit": "w-none"}) == []
    assert failed("well", {"unit": "r-none"}) == []
    assert wake("settle", ghost) == {}
    assert service.twin.store.rows == rows


def test_an_attempt_is_settled_by_its_flow(service: Service) -> None:
    job = service.submit()
    error = {"Error": "Unsatisfiable", "Cause": "there is no such thing"}
    assert wake("settle", {"job": job, "attempt": 1, "needs": [], "error": error}) == {}
    settled = job_of(service, job)
    assert (settled.end.outcome, settled.end.reason) == (Outcome.FAILED, "there is no such thing")
    wake("settle", {"job": job, "attempt": 1})
    assert job_of(service, job) == settled


@pytest.mark.parametrize("status", ["FAILED", "TIMED_OUT", "ABORTED"])
def test_an_attempt_whose_flow_ended_otherwise_is_settled_by_eventbridge(service: Service, status: str) -> None:
    """JOB-1: however a flow ends, its job settles with a reason that says so."""
    job = service.submit(retries=0)
    detail = {"name": f"{job}-1", "status": status, "executionArn": "arn", "input": "{}", "cause": None}
    source = {"source": "aws.states", "detail-type": "Step Functions Execution Status Change", "detail": detail}
    assert wake("settle", source) == {}
    settled = job_of(service, job)
    assert settled.end.outcome is Outcome.ERRORED
    assert status in str(settled.end.reason)
    service.twin.run()
    assert not service.twin.drivers.hand.made


def test_a_flow_that_could_not_send_its_step_is_followed_by_another(service: Service) -> None:
    """JOB-1: what AWS reports of its own calls costs the job no retry."""
    job = service.submit(retries=0)
    error = {"Error": "SQS.SdkClientException", "Cause": "Unable to execute HTTP request"}
    wake("settle", {"job": job, "attempt": 1, "needs": [], "error": error})
    service.twin.run()
    again = job_of(service, job)
    assert (again.state, again.attempt, again.history.spared) == (State.ACQUIRING, 2, 1)


def test_no_end_of_a_flow_ends_a_job_whose_agent_has_said_hello(service: Service) -> None:
    """JOB-1: the step failed, and the hello came before the settle function did."""
    stage = Stage(service)
    name = {"name": f"{stage.job}-1", "status": "FAILED", "cause": None}
    wake("settle", {"job": stage.job, "attempt": 1, "error": {"Error": "Lost", "Cause": "no hello in time"}})
    wake("settle", {"source": "aws.states", "detail": name})
    service.twin.run()
    assert (job_of(service, stage.job).state, job_of(service, stage.job).attempt) == (State.RUNNING, 1)
    stage.end()
    assert job_of(service, stage.job).end.outcome is Outcome.SUCCEEDED


def test_the_sweep_says_what_it_did(service: Service) -> None:
    job = service.submit()
    service.twin.pass_time(601)
    assert wake("sweep", {"source": "aws.events"})["nudged"] == 2  # the other is the site's rollout
    service.twin.run()
    assert job_of(service, job).attempt == 2


def test_the_sweep_takes_what_another_left_until_shortly_before_it_is_killed(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQS may bring a message late, twice, or after the one that sent it was killed."""
    now, taken = service.twin.world.now(), []
    monkeypatch.setattr(sweep, "go_on", lambda on, message, until: taken.append((message, until)))
    message = {"shard": "unit.0", "part": 1, "until": "2026-01-01T00:01:00+00:00"}
    answer = importlib.import_module("sweep").handler(batch(message), Context(remaining=90_000))
    assert answer == {"batchItemFailures": []}
    assert taken == [(message, now + timedelta(seconds=80))]


def test_a_sweep_calls_drivers_until_shortly_before_it_is_killed(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds = []
    monkeypatch.setattr(sweep, "sweep", lambda on, within: (bounds.append(within), sweep.SweepResult())[1])
    importlib.import_module("sweep").handler({"source": "aws.events"}, Context(remaining=90_000))
    assert bounds == [timedelta(seconds=80)]


UNCLEAR = ({}, [], 5, "x", {"shard": "unit.0", "part": 1}, {"pools": [], "until": "2100-01-01T00:00Z"})


@pytest.mark.parametrize("message", UNCLEAR, ids=str)
def test_what_the_sweep_does_not_understand_is_dropped(service: Service, message: Any) -> None:
    rows = dict(service.twin.store.rows)
    assert failed("sweep", json.dumps(message)) == []
    assert service.twin.store.rows == rows


def test_a_row_that_cannot_be_moved_on_does_not_stop_the_sweep(service: Service) -> None:
    broken = Unit(
        id="w-broken",
        is_a=UnitKind.WORKER,
        maker="hand",
        type="linux",
        state=UnitState.READY,
        lease=UnitLease(job="none", attempt=1, order=0, pool="target/linux", slot="1", fence=1),
        since=START,
        due=START - STEP_WITHIN,
        creation=Creation(made=START),
    )
    service.twin.store.commit([Create(broken)])
    first = wake("sweep", {})
    assert first["nudged"] + first["failed"] == 1
    service.twin.run()
