"""What operators did, and what became of jobs when a privilege was taken, over HTTP. [SEC-2]"""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.functions.service import Service, conforms, refused

SECRET = "/v1/users/ada/privileges/resource.secret"


def later(service: Service) -> None:
    """Entries are in the order of their milliseconds."""
    service.twin.world.time += timedelta(milliseconds=1)


def test_what_was_done_is_listed_for_operators(service: Service) -> None:
    later(service)
    service.ask("PUT", SECRET, as_="root")
    later(service)
    token = service.ask("POST", "/v1/users/ada/tokens", as_="root").json["token"]
    answer = service.ask("GET", "/v1/audit", as_="root")
    conforms(answer.json, "AuditPage")
    assert [(item["by"], item["did"], item["what"]) for item in answer.json["items"]] == [
        ("root", "make token", "user ada"),
        ("root", "grant", "user ada"),
        ("root", "apply config", "site.toml"),
    ]
    assert token.encode() not in answer.body
    refused(service.ask("GET", "/v1/audit"), 403, "privilege-missing")


@pytest.mark.parametrize(
    ("query", "did"),
    [
        ({"who": "root"}, ["grant", "apply config"]),
        ({"who": "ada"}, ["make token"]),
        ({"limit": "1"}, ["make token"]),
        ({"since": "2026-01-01T00:00:00Z"}, ["make token", "grant", "apply config"]),
        ({"since": "2025-12-31T23:00:00-03:00"}, []),
        ({"since": "2026-01-02"}, []),
        ({"page": "0" * 26}, []),
        ({"until": "2026-01-01T00:00:00.002Z"}, ["grant", "apply config"]),
        ({"until": "0001-01-01"}, []),
        ({"until": "9999-12-31"}, ["make token", "grant", "apply config"]),
        ({"since": "2026-01-01T00:00:00.001Z", "until": "2026-01-01T00:00:00.002Z"}, ["grant"]),
        ({"did": "apply config"}, ["apply config"]),
        ({"what": "user "}, ["make token", "grant"]),
        ({"what": "user ada", "did": "grant", "who": "root"}, ["grant"]),
        ({"what": "ada"}, []),
    ],
)
def test_what_was_done_is_filtered(service: Service, query: dict[str, str], did: list[str]) -> None:
    later(service)
    service.ask("PUT", SECRET, as_="root")
    later(service)
    service.ask("POST", "/v1/users/ada/tokens", as_="ada")
    assert [item["did"] for item in service.ask("GET", "/v1/audit", as_="root", query=query).json["items"]] == did


@pytest.mark.parametrize("query", [{"since": "yesterday"}, {"limit": "0"}, {"page": "%"}, {"since": "9" * 400}])
def test_what_was_done_is_asked_for_wrongly(service: Service, query: dict[str, str]) -> None:
    refused(service.ask("GET", "/v1/audit", as_="root", query=query), 400, "bad-request")


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"did": "paused"}, "did is one of accept repository, account diff, apply config, "),
        ({"until": "soon"}, "until must be a time as in RFC 3339, like 2026-01-31T10:00:00Z"),
        ({"since": "2026-01-02", "until": "2026-01-02"}, "until must be later than since"),
        ({"what": "a\nb"}, "`pool resource/bench`, `user ada`"),
        ({"what": "a" * 201}, "at most 200 characters"),
        ({"who": "a" * 201}, "who is the name of a user or a repository"),
    ],
)
def test_what_was_done_is_asked_for_wrongly_and_the_answer_says_what_is_possible(
    service: Service, query: dict[str, str], says: str
) -> None:
    answer = service.ask("GET", "/v1/audit", as_="root", query=query)
    refused(answer, 400, "bad-request")
    assert says in answer.json["detail"]


def test_nobody_changes_what_was_done(service: Service) -> None:
    entry = service.ask("GET", "/v1/audit", as_="root").json["items"][0]["id"]
    for method in ("PUT", "POST", "DELETE"):
        for path in ("/v1/audit", f"/v1/audit/{entry}"):
            refused(service.ask(method, path, as_="root"), 404, "not-found")


@pytest.mark.parametrize("now", ["true", "false"])
def test_a_revocation_says_what_it_does_to_jobs(service: Service, now: str) -> None:
    service.ask("PUT", SECRET, as_="root")
    holds, waits = (service.submit(resources=["secret"]) for _ in range(2))
    answer = service.ask("DELETE", SECRET, as_="root", query={"now": now})
    conforms(answer.json, "RevokedView")
    assert (answer.json["stopped"], answer.json["holding"]) == ([waits], [holds])
    assert answer.json["privileges"] == []
    service.twin.run()
    ended = service.ask("GET", f"/v1/jobs/{waits}").json
    assert (ended["outcome"], ended["state"]) == ("failed", "settled")
    assert "root revoked 'resource.secret'" in ended["reason"]
    assert (service.ask("GET", f"/v1/jobs/{holds}").json["outcome"] == "cancelled") is (now == "true")
