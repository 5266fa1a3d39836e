"""A reply that the caller has already is not sent again, and never when it has changed. [SEC-2]"""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.api.app import Operation
from penstock.api.conditional import CACHED, has_versions
from tests.functions.reading import counted
from tests.functions.service import WORKER_TOKEN, Answer, Service, refused, token_of
from tests.functions.stage import OPERATIONS, Stage, greet

READS = [each for each in OPERATIONS if each.method == "GET" and each.replies and each.name != "get_provenance"]
"""All that replies in JSON; but no two signatures of a statement are the same."""

FOR_ALL = "public, max-age=300"

KEPT = {
    "get_issuer": FOR_ALL,
    "get_issuer_keys": FOR_ALL,
    "read_segment": "private, max-age=86400, immutable",
    "read_shared_events": "public, max-age=1",
    "read_shared_segment": "public, max-age=300, immutable",
}
"""What may be kept without asking again."""


@pytest.fixture
def stage(service: Service) -> Stage:
    return Stage(service)


def again(service: Service, path: str, tag: str, as_: str | None = "ada", **more: Any) -> Answer:
    return service.ask("GET", path, headers={"if-none-match": tag}, as_=as_, **more)


@pytest.mark.parametrize("operation", READS, ids=lambda operation: operation.name)
def test_what_has_not_changed_is_answered_without_a_body(stage: Stage, operation: Operation) -> None:
    values = stage.values(operation)
    stage.prepare(operation, values)
    path = operation.path.format(**values)
    as_ = None if operation.open else "root"
    query = stage.query(operation.name)
    stage.service.ask("GET", path, as_=as_, query=query)
    first = stage.service.ask("GET", path, as_=as_, query=query)
    assert first.headers["cache-control"] == KEPT.get(operation.name, CACHED)
    for tag in (first.headers["etag"], f'"x", W/{first.headers["etag"]}'):
        second = again(stage.service, path, tag, as_, query=query)
        assert (second.status, second.body) == (304, b""), (first.body, second.body)
        assert second.headers["etag"] == first.headers["etag"]
    other = again(stage.service, path, '"other"', as_, query=query)
    assert (other.status, other.body) == (200, first.body)


def test_what_has_changed_is_sent(stage: Stage) -> None:
    job = f"/v1/jobs/{stage.job}"
    paths = {
        job: "ada",
        "/v1/jobs": "ada",
        f"{job}/events": "ada",
        "/v1/pools/target/linux": "bob",
        "/v1/graph": "root",
    }
    before = {path: stage.service.ask("GET", path, as_=as_) for path, as_ in paths.items()}
    stage.end()
    for path, answer in before.items():
        now = again(stage.service, path, answer.headers["etag"], paths[path])
        assert now.status == 200, path
        assert now.headers["etag"] != answer.headers["etag"]
        assert now.body != answer.body


@pytest.mark.parametrize("resources", [[], ["bench"]])
def test_a_job_is_sent_whenever_it_is_another(service: Service, resources: list[str]) -> None:
    """At each step of its life: 304 only where a whole reply would be the same, and always where nothing happened."""
    job = service.submit(resources=resources, env={"A": "b"})
    path, tag, body, sent = f"/v1/jobs/{job}", "", b"", 0
    for step in (None, "hello", "hold", "release", "cancel", "finish", None):
        take(service, job, step)
        fresh, answer = service.ask("GET", path), again(service, path, tag)
        tag, body = answer.headers["etag"], answer.body or body
        assert body == fresh.body, step
        assert again(service, path, tag).status == 304
        sent += answer.status == 200
    assert sent >= 3


def take(service: Service, job: str, step: str | None) -> None:
    """A step of a job's life."""
    match step:
        case "hello":
            greet(service, job)
        case "hold":
            service.ask("POST", f"/v1/jobs/{job}/hold", {"reason": "to look"})
        case "release" | "cancel":
            service.ask("POST", f"/v1/jobs/{job}/{step}")
        case "finish":
            body = {"result": "cancelled"}
            service.ask("POST", f"/v1/agent/jobs/{job}/finish", body, token=WORKER_TOKEN)
    service.twin.run()


def test_an_unchanged_job_costs_one_read(service: Service) -> None:
    job = service.submit()
    greet(service, job)
    for path in (f"/v1/jobs/{job}", f"/v1/jobs/{job}/script"):
        tag = service.ask("GET", path).headers["etag"]
        assert has_versions([tag])
        with counted() as reads:
            assert again(service, path, tag).status == 304
        assert reads == {"get": 1}


def test_a_tag_opens_nothing(service: Service) -> None:
    """SEC-2: who may not see a job gets the same refusal with its tag as without."""
    job = service.submit()
    path = f"/v1/jobs/{job}"
    tag = service.ask("GET", path).headers["etag"]
    refused(again(service, path, tag, "bob"), 404, "job-not-found")
    refused(again(service, path, tag, None), 401, "no-token")
    refused(again(service, f"/v1/jobs/{job}/script", tag, "bob"), 404, "job-not-found")


def test_a_refusal_and_what_is_no_get_have_no_tag(service: Service) -> None:
    assert "etag" not in service.ask("GET", "/v1/jobs/none").headers
    made = service.ask("POST", "/v1/jobs", {"script": "#!/bin/sh\n"}, headers={"if-none-match": '"v"'})
    assert (made.status, "etag" in made.headers) == (201, False)


def test_a_header_with_anything_in_it_is_read(service: Service) -> None:
    for header in ("", ",", '"', "W/", "*", "\x00ä", '"v,' * 100_000, f'"{token_of("ada")}"'):
        answer = service.ask("GET", "/v1/jobs", headers={"if-none-match": header})
        assert answer.status == 200, header[:10]
        assert json.loads(answer.body)["items"] == []
