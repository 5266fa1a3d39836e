"""The site's canaries, over HTTP: parse, call, reply."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from penstock import bootstrap, wire
from penstock.domain.probes.canaries import Canary
from penstock.usecases.probes import canaries
from penstock.web.entry import reply
from penstock.web.site import operator
from penstock.web.times import stamp

router = APIGatewayHttpRouter()  # type: ignore[no-untyped-call]


@router.get("/v1/canaries")
def list_canaries() -> Response[Any]:
    operator()
    return reply(wire.CanaryPage([_view(row) for row in canaries.list_canaries(bootstrap.aws())], None))


@router.post("/v1/canaries/<sort>/<name>/send")
def send_canary(sort: str, name: str) -> Response[Any]:
    operator()
    return reply(_view(canaries.send(bootstrap.aws(), f"{sort}/{name}")))


def _view(row: Canary) -> wire.CanaryView:
    return wire.CanaryView(
        pool=row.pool,
        is_out=row.is_out,
        job=row.job,
        since=stamp(row.since),
        outcome=row.outcome,
        reason=row.reason,
        failures=row.failures,
        due=stamp(row.due),
    )
