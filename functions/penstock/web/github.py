"""The front end for GitHub over HTTP, for operators: parse, call, reply."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from penstock import bootstrap, wire
from penstock.domain.github.commits import CheckSet
from penstock.domain.github.deliveries import Delivery
from penstock.kernel import limits
from penstock.usecases.github import repositories, webhook
from penstock.web import views
from penstock.web.entry import body, page_after, reply, whole_number
from penstock.web.site import operator
from penstock.web.times import present

router = APIGatewayHttpRouter()  # type: ignore[no-untyped-call]


@router.get("/v1/github/commits")
def list_commits() -> Response[Any]:
    operator()
    limit = whole_number(router, "limit", limits.PAGE, 1, limits.PAGE)
    rows, following = webhook.list_commits(bootstrap.aws(), limit, page_after(router))
    return reply(wire.CommitPage([_commit(row) for row in rows], following))


@router.get("/v1/github/deliveries")
def list_deliveries() -> Response[Any]:
    operator()
    limit = whole_number(router, "limit", limits.PAGE, 1, limits.PAGE)
    rows, following = webhook.list_deliveries(bootstrap.aws(), limit, page_after(router))
    return reply(wire.DeliveryPage([_delivery(row) for row in rows], following))


@router.post("/v1/github/deliveries/<delivery>/redeliver")
def redeliver(delivery: str) -> Response[Any]:
    user = operator()
    return reply(_delivery(webhook.redeliver(bootstrap.aws(), delivery, user.name)))


@router.post("/v1/github/repositories/<user>/accept")
def accept_repository(user: str) -> Response[Any]:
    by, ask = operator(), body(router, wire.AcceptRepository)
    return reply(views.user(repositories.accept(bootstrap.aws(), user, ask.id, by.name)))


def _commit(row: CheckSet) -> wire.CommitView:
    return wire.CommitView(
        repository=row.repository,
        commit=row.sha,
        branch=row.branch or None,
        pull_request=row.number or None,
        stage=row.stage,
        why=row.why or None,
        approved_by=row.approved_by or None,
        since=present(row.since),
    )


def _delivery(row: Delivery) -> wire.DeliveryView:
    said = row.event
    return wire.DeliveryView(
        id=row.id,
        event=row.name,
        action=row.action,
        repository=said.repository if said else None,
        commit=said.sha if said else None,
        sender=said.sender if said else None,
        received=present(row.received),
        missed=row.missed,
        outcome=row.outcome or None,
    )
