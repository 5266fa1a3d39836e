"""Who may ask, for what, and how: tokens, ids, paths, pages, methods."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from penstock.kernel.errors import Throttled, Unreached
from tests.functions.odd import ODD, ULID
from tests.functions.service import Service, refused, token_of

JOB_CALLS = (
    ("GET", ""),
    ("POST", "/cancel"),
    ("POST", "/retry"),
    ("POST", "/discard"),
    ("GET", "/why"),
    ("GET", "/events"),
    ("GET", "/outputs"),
    ("GET", "/timings"),
    ("POST", f"/outputs/{ULID}/sign"),
)


LAST = "7" + "Z" * 25
"""The id that no other comes after."""


@pytest.mark.parametrize(("method", "path"), JOB_CALLS)
@pytest.mark.parametrize("name", ODD)
def test_an_id_that_is_none(service: Service, name: str, method: str, path: str) -> None:
    problem = refused_as_missing(service, method, f"/v1/jobs/{ODD[name]}{path}")
    assert problem["code"] in ("job-not-found", "not-found")


def refused_as_missing(service: Service, method: str, path: str, as_: str = "ada") -> dict[str, object]:
    answer = service.ask(method, path, as_=as_)
    return refused(answer, 404, answer.json["code"])


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize(
    "path", ["/v1/pools/target/{}", "/v1/pools/{}/linux", "/v1/workers/{}", "/v1/resources/{}", "/v1/targets/{}"]
)
def test_a_name_that_is_none(service: Service, name: str, path: str) -> None:
    refused_as_missing(service, "GET", path.format(ODD[name]), "root")


@pytest.mark.parametrize("name", ODD)
def test_an_output_that_is_none(service: Service, name: str) -> None:
    refused_as_missing(service, "POST", f"/v1/jobs/{service.submit()}/outputs/{ODD[name]}/sign")


@pytest.mark.parametrize(("method", "path"), JOB_CALLS)
def test_someone_elses_job_is_not_there(service: Service, method: str, path: str) -> None:
    """SEC-2: what is not yours looks exactly like what is not."""
    job = service.submit()
    theirs = service.ask(method, f"/v1/jobs/{job}{path}", as_="bob")
    nobodys = service.ask(method, f"/v1/jobs/{ULID}{path}", as_="bob")
    refused(theirs, 404, "job-not-found")
    assert theirs.body.replace(job.encode(), b"") == nobodys.body.replace(ULID.encode(), b"")
    assert service.ask("GET", f"/v1/jobs/{job}", as_="root").status == 200


TOKENS = {
    "none": ({}, "no-token"),
    "empty": ({"authorization": ""}, "no-token"),
    "only the scheme": ({"authorization": "Bearer"}, "no-token"),
    "only blanks": ({"authorization": "Bearer    "}, "no-token"),
    "another scheme": ({"authorization": "Basic dG9rZW4tYWRh"}, "no-token"),
    "unknown": ({"authorization": "Bearer pst_unknown"}, "unknown-token"),
    "garbage": ({"authorization": "Bearer ÿ\x01\x7f ключ 🔑"}, "unknown-token"),
    "huge": ({"authorization": "Bearer " + "x" * 100_000}, "unknown-token"),
    "expired": ({"authorization": f"Bearer {token_of('late')}"}, "token-expired"),
    "a worker's": ({"authorization": f"Bearer {'w' * 43}"}, "unknown-token"),
}
CLOSED = (
    ("GET", "/v1/jobs"), ("POST", "/v1/jobs"), ("GET", f"/v1/jobs/{ULID}"), ("GET", "/v1/pools"),
    ("PUT", "/v1/pools/target/linux/limit"), ("GET", "/v1/workers"), ("GET", "/v1/config"), ("PUT", "/v1/config"),
    ("GET", "/v1/users"), ("POST", "/v1/users"), ("POST", "/v1/users/ada/tokens"), ("GET", "/v1/whoami"),
    ("GET", "/v1/targets"), ("GET", "/v1/wells/locks"),
)  # fmt: skip


@pytest.mark.parametrize("name", TOKENS)
def test_a_token_that_is_none(service: Service, name: str) -> None:
    headers, code = TOKENS[name]
    for method, path in CLOSED:
        refused(service.ask(method, path, "{", as_=None, headers=headers, query={"limit": "x"}), 401, code)


def test_bearer_in_any_case(service: Service) -> None:
    assert (
        service.ask("GET", "/v1/whoami", as_=None, headers={"authorization": f"bEaReR {token_of('ada')}"}).status == 200
    )


FOR_OPERATORS = (
    ("PUT", "/v1/pools/target/linux/limit", {"limit": 1}),
    ("POST", "/v1/pools/target/linux/pause", None),
    ("POST", "/v1/pools/target/linux/resume", None),
    ("GET", "/v1/graph", None),
    ("GET", "/v1/workers", None),
    ("GET", "/v1/workers/w-1", None),
    ("GET", "/v1/resources", None),
    ("GET", "/v1/resources/r-1", None),
    ("GET", "/v1/config", None),
    ("PUT", "/v1/config", {"toml": ""}),
    ("GET", "/v1/users", None),
    ("POST", "/v1/users", {"name": "eve"}),
    ("PUT", "/v1/users/ada/privileges/admin", None),
    ("DELETE", "/v1/users/root/privileges/admin", None),
    ("POST", "/v1/users/root/tokens", None),
)


@pytest.mark.parametrize(("method", "path", "body"), FOR_OPERATORS)
def test_what_only_operators_may(service: Service, method: str, path: str, body: object) -> None:
    """SEC-2: nobody acts without the privilege."""
    rows = dict(service.twin.store.rows)
    refused(service.ask(method, path, body), 403, "privilege-missing")
    assert service.twin.store.rows == rows


def test_jobs_of_others_are_listed_by_operators_only(service: Service) -> None:
    job = service.submit()
    refused(service.ask("GET", "/v1/jobs", as_="bob", query={"owner": "ada"}), 403, "privilege-missing")
    listed = service.ask("GET", "/v1/jobs", as_="root", query={"owner": "ada"}).json
    assert [one["id"] for one in listed["items"]] == [job]
    refused(service.ask("GET", "/v1/jobs", as_="root", query={"owner": "x" * 9000}), 400, "bad-request")


QUERIES = {
    "limit": ["0", "-1", "101", "x", "1.5", "\u0663", "1" * 100, "1e3", "50,50"],
    "page": ["../x", "x" * 5000, "a b", "a,b", "\0", "\n", "жук", "%00"],
    "state": ["done", "QUEUED", "\0", "queued,queued", "x" * 5000],
    "tag": ["a", "", "x" * 5000],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in QUERIES for value in QUERIES[name]])
def test_a_list_that_is_asked_for_wrongly(service: Service, name: str, value: str) -> None:
    answer = service.ask("GET", "/v1/jobs", query={name: value})
    if value:
        refused(answer, 400, "bad-request")


@pytest.mark.parametrize("after", ["-1", "x", "1" * 13, "1.0", "\u0661"])
def test_a_log_that_is_asked_for_wrongly(service: Service, after: str) -> None:
    job = service.submit()
    refused(service.ask("GET", f"/v1/jobs/{job}/events", query={"after": after}), 400, "bad-request")
    refused(service.ask("GET", f"/v1/jobs/{job}/events", query={"limit": after}), 400, "bad-request")


@pytest.mark.parametrize(
    ("path", "last"), [("/v1/users", "zzz"), ("/v1/workers", f"8:w-{LAST}"), ("/v1/resources", f"8:r-{LAST}")]
)
def test_pages_of_operators_lists(service: Service, path: str, last: str) -> None:
    refused(service.ask("GET", path, as_="root", query={"page": "x" * 5000}), 400, "bad-request")
    assert service.ask("GET", path, as_="root", query={"page": last}).json == {"items": [], "next": None}


def test_a_page_beyond_the_last_is_empty(service: Service) -> None:
    service.submit()
    assert service.ask("GET", "/v1/jobs", query={"page": "0" * 26}).json == {"items": [], "next": None}


def test_a_list_is_paged(service: Service) -> None:
    made = [service.submit() for _ in range(5)]
    found, page = [], ""
    while page is not None:
        answer = service.ask("GET", "/v1/jobs", query={"limit": "2", **({"page": page} if page else {})}).json
        found += [job["id"] for job in answer["items"]]
        page = answer["next"]
    assert found == made[::-1]


def test_a_list_is_filtered_by_every_tag(service: Service) -> None:
    both = service.submit(tags={"a": "1,5", "b": "x=y"})
    one = service.submit(tags={"a": "1,5"})

    def found(*tags: str) -> list[str]:
        answer = service.ask("GET", "/v1/jobs", query=[("tag", tag) for tag in tags])
        return [job["id"] for job in answer.json["items"]]

    assert found("a=1,5") == [one, both]
    assert found("a=1,5", "b=x=y") == [both]
    assert found("a=2") == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"), ("GET", ""), ("GET", "/v1"), ("GET", "/v1/"), ("GET", "/v2/jobs"), ("GET", "/v1/jobs/a/b/c/d"),
        ("GET", "/v1/nothing"), ("GET", "/v1/agent/nothing"), ("POST", "/v1/agent/jobs"), ("DELETE", "/v1/jobs"),
        ("PATCH", "/v1/jobs"), ("OPTIONS", "/v1/jobs"), ("PUT", f"/v1/jobs/{ULID}"), ("POST", "/v1/openapi.json"),
        ("GET", "/v1/agent/hello"), ("BREW", "/v1/jobs"), ("GET", "/" + "x" * 9000), ("GET", "/v1/jobs" + "/" * 2000),
        ("GET", "/v1/jobs\r\n"), ("GET", "/v1/jobs\x00"), ("HEAD", "/v1/jobs"),
    ],
)  # fmt: skip
def test_there_is_nothing_there(service: Service, method: str, path: str) -> None:
    refused(service.ask(method, path), 404, "not-found")


def test_a_pool_by_an_escaped_name(service: Service) -> None:
    for path in ("/v1/pools/target/linux", "/v1/pools/target%2Flinux", "/v1/pools/target%2flinux"):
        assert service.ask("GET", path).json["pool"] == "target/linux"


def test_headers_that_are_too_much(service: Service) -> None:
    headers = {"content-type": "x" * 100_000, "accept": "\x01", "x-forwarded-for": "ÿ" * 1000, "cookie": ";;="}
    assert service.ask("GET", "/v1/whoami", headers=headers).status == 200


@pytest.mark.parametrize(("method", "path", "name"), [("POST", "/v1/jobs", "plan"), ("PUT", "/v1/config", "check")])
def test_a_yes_or_no_that_is_neither(service: Service, method: str, path: str, name: str) -> None:
    rows = dict(service.twin.store.rows)
    for value in ("maybe", "true,true", "\0", "x" * 5000):
        body = {"script": "#!/bin/sh\n"} if method == "POST" else {"toml": ""}
        refused(service.ask(method, path, body, as_="root", query={name: value}), 400, "bad-request")
    assert service.twin.store.rows == rows


POOLS = ({}, {"limit": None}, {"limit": "1"}, {"limit": -1}, {"limit": 10_001}, {"limit": 10**40}, {"limit": 1.5})


@pytest.mark.parametrize("body", POOLS, ids=str)
def test_a_limit_that_is_none(service: Service, body: object) -> None:
    refused(service.ask("PUT", "/v1/pools/target/linux/limit", body, as_="root"), 400, "bad-request")


REASONS = ({"reason": None}, {"reason": 1}, {"reason": "x" * 301}, {"reason": "a\nb"}, {"why": "x"})


@pytest.mark.parametrize("body", REASONS, ids=str)
@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_a_reason_that_is_none(service: Service, verb: str, body: object) -> None:
    path = f"/v1/pools/target/linux/{verb}"
    refused(service.ask("POST", path, body, as_="root"), 400, "bad-request")


def test_named_slots_have_no_limit_to_set(service: Service) -> None:
    path = "/v1/pools/resource/bench/limit"
    refused(service.ask("PUT", path, {"limit": 2}, as_="root"), 409, "pool-is-named")


USERS = ({}, {"name": ""}, {"name": "A"}, {"name": "a\n"}, {"name": "a" * 65}, {"name": "a/b"}, {"name": "\0"},
         {"name": "eve", "privileges": ["Ö"]}, {"name": "eve", "privileges": "admin"}, {"name": 1})  # fmt: skip


@pytest.mark.parametrize("body", USERS, ids=str)
def test_a_user_that_cannot_be(service: Service, body: object) -> None:
    refused(service.ask("POST", "/v1/users", body, as_="root"), 400, "bad-request")


def test_a_repository_is_granted_something_and_submitted_for(service: Service) -> None:
    repository = {"name": "oxide:hubris"}
    assert service.ask("POST", "/v1/users", repository, as_="root").status == 201
    granted = service.ask("PUT", "/v1/users/oxide:hubris/privileges/resource.secret", as_="root")
    assert (granted.json["name"], granted.json["privileges"]) == ("oxide:hubris", ["resource.secret"])
    ask = {"script": "#!/bin/sh\n", "resources": ["secret"], "owner": "oxide:hubris"}
    refused(service.ask("POST", "/v1/jobs", ask, as_="ada"), 403, "privilege-missing")
    assert service.ask("PUT", "/v1/users/ada/privileges/as.oxide:hubris", as_="root").status == 200
    job = service.ask("POST", "/v1/jobs", ask, as_="ada").json["id"]
    listed = service.ask("GET", "/v1/jobs", as_="ada", query={"owner": "oxide:hubris"}).json["items"]
    assert [(each["id"], each["owner"]) for each in listed] == [(job, "oxide:hubris")]


def test_users_that_clash_or_are_none(service: Service) -> None:
    refused(service.ask("POST", "/v1/users", {"name": "ada"}, as_="root"), 409, "user-exists")
    for name in ("eve", "x" * 5000, "%00", "Ö"):
        refused(service.ask("PUT", f"/v1/users/{name}/privileges/a", as_="root"), 404, "user-not-found")
        refused(service.ask("POST", f"/v1/users/{name}/tokens", as_="root"), 404, "user-not-found")
    refused(service.ask("PUT", f"/v1/users/ada/privileges/{'x' * 200}", as_="root"), 400, "bad-request")
    many = {"name": "eve", "privileges": [f"p{number}" for number in range(100_000)]}
    assert service.ask("POST", "/v1/users", many, as_="root").status in (400, 413)


@pytest.mark.parametrize("seconds", [0, -1, 1.5, "1", 10**12, 10**40, True])
def test_a_token_for_a_time_that_is_none(service: Service, seconds: object) -> None:
    refused(service.ask("POST", "/v1/users/ada/tokens", {"expires_in": seconds}), 400, "bad-request")


@pytest.mark.parametrize("toml", ["=", "a = 1", "\0", "[targets.x]", "[" * 10_000, "x = " + "[" * 5000, "#" * 900_000])
def test_a_site_that_cannot_be(service: Service, toml: str) -> None:
    rows = dict(service.twin.store.rows)
    problem = refused(service.ask("PUT", "/v1/config", {"toml": toml}, as_="root"), 422, "bad-site")
    assert problem["errors"][0]["line"]
    assert service.twin.store.rows == rows


def test_a_site_with_a_path_without_end(service: Service) -> None:
    body = {"toml": "a = 1", "path": "p" * 10_000}
    refused(service.ask("PUT", "/v1/config", body, as_="root"), 400, "bad-request")


def test_a_site_that_swells_as_json(service: Service) -> None:
    body = {"toml": "\n" * 250_000}
    assert service.ask("PUT", "/v1/config", body, as_="root").status in (200, 413)


def test_a_quoted_path_is_read_once(service: Service) -> None:
    refused_as_missing(service, "GET", f"/v1/jobs/{quote(quote('a/b', safe=''))}")


def test_who_meets_a_throttled_table_is_asked_to_come_again(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    def throttled(*_: object, **__: object) -> None:
        raise Throttled

    monkeypatch.setattr(service.twin.store, "commit", throttled)
    reply = service.ask("POST", "/v1/jobs", {"script": "#!/bin/bash\ntrue\n"})
    assert (reply.status, reply.json["code"]) == (503, "throttled")
    assert reply.headers["retry-after"]


def test_who_needs_a_service_that_does_not_answer_is_asked_to_come_again(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreached(*_: object, **__: object) -> None:
        raise Unreached("sqs did not take SendMessage: 503")

    job = service.ask("POST", "/v1/jobs", {"script": "#!/bin/bash\ntrue\n"}).json["id"]
    for port in (service.twin.queues, service.twin.flows):
        for call in ("schedule", "serve", "advance", "stop", "fail"):
            if hasattr(port, call):
                monkeypatch.setattr(port, call, unreached)
    reply = service.ask("POST", f"/v1/jobs/{job}/cancel")
    assert (reply.status, reply.json["code"]) == (503, "unreached")
    assert reply.headers["retry-after"]
    assert "sqs" not in reply.json["detail"]
