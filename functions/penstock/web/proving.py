"""Tests of factories over HTTP: parse, call, reply."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from penstock import agentfile, bootstrap, wire
from penstock.domain.users.users import User
from penstock.usecases.probes import factory_test
from penstock.usecases.probes.factory_test import Progress
from penstock.usecases.users import users
from penstock.web.entry import body, idempotency_key, reply
from penstock.web.times import stamp

router = APIGatewayHttpRouter()  # type: ignore[no-untyped-call]


def operator() -> User:
    """Whose request this is, if they may do everything."""
    user = users.authenticate(bootstrap.aws(), router.current_event.headers.get("authorization"))
    users.require_admin(user)
    return user


@router.post("/v1/factories/<name>/test")
def begin_test(name: str) -> Response[Any]:
    user = operator()
    ask = body(router, wire.NewFactoryTest) if router.current_event.body else wire.NewFactoryTest()
    key = idempotency_key(router)
    begun = factory_test.start(bootstrap.aws(), user, name, ask.target, ask.keep_on_failure, key)
    return reply(wire.FactoryTestStarted(begun.job, begun.target, list(begun.waits)), 201)


@router.get("/v1/factories/<name>/tests/<job>")
def get_test(name: str, job: str) -> Response[Any]:
    found = factory_test.progress(bootstrap.aws(), operator(), name, job, agentfile.version())
    return reply(_view(found, name))


def _view(found: Progress, name: str) -> wire.FactoryTestView:
    unit = found.unit
    return wire.FactoryTestView(
        job=found.job.id,
        factory=name,
        target=found.job.target_resolved,
        state=found.job.state.value,
        worker=unit.id if unit else None,
        held_until=stamp(unit.hold.until) if unit and unit.hold else None,
        waits=found.waits,
        over=found.is_over,
        passed=found.is_passed,
        checks=[wire.CheckView(one.check, one.ok, one.detail, one.seconds) for one in found.checks],
    )
