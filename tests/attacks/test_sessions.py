"""What other sites' pages try in a browser that is signed in, and what somebody tries with cookies. [SEC-1] [SEC-2]

Every attack is over HTTP, by the handlers that are deployed.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from penstock.api import openapi
from penstock.api.app import Operation
from tests.functions.service import Answer, Service, refused, token_of

COOKIE = "__Host-penstock-session"
OURS = {"penstock-console": "1"}
EVERY = [each for each in openapi.users() if each.caller and each.caller.has_scopes]

ELSEWHERE: list[dict[str, str]] = [
    {},
    {"penstock-console": "0"},
    {"penstock-console": ""},
    *({**OURS, "sec-fetch-site": site} for site in ("cross-site", "same-site", "none", "", "null", "SAME-ORIGIN")),
]
"""What requests have that a page of another site can have sent, or that no page of ours sends."""


def sign_in(service: Service, who: str = "ada", headers: dict[str, str] = OURS) -> Answer:
    return service.ask("POST", "/v1/session", {"token": token_of(who)}, as_=None, headers=headers)


def secret_of(answer: Answer) -> str:
    """The session that an answer sets."""
    (cookie,) = answer.cookies
    found = re.match(f"{COOKIE}=([^;]+);", cookie)
    assert found, cookie
    return found[1]


def ask(
    service: Service,
    method: str,
    path: str,
    session: str,
    body: Any = None,
    *,
    headers: dict[str, str] = OURS,
    token: str | None = None,
) -> Answer:
    """A request as a browser sends it."""
    sent = {**headers, "cookie": f"{COOKIE}={session}"}
    return service.ask(method, path, body, as_=None, token=token, headers=sent)


@pytest.fixture
def session(service: Service) -> str:
    """Ada's session."""
    return secret_of(sign_in(service))


def test_a_page_of_ours_acts_as_who_is_signed_in(service: Service, session: str) -> None:
    who = ask(service, "GET", "/v1/whoami", session, headers={**OURS, "sec-fetch-site": "same-origin"})
    assert (who.json["name"], who.json["token"]["kind"]) == ("ada", "session")
    made = ask(service, "POST", "/v1/jobs", session, {"script": "#!/bin/sh\ntrue\n"})
    assert made.status == 201, made
    listed = ask(service, "GET", "/v1/users/ada/tokens", session).json["items"]
    assert [each["kind"] for each in listed] == ["user", "session"]


def test_the_cookie_has_every_attribute_and_the_answer_no_secret(service: Service) -> None:
    """SEC-1: no script reads it, and only this host gets it, over https, from its own pages."""
    answer = sign_in(service)
    secret = secret_of(answer)
    assert answer.status == 201
    assert answer.cookies == [f"{COOKIE}={secret}; Path=/; Max-Age=43200; HttpOnly; Secure; SameSite=Strict"]
    assert secret.encode() not in answer.body
    assert secret not in json.dumps(dict(answer.headers))
    shown = {key: answer.json[key] for key in ("user", "is_operator", "privileges", "scopes")}
    assert shown == {"user": "ada", "is_operator": False, "privileges": [], "scopes": ["all"]}
    assert sign_in(service, "root").json["is_operator"]


@pytest.mark.parametrize("headers", ELSEWHERE)
def test_a_page_of_another_site_acts_as_nobody(service: Service, session: str, headers: dict[str, str]) -> None:
    """SEC-2: the browser may send the cookie; it is not looked at."""
    rows = dict(service.twin.store.rows)
    for method, path, body in (
        ("GET", "/v1/whoami", None),
        ("POST", "/v1/jobs", {"script": "#!/bin/sh\n"}),
        ("POST", "/v1/users/ada/tokens", {}),
        ("DELETE", f"/v1/tokens/{session[9:35]}", None),
    ):
        refused(ask(service, method, path, session, body, headers=headers), 401, "no-token")
    assert dict(service.twin.store.rows) == rows


@pytest.mark.parametrize("operation", EVERY, ids=lambda operation: operation.name)
def test_no_operation_takes_the_cookie_without_the_header(service: Service, session: str, operation: Operation) -> None:
    """SEC-2."""
    path = re.sub(r"{\w+}", "01KDVDNA00000000000000000J", operation.path)
    rows = dict(service.twin.store.rows)
    answer = ask(service, operation.method, path, session, {} if operation.body else None, headers={})
    assert answer.status in (401, 404), answer
    assert answer.status == 401 or operation.open
    assert dict(service.twin.store.rows) == rows


@pytest.mark.parametrize("headers", ELSEWHERE)
def test_a_page_of_another_site_signs_nobody_in_or_out(service: Service, session: str, headers: dict[str, str]) -> None:
    """SEC-2: neither as the attacker, whose account the victim would then use."""
    rows = dict(service.twin.store.rows)
    refused(sign_in(service, "bob", headers), 403, "cross-site")
    refused(ask(service, "DELETE", "/v1/session", session, headers=headers), 403, "cross-site")
    assert dict(service.twin.store.rows) == rows
    assert ask(service, "GET", "/v1/whoami", session).status == 200


def test_nobody_without_a_session_gets_anything(service: Service) -> None:
    refused(service.ask("GET", "/v1/whoami", as_=None, headers=OURS), 401, "no-token")
    for cookie in ("", "x", "pst_user_x", "w" * 5000):
        refused(ask(service, "GET", "/v1/whoami", cookie), 401, "unknown-token" if cookie else "no-token")
    for cookies in (f"other={token_of('ada')}", "penstock-session=x", f"{COOKIE}", "=", ""):
        answer = service.ask("GET", "/v1/whoami", as_=None, headers={**OURS, "cookie": cookies})
        refused(answer, 401, "no-token")


def test_a_session_that_is_over_gets_nothing(service: Service, session: str) -> None:
    service.twin.pass_time(12 * 3600)
    refused(ask(service, "GET", "/v1/whoami", session), 401, "token-expired")


def test_who_signed_out_gets_nothing_with_the_cookie_they_had(service: Service, session: str) -> None:
    answer = ask(service, "DELETE", "/v1/session", session)
    assert (answer.status, answer.json) == (200, {"ended": True})
    assert answer.cookies == [f"{COOKIE}=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Strict"]
    refused(ask(service, "GET", "/v1/whoami", session), 401, "token-revoked")
    again = ask(service, "DELETE", "/v1/session", session)
    assert (again.status, again.json, again.cookies) == (200, {"ended": False}, answer.cookies)


def test_revoking_the_token_or_disabling_the_user_ends_the_session(service: Service, session: str) -> None:
    bobs = secret_of(sign_in(service, "bob"))
    assert service.ask("POST", "/v1/users/bob/disable", as_="root").status == 200
    refused(ask(service, "GET", "/v1/whoami", bobs), 401, "user-disabled")
    token = service.ask("GET", "/v1/whoami").json["token"]["id"]
    assert service.ask("DELETE", f"/v1/tokens/{token}").status == 200
    refused(ask(service, "GET", "/v1/whoami", session), 401, "token-revoked")


def test_a_session_is_revoked_as_a_token_is(service: Service, session: str) -> None:
    id = ask(service, "GET", "/v1/whoami", session).json["token"]["id"]
    assert service.ask("DELETE", f"/v1/tokens/{id}", as_="root").json["kind"] == "session"
    refused(ask(service, "GET", "/v1/whoami", session), 401, "token-revoked")


def test_a_session_of_one_user_does_not_reach_anothers_jobs(service: Service, session: str) -> None:
    """SEC-2."""
    job = service.submit()
    bobs = secret_of(sign_in(service, "bob"))
    assert ask(service, "GET", f"/v1/jobs/{job}", session).status == 200
    refused(ask(service, "GET", f"/v1/jobs/{job}", bobs), 404, "job-not-found")
    refused(ask(service, "GET", "/v1/users", session), 403, "privilege-missing")
    mine = ask(service, "GET", "/v1/whoami", session).json["token"]["id"]
    refused(ask(service, "DELETE", f"/v1/tokens/{mine}", bobs), 404, "token-not-found")


def test_nobody_chooses_the_session_that_another_gets(service: Service, session: str) -> None:
    """SEC-2, fixation: who signs in gets a new one, whatever cookie the browser had."""
    answer = ask(service, "POST", "/v1/session", session, {"token": token_of("bob")})
    assert secret_of(answer) != session
    assert ask(service, "GET", "/v1/whoami", session).json["name"] == "ada"
    assert ask(service, "GET", "/v1/whoami", secret_of(answer)).json["name"] == "bob"


def test_a_token_in_the_cookie_is_no_session(service: Service) -> None:
    """SEC-2: a cookie that somebody planted would last as long as the token."""
    refused(ask(service, "GET", "/v1/whoami", token_of("bob")), 401, "no-session")


def test_a_token_goes_before_the_cookie(service: Service, session: str) -> None:
    """SEC-2: also one that is not good: who shows a token acts as nobody else."""
    assert ask(service, "GET", "/v1/whoami", session, token=token_of("bob")).json["name"] == "bob"
    refused(ask(service, "GET", "/v1/whoami", session, token="x"), 401, "unknown-token")


@pytest.mark.parametrize(
    "body",
    [{}, {"token": ""}, {"code": "", "secret": ""}, {"token": "x", "code": "y"}, {"token": "x", "secret": "y"}],
)
def test_signing_in_takes_either_a_token_or_a_login(service: Service, body: dict[str, str]) -> None:
    refused(service.ask("POST", "/v1/session", body, as_=None, headers=OURS), 400, "bad-request")


def test_a_login_begins_a_session_only_when_it_was_approved(service: Service) -> None:
    begun = service.ask("POST", "/v1/logins", {"host": "browser"}, as_=None).json
    body = {"code": begun["code"], "secret": begun["secret"]}

    def take(**other: str) -> Answer:
        return service.ask("POST", "/v1/session", {**body, **other}, as_=None, headers=OURS)

    refused(take(), 409, "login-waits")
    service.ask("POST", f"/v1/logins/{begun['code']}/approve")
    refused(take(secret="x"), 404, "login-not-found")
    refused(take(secret=""), 404, "login-not-found")
    answer = take()
    assert (answer.status, answer.json["user"]) == (201, "ada")
    assert ask(service, "GET", "/v1/whoami", secret_of(answer)).json["name"] == "ada"
    refused(take(), 410, "login-taken")


def test_the_session_ends_with_a_token_that_ends_sooner(service: Service) -> None:
    short = service.ask("POST", "/v1/users/ada/tokens", {"expires_in": 600}).json["token"]
    answer = service.ask("POST", "/v1/session", {"token": short}, as_=None, headers=OURS)
    assert re.search(r"; Max-Age=(599|600);", answer.cookies[0]), answer.cookies


def test_a_session_tells_who_has_it_from_which_browser(service: Service) -> None:
    agent = {"user-agent": "<script>Firefox (Windows NT) \x1b[2J"}
    secret_of(sign_in(service, headers={**OURS, **agent}))
    names = [each["name"] for each in service.ask("GET", "/v1/users/ada/tokens").json["items"]]
    assert names[-1] == "console in Firefox on Windows"
