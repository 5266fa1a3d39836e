"""Names that are longer than any key may be: in every part of a path, in every query, and where they name an owner."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.api.app import Operation
from tests.functions.service import SCRIPT, Service, is_problem, refused
from tests.functions.stage import BODIES, EVERY

LONG = ("x" * 3000, "x:" + "x" * 2100, "x" * 1000, "😀" * 300)
"""Beyond DynamoDB's 2,048 bytes of a partition key, and its 1,024 of a sort key; also in few characters."""
KNOWN = {"job": "0" * 26, "sort": "target", "name": "linux"}


def parts(operation: Operation) -> list[str]:
    return [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]


def check(service: Service, operation: Operation, body: Any, given: dict[str, str], query: dict[str, str]) -> None:
    answer = service.ask(operation.method, operation.path.format(**given), body, as_="root", query=query)
    assert answer.status < 500, (given, query, answer)
    if answer.status >= 400 and operation.method != "HEAD":
        is_problem(answer)


@pytest.mark.parametrize("operation", EVERY, ids=lambda operation: operation.name)
def test_no_long_name_is_our_fault(service: Service, operation: Operation) -> None:
    known = {part: KNOWN.get(part, "ada") for part in parts(operation)}
    bodies = [None] if operation.method in ("GET", "HEAD") else [{}, BODIES.get(operation.name, {})]
    rows = dict(service.twin.store.rows)
    for text in LONG:
        for body in bodies:
            for part in known:
                check(service, operation, body, known | {part: text}, {})
            for name in operation.query:
                check(service, operation, body, known, {name: text})
            service.twin.store.rows.clear()
            service.twin.store.rows.update(rows)


@pytest.mark.parametrize("who", ["root", "ada"])
def test_costs_of_whom_there_cannot_be_are_refused(service: Service, who: str) -> None:
    service.ask("PUT", "/v1/users/ada/privileges/as", as_="root")
    answer = service.ask("GET", "/v1/costs", as_=who, query={"owner": "x:" + "x" * 2100})
    refused(answer, 400, "bad-request")
    assert service.ask("GET", "/v1/costs", as_=who, query={"owner": "oxide:hubris"}).status == 200


@pytest.mark.parametrize("do", ["disable", "drain", "enable"])
@pytest.mark.parametrize(("sort", "code"), [("factories", "factory-not-found"), ("wells", "well-not-found")])
def test_a_maker_with_a_long_name_is_none(service: Service, sort: str, code: str, do: str) -> None:
    for name in ("x" * 129, "x" * 3000):
        refused(service.ask("POST", f"/v1/{sort}/{name}/{do}", {"reason": "why"}, as_="root"), 404, code)


@pytest.mark.parametrize(
    ("user", "privilege"),
    [("x" * 3000, "target.lab"), ("ada", "x" * 3000), ("ada", "TARGET")],
    ids=["a long user", "a long privilege", "no privilege"],
)
def test_a_request_that_nobody_can_make_is_none(service: Service, user: str, privilege: str) -> None:
    path = f"/v1/users/{user}/privileges/{privilege}/refuse"
    refused(service.ask("POST", path, {"reason": "no"}, as_="root"), 404, "request-not-found")


def test_a_job_of_whom_there_cannot_be_is_refused(service: Service) -> None:
    service.ask("PUT", "/v1/users/ada/privileges/as", as_="root")
    for path, body in (("/v1/jobs", {"script": SCRIPT}), ("/v1/leases", {"resources": ["licence"]})):
        answer = service.ask("POST", path, body | {"owner": "x:" + "x" * 2100})
        refused(answer, 400, "bad-request")
    asked = {"reason": "why", "owner": "x:" + "x" * 2100}
    refused(service.ask("PUT", "/v1/privileges/target.lab/request", asked), 400, "bad-request")
