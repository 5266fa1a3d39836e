"""What strangers read of public repositories, and what they try to read besides. [SEC-1] [SEC-2]

Every attack is over HTTP, by the handlers that are deployed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from penstock.api import openapi
from penstock.api.app import Operation
from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.users.users import TokenKind, digest, token_secret
from penstock.kernel.rows import Replace, ulid
from penstock.testing.twin import START
from tests.functions.service import SITE, WORKER_TOKEN, Answer, Service, refused, token_of
from tests.functions.stage import BODIES, Stage

PUBLIC = '\n[console]\npublic = ["oxide:hubris"]\n'
EVERY = '\n[console]\npublic = ["*"]\n'
SECRET = "hunter2-and-more"
OPEN = {"get_job", "get_timings", "read_events", "read_segment", "list_outputs", "sign_output", "explain_job"}
"""What strangers may do with a public job."""

OF_JOBS = [each for each in openapi.users() if each.path.startswith("/v1/jobs/{job}")]
BY_KEY = [each for each in openapi.users() if each.path.startswith("/v1/logs/{job}")]
NO_JOB = "01KDVDNA00000000000000000J"


def put(service: Service, more: str) -> None:
    assert service.ask("PUT", "/v1/config", {"toml": SITE + more}, as_="root").status == 200


def submit(service: Service, owner: str = "oxide:hubris", **ask: Any) -> str:
    answer = service.ask("POST", "/v1/jobs", {"script": "#!/bin/sh\ntrue\n", "owner": owner, **ask}, as_="root")
    assert answer.status == 201, answer
    service.twin.run()
    return str(answer.json["id"])


def read(service: Service, path: str, method: str = "GET", body: Any = None, **more: Any) -> Answer:
    """A request of a stranger."""
    return service.ask(method, path, body, as_=None, **more)


@pytest.fixture
def repository(service: Service) -> Service:
    """A service with a public repository and another, and a public job that has a bench."""
    for name in ("oxide:hubris", "acme:tools"):
        service.ask("POST", "/v1/users", {"name": name}, as_="root")
    put(service, PUBLIC)
    return service


@pytest.fixture
def job(repository: Service) -> str:
    return submit(repository, resources=["bench"], tags={"a": "b"})


def requests(operation: Operation, job: str) -> Iterator[tuple[str, Any]]:
    """The path and the body of an operation on a job."""
    path = operation.path.replace("{job}", job)
    yield re.sub(r"{\w+}", NO_JOB, path), {} if operation.body else None


def test_a_stranger_reads_a_public_job(repository: Service, job: str) -> None:
    shown = read(repository, f"/v1/jobs/{job}")
    assert (shown.status, shown.json["owner"], shown.json["tags"]) == (200, "oxide:hubris", {"a": "b"})
    assert read(repository, f"/v1/jobs/{job}/timings").json["times"]["submitted"]
    assert read(repository, f"/v1/jobs/{job}/events").json["items"]
    assert read(repository, f"/v1/jobs/{job}/outputs").json == {"items": [], "next": None}
    assert read(repository, f"/v1/jobs/{job}/why").json["job"] == job
    listed = read(repository, "/v1/jobs", query={"owner": "oxide:hubris"})
    assert [each["id"] for each in listed.json["items"]] == [job]


@pytest.mark.parametrize("more", ["", '\n[console]\npublic = ["acme:tools"]\n', "\n[console]\npublic = []\n"])
def test_what_the_site_does_not_call_public_is_not(repository: Service, job: str, more: str) -> None:
    """SEC-2: from the next request on."""
    put(repository, more)
    for operation in OF_JOBS:
        for path, body in requests(operation, job):
            refused(read(repository, path, operation.method, body), 401, "no-token")
    refused(read(repository, "/v1/jobs", query={"owner": "oxide:hubris"}), 401, "no-token")


@pytest.mark.parametrize("operation", OF_JOBS, ids=lambda operation: operation.name)
def test_a_stranger_does_nothing_else_with_a_public_job(repository: Service, job: str, operation: Operation) -> None:
    """SEC-2."""
    rows = dict(repository.twin.store.rows)
    for path, body in requests(operation, job):
        answer = read(repository, path, operation.method, body)
        if operation.name in OPEN:
            assert answer.status in (200, 404), answer
        else:
            refused(answer, 401, "no-token")
            assert dict(repository.twin.store.rows) == rows


@pytest.mark.parametrize("owner", ["root", "acme:tools"])
def test_other_jobs_are_as_those_that_there_are_not(repository: Service, owner: str) -> None:
    """SEC-2: a stranger does not learn which ids there are."""
    hidden = submit(repository, owner)
    for operation in OF_JOBS:
        answers = []
        for id in (hidden, NO_JOB, "x", "%00"):
            for path, body in requests(operation, id):
                answers.append(read(repository, path, operation.method, body))
        assert {(each.status, each.body) for each in answers if each.status != 404} == {(401, answers[0].body)}
    for operation in BY_KEY:
        for id in (hidden, NO_JOB, "x", "%00"):
            for path, body in requests(operation, id):
                refused(read(repository, path, operation.method, body), 403, "log-key")
        assert [each.json["code"] for each in answers[:3]] == ["no-token"] * 3


def test_whether_a_stranger_may_is_decided_before_the_request_is_read(repository: Service) -> None:
    """SEC-2: a stranger does not learn by a fault in the request whether there is such a job."""
    hidden = submit(repository, "acme:tools")
    for id in (hidden, NO_JOB):
        refused(read(repository, f"/v1/jobs/{id}/events", query={"last": "x"}), 401, "no-token")
        refused(read(repository, f"/v1/jobs/{id}/outputs/x/sign", "POST", "no JSON"), 401, "no-token")
    for owner in ("acme:tools", "x:y"):
        refused(read(repository, "/v1/jobs", query={"owner": owner, "limit": "x"}), 401, "no-token")


def test_no_user_is_public_whatever_the_site_says(repository: Service) -> None:
    """SEC-2: `*` is all repositories, and no people."""
    put(repository, EVERY)
    mine, tools = submit(repository, "root"), submit(repository, "acme:tools")
    assert read(repository, f"/v1/jobs/{tools}").status == 200
    refused(read(repository, f"/v1/jobs/{mine}"), 401, "no-token")
    for owner in ("root", "ada", "", "*", "ada\n", "users"):
        refused(read(repository, "/v1/jobs", query={"owner": owner}), 401, "no-token")


@pytest.mark.parametrize(
    "query",
    [{}, {"all": "true"}, {"owner": "acme:tools"}, {"owner": "oxide:hubri"}, {"owner": "OXIDE:hubris"}, {"name": "x"}],
)
def test_a_stranger_lists_one_public_repository_at_a_time(repository: Service, job: str, query: dict[str, str]) -> None:
    """SEC-2."""
    refused(read(repository, "/v1/jobs", query=query), 401, "no-token")


def test_a_stranger_lists_not_everybodys_jobs_beside(repository: Service, job: str) -> None:
    query = [("owner", "oxide:hubris"), ("all", "true")]
    refused(read(repository, "/v1/jobs", query=query), 400, "bad-request")
    twice = [("owner", "oxide:hubris"), ("owner", "acme:tools")]
    assert read(repository, "/v1/jobs", query=twice).status == 401


def test_whoever_shows_a_bad_token_is_no_stranger(repository: Service, job: str) -> None:
    """A token that is over must not look as if it still worked."""
    for token in (token_of("late"), "x"):
        assert repository.ask("GET", f"/v1/jobs/{job}", as_=None, token=token).status == 401
    secret = token_secret(TokenKind.USER, ulid(START, b"0123456789"), digest("narrow"))
    repository.give("ada", secret, "operate")
    refused(repository.ask("GET", f"/v1/jobs/{job}", token=secret), 403, "scope-missing")


def test_why_tells_a_stranger_of_nobody_else(repository: Service, job: str) -> None:
    """SEC-2: neither who has the bench, nor who comes first, nor what an operator said."""
    ahead = submit(repository, "root", resources=["bench"], name="a-hidden-name")
    waiting = submit(repository, resources=["bench"])
    put(repository, PUBLIC + "[limits]\ngrace = 5\n")
    whole = repository.ask("GET", f"/v1/jobs/{waiting}/why", as_="root").json
    assert whole["blocked_on"]["ahead"][0]["job_name"] == "a-hidden-name"
    answer = read(repository, f"/v1/jobs/{waiting}/why")
    assert answer.json["summary"] == "the job waits for resource/bench; position 2 in the queue"
    block = answer.json["blocked_on"]
    lists = (block["ahead"], block["held_by"], block["away"], block["kept"])
    assert (block["position"], block["held"], lists) == (2, 1, ([], [], [], []))
    assert (answer.json["waiting_for"], answer.json["basis"], answer.json["unblocks"]) == (None, None, None)
    for secret in ("a-hidden-name", "root", ahead, job):
        assert secret not in answer.body.decode()
    stranger = repository.ask("GET", f"/v1/jobs/{waiting}/why", as_="bob")
    assert stranger.json == answer.json


def test_who_holds_a_public_job_and_why_is_told_to_no_stranger(service: Service) -> None:
    """SEC-2."""
    job = Stage(service).job
    store = service.twin.store
    was = store.get(job_key(job), Job)
    assert was
    assert store.commit([Replace(was, replace(was, owner="oxide:hubris"))])
    put(service, EVERY)
    assert service.ask("POST", f"/v1/jobs/{job}/hold", {"reason": SECRET, "whatever": True}, as_="root").status == 200
    ended = service.ask("POST", f"/v1/agent/jobs/{job}/finish", BODIES["agent_finish"], token=WORKER_TOKEN)
    assert ended.status == 200
    service.twin.run()
    assert service.ask("GET", f"/v1/jobs/{job}", as_="root").json["held"]["reason"] == SECRET
    for answer in (read(service, f"/v1/jobs/{job}"), service.ask("GET", f"/v1/jobs/{job}", as_="bob")):
        assert answer.json["held"] is None
        assert SECRET not in answer.body.decode()


def test_a_stranger_downloads_an_output_of_a_public_job_alone(service: Service) -> None:
    """SEC-2: an output of another job is none of this one."""
    stage = Stage(service)
    put(service, EVERY)
    public = submit(service)
    path = f"/v1/jobs/{stage.job}/outputs/{stage.output}/sign"
    refused(read(service, path, "POST"), 401, "no-token")
    assert service.ask("POST", path).status == 200
    refused(read(service, f"/v1/jobs/{public}/outputs/{stage.output}/sign", "POST"), 404, "output-not-found")


def test_a_user_reads_public_jobs_and_changes_none(repository: Service, job: str) -> None:
    """SEC-2."""
    assert repository.ask("GET", f"/v1/jobs/{job}", as_="bob").status == 200
    assert repository.ask("GET", "/v1/jobs", as_="bob", query={"owner": "oxide:hubris"}).json["items"]
    refused(repository.ask("GET", "/v1/jobs", as_="bob", query={"owner": "acme:tools"}), 403, "privilege-missing")
    for path in (f"/v1/jobs/{job}/cancel", f"/v1/jobs/{job}/retry", f"/v1/jobs/{job}/discard"):
        refused(repository.ask("POST", path, as_="bob"), 404, "job-not-found")
    refused(repository.ask("GET", f"/v1/jobs/{job}/inputs", as_="bob"), 404, "job-not-found")


def test_the_console_says_whether_anything_is_public(repository: Service) -> None:
    shown = read(repository, "/v1/console")
    assert (shown.json["public"], shown.json["github"]) == (True, False)
    assert re.fullmatch("[0-9a-f]{12}", shown.json["version"])
    put(repository, "")
    assert read(repository, "/v1/console").json["public"] is False
