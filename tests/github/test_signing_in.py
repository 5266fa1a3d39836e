"""Signing in to the console with GitHub: who is who, and who is nobody. [SEC-1] [SEC-2]

Every request is over HTTP, by the handlers that are deployed; GitHub is on a port.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from penstock import bootstrap
from penstock.domain.github.accounts import Account
from penstock.domain.users.users import Token, token_id_in, token_key
from penstock.usecases.site import apply
from tests.functions.service import Answer, Service, new_service, refused, token_of
from tests.github import fake
from tests.github.fake import APP, CLIENT_ID
from tests.github.rig import SITE, Rig
from tests.usecases.races import before_the_next_write_of

SESSION, BEGUN = "__Host-penstock-session", "__Host-penstock-github"
OURS = {"penstock-console": "1"}
ADA = {"id": 4242, "login": "ada-l"}


@pytest.fixture
def service(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Service:
    """A service with the App, where ada-l at GitHub is Ada."""
    monkeypatch.setattr(bootstrap, "aws", lambda: rig.on)
    made = new_service(rig.twin)
    put(rig, f'client_id = "{CLIENT_ID}"')
    assert link(made, **ADA).status == 200
    return made


def put(rig: Rig, more: str = "") -> None:
    """Apply a site, with more keys for the App."""
    apply.apply(rig.on, "root", f"{SITE.format(app=APP, url=rig.fake.url)}{more}\n", "site.toml")


def link(service: Service, user: str = "ada", by: str = "root", **person: Any) -> Answer:
    return service.ask("PUT", f"/v1/users/{user}/github", person, as_=by)


def begin(service: Service) -> tuple[str, str]:
    """Where a browser is sent, and what it keeps."""
    answer = service.ask("GET", "/v1/session/github", as_=None)
    assert answer.status == 302, answer
    (cookie,) = answer.cookies
    found = re.fullmatch(rf"{BEGUN}=([^;]+); Path=/; Max-Age=600; HttpOnly; Secure; SameSite=Lax", cookie)
    assert found, cookie
    return answer.headers["location"], found[1]


def come_back(service: Service, query: dict[str, str], kept: str | None) -> Answer:
    """The request that GitHub sends a browser back with, from its own site."""
    headers = {"sec-fetch-site": "cross-site", **({"cookie": f"{BEGUN}={kept}"} if kept is not None else {})}
    return service.ask("GET", "/v1/session/github/callback", as_=None, query=query, headers=headers)


def sign_in(service: Service, rig: Rig, id: int = 4242, login: str = "ada-l") -> Answer:
    address, kept = begin(service)
    return come_back(service, rig.fake.consent(address, id, login), kept)


def secret_of(answer: Answer) -> str:
    assert answer.status == 302, answer
    found = re.match(f"{SESSION}=([^;]+);", answer.cookies[0])
    assert found
    return found[1]


def who(service: Service, session: str) -> Answer:
    headers = {**OURS, "cookie": f"{SESSION}={session}"}
    return service.ask("GET", "/v1/whoami", as_=None, headers=headers)


def test_somebody_signs_in_with_a_linked_account(service: Service, rig: Rig) -> None:
    answer = sign_in(service, rig)
    assert (answer.status, answer.headers["location"], answer.body) == (302, "/", b"")
    assert answer.headers["cache-control"] == "no-store"
    secret = secret_of(answer)
    assert answer.cookies == [
        f"{SESSION}={secret}; Path=/; Max-Age=43200; HttpOnly; Secure; SameSite=Strict",
        f"{BEGUN}=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax",
    ]
    found = who(service, secret).json
    assert (found["name"], found["token"]["kind"], found["token"]["scopes"]) == ("ada", "session", ["all"])
    assert service.ask("GET", "/v1/console", as_=None).json["github"] is True


def test_github_is_asked_with_a_challenge_and_told_no_verifier(service: Service, rig: Rig) -> None:
    """SEC-1: the verifier leaves the browser's cookie only for GitHub, from here."""
    address, kept = begin(service)
    asked = {name: each[0] for name, each in parse_qs(urlsplit(address).query).items()}
    state, _, verifier = kept.partition(".")
    assert asked["state"] == state
    assert verifier not in address
    assert len(verifier) >= 43
    assert asked["redirect_uri"] == f"{rig.on.url}/v1/session/github/callback"
    assert begin(service)[1] != kept


def test_github_sends_browsers_back_to_the_consoles_own_address(service: Service, rig: Rig) -> None:
    rig.on = replace(rig.on, console_url="https://console.example")
    asked = parse_qs(urlsplit(begin(service)[0]).query)
    assert asked["redirect_uri"] == ["https://console.example/v1/session/github/callback"]


def test_nothing_of_github_is_kept(service: Service, rig: Rig) -> None:
    """SEC-1."""
    sign_in(service, rig)
    rows = repr(rig.twin.store.rows)
    assert rig.fake.people
    for secret in (*rig.fake.people, "ghu_", "code-"):
        assert secret not in rows


@pytest.mark.parametrize("kept", [None, "", ".", "x", "x.y", ".y"])
def test_another_browser_does_not_come_back(service: Service, rig: Rig, kept: str | None) -> None:
    """SEC-2: a link that somebody sends signs nobody in as the sender. GitHub is not even asked."""
    address, _ = begin(service)
    query = rig.fake.consent(address, **ADA)  # type: ignore[arg-type]
    asked = list(rig.fake.asked)
    refused(come_back(service, query, kept), 403, "cross-site")
    refused(come_back(service, {**query, "state": ""}, kept), 403, "cross-site")
    assert rig.fake.asked == asked


def test_a_sign_in_of_one_browser_is_no_good_in_another(service: Service, rig: Rig) -> None:
    """SEC-2: neither with its own state, nor with its own verifier and the other's code."""
    (one, _), (_, others) = begin(service), begin(service)
    query = rig.fake.consent(one, **ADA)  # type: ignore[arg-type]
    refused(come_back(service, query, others), 403, "cross-site")
    refused(come_back(service, {**query, "state": others.partition(".")[0]}, others), 401, "github-refused")


def test_a_code_is_good_once(service: Service, rig: Rig) -> None:
    """SEC-2."""
    address, kept = begin(service)
    query = rig.fake.consent(address, **ADA)  # type: ignore[arg-type]
    secret_of(come_back(service, query, kept))
    rig.fake.asked.clear()
    refused(come_back(service, query, kept), 401, "github-refused")
    refused(come_back(service, {"state": query["state"], "error": "access_denied"}, kept), 401, "github-refused")
    assert rig.fake.asked == [("POST", "/login/oauth/access_token")], "without a code or a token there is no question"


@pytest.mark.parametrize("said", [[], "ghu_1", None, {}, {"access_token": 7}, {"access_token": ["ghu_1"]}])
def test_an_answer_without_a_token_signs_nobody_in(
    service: Service, rig: Rig, said: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-2."""
    monkeypatch.setattr(rig.fake, "_exchange", lambda _: fake.Answer(200, said))
    refused(sign_in(service, rig), 401, "github-refused")
    assert ("GET", "/user") not in rig.fake.asked


def test_a_refusal_names_nobody_whatever_it_says(service: Service, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-2."""
    monkeypatch.setattr(rig.fake, "_user", lambda _: fake.Answer(404, ADA))
    refused(sign_in(service, rig), 401, "github-refused")


def test_an_account_that_nobody_linked_is_told_what_to_do(service: Service, rig: Rig) -> None:
    """SEC-2."""
    problem = refused(sign_in(service, rig, 7, "eve"), 403, "github-unlinked")
    assert problem["detail"] == (
        "the GitHub account eve is no user's here: an operator links it with `penstock user link NAME --github eve`"
    )


def test_the_console_says_why_somebody_is_sent_back(service: Service, rig: Rig) -> None:
    """Who is refused is a person in a browser, and what they have begun is over."""
    rig.on = replace(rig.on, console_url="https://console.example")
    for answer, why in (
        (sign_in(service, rig, 7, "eve"), "github-unlinked"),
        (come_back(service, {"state": "x", "error": "access_denied"}, "x.y"), "github-refused"),
        (come_back(service, {"state": "x", "code": "y"}, None), "cross-site"),
    ):
        assert (answer.status, answer.headers["location"]) == (302, f"/sign-in?refused={why}")
        assert [each.partition("=")[0] for each in answer.cookies] == [BEGUN]


def test_who_takes_over_a_login_is_nobody_and_who_gave_it_up_still_somebody(service: Service, rig: Rig) -> None:
    """SEC-2: an account is its number."""
    refused(sign_in(service, rig, 4243, "ada-l"), 403, "github-unlinked")
    assert who(service, secret_of(sign_in(service, rig, 4242, "ada-new"))).json["name"] == "ada"


def test_revoking_the_link_ends_its_sessions_and_signs_nobody_in(service: Service, rig: Rig) -> None:
    """SEC-2."""
    session = secret_of(sign_in(service, rig))
    named = {each["name"]: each for each in service.ask("GET", "/v1/users/ada/tokens").json["items"]}
    made = named["sign-in with GitHub as ada-l"]
    assert service.ask("DELETE", f"/v1/tokens/{made['id']}").status == 200
    refused(who(service, session), 401, "token-revoked")
    assert "no user's here any more" in refused(sign_in(service, rig), 403, "github-unlinked")["detail"]
    assert link(service, **ADA).status == 200
    assert who(service, secret_of(sign_in(service, rig))).status == 200


def test_an_account_is_one_users_at_a_time(service: Service, rig: Rig) -> None:
    """SEC-2: what it was before ends with the new link."""
    session = secret_of(sign_in(service, rig))
    assert link(service, "bob", **ADA).json["user"] == "bob"
    refused(who(service, session), 401, "token-revoked")
    assert who(service, secret_of(sign_in(service, rig))).json["name"] == "bob"


def signing_in(rig: Rig) -> list[str]:
    """Whom the links sign in that are not revoked."""
    rows = [row for row in rig.twin.store.rows.values() if isinstance(row, Token)]
    return [row.user for row in rows if row.name.startswith("sign-in with GitHub") and not row.revoked]


@pytest.mark.parametrize("before", ["new", "linked", "revoked"])
def test_of_two_links_of_an_account_at_once_one_is_left(service: Service, rig: Rig, before: str) -> None:
    """SEC-2."""
    person = {"id": 7, "login": "eve"} if before == "new" else ADA
    if before == "revoked":
        (token,) = [row.token for row in rig.twin.store.rows.values() if isinstance(row, Account)]
        assert service.ask("DELETE", f"/v1/tokens/{token}").status == 200
    before_the_next_write_of(rig.twin, Account, lambda: link(service, "bob", **person))
    assert link(service, **person).status == 200
    assert signing_in(rig) == (["ada", "ada"] if before == "new" else ["ada"])


def test_a_link_that_is_revoked_meanwhile_stays_revoked_by_whoever_did_so(service: Service, rig: Rig) -> None:
    """SEC-2: as the audit log says."""
    (id,) = [row.token for row in rig.twin.store.rows.values() if isinstance(row, Account)]
    before_the_next_write_of(rig.twin, Account, lambda: service.ask("DELETE", f"/v1/tokens/{id}", as_="ada"))
    assert link(service, "bob", **ADA).status == 200
    token = rig.on.store.get(token_key(id), Token)
    assert token
    assert token.revoked
    assert token.revoked.by == "ada"


def test_a_user_who_is_disabled_or_renamed_is_the_same(service: Service, rig: Rig) -> None:
    service.ask("POST", "/v1/users/ada/rename", {"name": "adele"}, as_="root")
    assert who(service, secret_of(sign_in(service, rig))).json["name"] == "adele"
    service.ask("POST", "/v1/users/adele/disable", as_="root")
    refused(sign_in(service, rig), 403, "github-unlinked")


def test_a_link_can_do_what_its_operators_token_can_for_as_long(service: Service, rig: Rig) -> None:
    """SEC-2: no token makes one that outlives it or does more, by way of GitHub neither."""
    ask = {"scopes": ["users", "read"], "expires_in": 3600}
    narrow = service.ask("POST", "/v1/users/root/tokens", ask, as_="root").json["token"]
    made = service.ask("PUT", "/v1/users/ada/github", ADA, token=narrow).json["token"]
    tokens = service.ask("GET", "/v1/users/ada/tokens").json["items"]
    (token,) = [each for each in tokens if each["id"] == made]
    assert (token["scopes"], token["parent"]) == (["read", "users"], token_id_in(narrow))
    session = secret_of(sign_in(service, rig))
    assert who(service, session).json["token"]["scopes"] == ["read", "users"]
    rig.twin.pass_time(3600)
    refused(who(service, session), 401, "token-expired")
    refused(sign_in(service, rig), 403, "github-unlinked")


def test_only_operators_link_people(service: Service, rig: Rig) -> None:
    """SEC-2."""
    refused(link(service, by="bob", **ADA), 403, "privilege-missing")
    refused(link(service, "oxide:hubris", **ADA), 422, "not-a-person")
    refused(link(service, "nobody", **ADA), 404, "user-not-found")
    for wrong in ({"id": 0}, {"id": 2**60}, {"login": "a b"}, {"login": ""}, {"id": "1"}):
        refused(link(service, **{**ADA, **wrong}), 400, "bad-request")
    entries = service.ask("GET", "/v1/audit", as_="root").json["items"]
    (entry,) = [each for each in entries if each["did"] == "link account"]
    assert (entry["by"], entry["what"], entry["detail"]) == ("root", "user ada", "GitHub account 4242, ada-l")


def test_github_that_does_not_answer_signs_nobody_in(service: Service, rig: Rig) -> None:
    for wrong in ("broken", "limited"):
        address, kept = begin(service)
        query = rig.fake.consent(address, **ADA)  # type: ignore[arg-type]
        if wrong == "broken":
            rig.fake.broken = 1
        else:
            rig.fake.limit(60)
        refused(come_back(service, query, kept), 503, "github-unreached")


def test_without_a_client_id_nobody_signs_in_with_github(service: Service, rig: Rig) -> None:
    put(rig)
    _assert_is_not_offered(service)
    apply.apply(rig.on, "root", SITE.partition("[github]")[0], "site.toml")
    _assert_is_not_offered(service)


def _assert_is_not_offered(service: Service) -> None:
    assert service.ask("GET", "/v1/console", as_=None).json["github"] is False
    refused(service.ask("GET", "/v1/session/github", as_=None), 404, "no-github")
    refused(come_back(service, {"code": "x", "state": "y"}, "y.z"), 404, "no-github")


def test_a_session_of_github_is_no_use_beside_the_console(service: Service, rig: Rig) -> None:
    """SEC-2: its cookie is looked at as any session's is."""
    session = secret_of(sign_in(service, rig))
    answer = service.ask("GET", "/v1/whoami", as_=None, headers={"cookie": f"{SESSION}={session}"})
    refused(answer, 401, "no-token")
    assert token_of("ada") != session
