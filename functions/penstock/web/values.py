"""A job's store over HTTP: parse, call, reply."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from penstock import bootstrap, wire
from penstock.domain.jobs.store import Value
from penstock.domain.users.users import User
from penstock.usecases.jobs import jobs, store
from penstock.usecases.jobs.store import NewValue
from penstock.usecases.users import users
from penstock.web.entry import body, reply
from penstock.web.times import present

router = APIGatewayHttpRouter()  # type: ignore[no-untyped-call]


def caller() -> User:
    """Whose request this is."""
    return users.authenticate(bootstrap.aws(), router.current_event.headers.get("authorization"))


@router.get("/v1/jobs/<job>/store")
def list_values(job: str) -> Response[Any]:
    on = bootstrap.aws()
    found = store.list_values(on, jobs.find(on, caller(), job))
    return reply(wire.ValuePage([_view(row) for row in found], None))


@router.get("/v1/jobs/<job>/store/<name>")
def get_value(job: str, name: str) -> Response[Any]:
    on = bootstrap.aws()
    return reply(_view(store.show(on, jobs.find(on, caller(), job), name)))


@router.put("/v1/jobs/<job>/store/<name>")
def put_value(job: str, name: str) -> Response[Any]:
    on, user = bootstrap.aws(), caller()
    found, ask = jobs.find(on, user, job), body(router, wire.PutValue)
    return reply(_view(store.put(on, found, NewValue(name, ask.value, ask.secret, user.name))))


def _view(row: Value) -> wire.ValueView:
    return wire.ValueView(
        row.name, None if row.is_secret else row.text, row.is_secret, row.by, present(row.time)
    )  # fmt: skip
