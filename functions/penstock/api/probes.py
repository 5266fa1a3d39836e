"""Probes: canaries, which run by themselves, and tests of factories, which operators begin."""

from __future__ import annotations

from typing import Annotated

from penstock import agentfile
from penstock.api.app import IdempotencyKey, Operator, Router
from penstock.api.shapes import JobState, view
from penstock.domain.probes.canaries import Canary
from penstock.domain.users.users import OPERATE, READ
from penstock.kernel.frozen import dataclass
from penstock.system import System
from penstock.usecases.probes import canaries, factory_test
from penstock.usecases.probes.factory_test import Progress

router = Router("probes")


@dataclass(frozen=True)
class CanaryView:
    """The canary of a target or a resource type: a job that runs again and again."""

    pool: Annotated[str, "The pool of its target or resource type."]
    is_out: Annotated[bool, "Whether its job has not settled yet."]
    job: Annotated[str | None, "The id of its last job; null if there was none yet."]
    since: Annotated[str | None, "When that job was submitted, as RFC 3339."]
    outcome: Annotated[str | None, "How that job ended."]
    reason: Annotated[str | None, "Why it ended that way."]
    failures: Annotated[int, "How many of its jobs failed in a row."]
    due: Annotated[str | None, "When the service looks at it again, as RFC 3339."]


@dataclass(frozen=True)
class CanaryPage:
    """All canaries of the site."""

    items: Annotated[list[CanaryView], "The canaries."]
    next: Annotated[str | None, "Always null: all canaries fit into one page."]


@dataclass(frozen=True)
class NewFactoryTest:
    """A test of a factory to begin."""

    target: Annotated[str | None, "The target to test. By default one of the factory's."] = None
    keep_on_failure: Annotated[
        int | None,
        "For how many seconds to hold the worker if the test fails, counted from its order. Release it when done.",
    ] = None


@dataclass(frozen=True)
class FactoryTestStarted:
    """A test that has begun."""

    id: Annotated[str, "The id of its job."]
    target: Annotated[str, "The target that it tests."]
    waits: Annotated[list[str], "The cool-downs that it will wait for, a sentence each."]


@dataclass(frozen=True)
class CheckView:
    """One check of a test."""

    check: Annotated[str, "What must be so."]
    ok: Annotated[bool | None, "Whether it is so; null until it is known, and if it was not reached."]
    detail: Annotated[str, "What was found."]
    seconds: Annotated[float | None, "How many seconds it took."]


@dataclass(frozen=True)
class FactoryTestView:
    """How far a test of a factory is."""

    job: Annotated[str, "The id of its job."]
    factory: Annotated[str, "The factory."]
    target: Annotated[str, "The target that it tests."]
    state: Annotated[JobState, "The job's state."]
    worker: Annotated[str | None, "The id of its worker; null before it has one."]
    held_until: Annotated[str | None, "Until when the worker is held, as RFC 3339; null if it is not."]
    waits: Annotated[str | None, "What the job waits for."]
    over: Annotated[bool, "Whether the test is over, and nothing is left of its worker."]
    passed: Annotated[bool, "Whether all checks passed."]
    checks: Annotated[list[CheckView], "The checks."]


BY_DEFAULT = NewFactoryTest()


@router.get("/v1/canaries", "List the canaries", READ)
def list_canaries(on: System, user: Operator) -> CanaryPage:
    return CanaryPage([show_canary(row) for row in canaries.list_canaries(on)], None)


@router.post("/v1/canaries/{sort}/{name}/send", "Run a canary now", OPERATE)
def send_canary(on: System, user: Operator, sort: str, name: str) -> CanaryView:
    return show_canary(canaries.send(on, f"{sort}/{name}"))


@router.post(
    "/v1/factories/{name}/test", "Begin a test of a factory: a job that shows whether it works", OPERATE, status=201
)
def begin_factory_test(
    on: System,
    user: Operator,
    name: str,
    ask: NewFactoryTest = BY_DEFAULT,
    *,
    idempotency_key: IdempotencyKey = None,
) -> FactoryTestStarted:
    begun = factory_test.start(on, user, name, ask.target, ask.keep_on_failure, idempotency_key)
    return view(FactoryTestStarted, begun, id=begun.job)


@router.get("/v1/factories/{name}/tests/{job}", "Show how far a test of a factory is", READ)
def get_factory_test(on: System, user: Operator, name: str, job: str) -> FactoryTestView:
    return show_test(factory_test.progress(on, user, name, job, agentfile.version()), name)


def show_canary(row: Canary) -> CanaryView:
    """A canary."""
    return view(CanaryView, row)


def show_test(found: Progress, name: str) -> FactoryTestView:
    """How far a test is."""
    job, unit = found.job, found.unit
    return view(
        FactoryTestView,
        found,
        job=job.id,
        factory=name,
        target=job.request.target_resolved,
        state=job.state,
        worker=unit.id if unit else None,
        held_until=unit.hold.until if unit and unit.hold else None,
        over=found.is_over,
        passed=found.is_passed,
    )
