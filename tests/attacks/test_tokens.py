"""What somebody tries who has a token, or has stolen one. [SEC-1] [SEC-2]

Every attack is over HTTP, by the handlers that are deployed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from penstock import bootstrap
from penstock.domain.users.logins import PER_ADDRESS
from penstock.domain.users.users import TOKENS, Token, TokenKind, token_secret
from penstock.kernel.rows import ulid
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases import sweep
from tests.functions.service import SCRIPT, SITE, Answer, Service, refused, token_of

LAB = site_toml(factories={"lab": "hosts"}, targets={"benches": {"factory": "lab", "names": ["bench-7", "bench-8"]}})
HOST = {"session": "s" * 43}


def made(service: Service, by: str, user: str = "ada", **wish: Any) -> dict[str, Any]:
    """A token that another token makes. `by` is a user, or a secret."""
    service.twin.pass_time(1)
    answer = _with(service, by, "POST", f"/v1/users/{user}/tokens", wish)
    assert answer.status == 201, answer
    found: dict[str, Any] = answer.json
    return found


def _with(service: Service, by: str, method: str, path: str, body: Any = None) -> Answer:
    return service.ask(method, path, body, token=by if by.startswith("pst_") else token_of(by))


def who(service: Service, token: str) -> Answer:
    return service.ask("GET", "/v1/whoami", token=token)


def test_an_expiring_token_makes_a_permanent_one(service: Service) -> None:
    short = made(service, "ada", expires_in=60)["token"]
    for wish in ({"expires_in": "never"}, {"expires_in": 3600}):
        refused(_with(service, short, "POST", "/v1/users/ada/tokens", wish), 422, "outlives-parent")
    child = made(service, short)["token"]
    service.twin.pass_time(60)
    for token in (short, child):
        refused(who(service, token), 401, "token-expired")


def test_a_chain_of_tokens_outlives_the_first(service: Service) -> None:
    token = made(service, "ada", expires_in=60)
    until = token["expires"]
    for _ in range(5):
        token = made(service, token["token"])
        assert token["expires"] == until


def test_no_wish_makes_a_permanent_token(service: Service) -> None:
    """It has to be asked for by its word."""
    for wish in ({}, {"expires_in": None}):
        assert made(service, "ada", **wish)["expires"]
    for wish in ({"expires_in": 0}, {"expires_in": -1}, {"expires_in": "Never"}, {"expires_in": "for ever"}):
        refused(_with(service, "ada", "POST", "/v1/users/ada/tokens", wish), 400, "bad-request")
    assert made(service, "ada", expires_in="never")["expires"] is None


def test_a_child_is_used_after_its_parent_was_revoked(service: Service) -> None:
    stolen = made(service, "root", "root")
    child = made(service, stolen["token"], "root")
    grandchild = made(service, child["token"], "ada")
    assert service.ask("DELETE", f"/v1/tokens/{stolen['id']}", as_="root").json["state"] == "revoked"
    for token in (stolen, child, grandchild):
        refused(who(service, token["token"]), 401, "token-revoked")
    assert who(service, token_of("root")).status == 200


def test_a_revoked_token_makes_a_new_one(service: Service) -> None:
    stolen = made(service, "root", "root")
    service.ask("DELETE", f"/v1/tokens/{stolen['id']}", as_="root")
    refused(_with(service, stolen["token"], "POST", "/v1/users/root/tokens", {}), 401, "token-revoked")


def test_a_thief_revokes_the_tokens_of_the_owner(service: Service) -> None:
    """A token revokes what it made, and no other without the scope `users`."""
    stolen = made(service, "root", "root", scopes=["read", "operate"])
    other = made(service, "root", "root")
    refused(_with(service, stolen["token"], "DELETE", f"/v1/tokens/{other['id']}"), 403, "scope-missing")
    assert who(service, other["token"]).status == 200


def test_a_token_widens_its_scopes(service: Service) -> None:
    narrow = made(service, "root", "root", scopes=["read", "submit:oxide:hubris"])["token"]
    for scope in ("all", "submit", "operate", "users", "submit:oxide:idol", "host:target/benches/bench-7"):
        wish = {"scopes": [scope]}
        refused(_with(service, narrow, "POST", "/v1/users/root/tokens", wish), 403, "scope-missing")
    assert made(service, narrow, "root")["scopes"] == ["read", "submit:oxide:hubris"]


@pytest.mark.parametrize("scope", ["submit", "submit:oxide:hubris", "review", "operate", "read", "site"])
def test_a_narrow_token_is_wider_as_another_user(service: Service, scope: str) -> None:
    """As whom a token submits or reviews is not in its scopes: so an operator's needs `users` to make ada's."""
    narrow = made(service, "root", "root", scopes=[scope])["token"]
    for wish in ({}, {"scopes": [scope]}):
        for name in ("ada", "nobody"):
            refused(_with(service, narrow, "POST", f"/v1/users/{name}/tokens", wish), 403, "scope-missing")
    assert made(service, narrow, "root")["scopes"] == [scope]
    wide = made(service, "root", "root", scopes=[scope, "users"])["token"]
    assert made(service, wide, "ada", scopes=[scope])["user"] == "ada"


@pytest.mark.parametrize(
    "scope", ["", "ALL", "all ", "submit:", "operate:lab", "host:bench-7", "read:x", "é", "x" * 999]
)
def test_a_scope_that_is_none_is_asked_for(service: Service, scope: str) -> None:
    refused(_with(service, "ada", "POST", "/v1/users/ada/tokens", {"scopes": [scope]}), 400, "bad-request")


def test_a_token_that_manages_users_makes_an_operator(service: Service) -> None:
    """It has to be good for all that operators may: else it would be, by way of another user."""
    narrow = made(service, "root", "root", scopes=["users"])["token"]
    refused(_with(service, narrow, "PUT", "/v1/users/bob/privileges/admin"), 403, "scope-missing")
    refused(_with(service, narrow, "POST", "/v1/users", {"name": "x", "privileges": ["admin"]}), 403, "scope-missing")
    assert _with(service, narrow, "PUT", "/v1/users/bob/privileges/target.lab").status == 200


def test_a_user_makes_a_token_of_another(service: Service) -> None:
    for name in ("root", "bob"):
        refused(_with(service, "ada", "POST", f"/v1/users/{name}/tokens", {}), 403, "privilege-missing")


def test_a_users_token_with_wide_scopes_operates(service: Service) -> None:
    """Scopes only narrow: the privilege is needed as well."""
    wide = made(service, "ada", scopes=["operate", "users", "site", "read"])["token"]
    for method, path in (("POST", "/v1/pools/target/linux/pause"), ("GET", "/v1/users"), ("GET", "/v1/config")):
        refused(_with(service, wide, method, path), 403, "privilege-missing")


def test_a_hosts_token_is_used_as_a_user(service: Service) -> None:
    """What a job on a bench finds there is good for nothing but that bench."""
    service.ask("PUT", "/v1/config", {"toml": SITE + LAB}, as_="root")
    host = made(service, "root", "root", scopes=["host:target/benches/bench-7"])
    assert host["kind"] == "host"
    assert host["token"].startswith("pst_host_")
    assert _with(service, host["token"], "POST", "/v1/agent/hosts/bench-7", HOST).status == 200
    for method, path, body in (
        ("GET", "/v1/whoami", None),
        ("GET", "/v1/jobs", None),
        ("POST", "/v1/jobs", {"script": SCRIPT}),
        ("GET", "/v1/users/root/tokens", None),
        ("POST", "/v1/users/root/tokens", {"scopes": ["host:target/benches/bench-7"]}),
        ("DELETE", f"/v1/tokens/{host['id']}", None),
        ("PUT", "/v1/config", {"toml": ""}),
        ("POST", "/v1/agent/hosts/bench-8", HOST),
    ):
        refused(_with(service, host["token"], method, path, body), 403, "scope-missing")


def test_a_hosts_token_is_used_for_the_same_name_in_another_pool(service: Service) -> None:
    service.ask("PUT", "/v1/config", {"toml": SITE + LAB}, as_="root")
    other = made(service, "root", "root", scopes=["host:target/linux/bench-7"])["token"]
    refused(_with(service, other, "POST", "/v1/agent/hosts/bench-7", HOST), 403, "scope-missing")


def test_a_hosts_token_goes_on_when_the_site_lets_its_host_go(service: Service) -> None:
    """It cleans up, and is told that there is no such host any more; another's token is not."""
    service.ask("PUT", "/v1/config", {"toml": SITE + LAB}, as_="root")
    own, other = (
        made(service, "root", "root", scopes=[f"host:target/{of}/bench-7"])["token"] for of in ("benches", "x")
    )
    _with(service, own, "POST", "/v1/agent/hosts/bench-7", HOST)
    service.ask("PUT", "/v1/config", {"toml": SITE}, as_="root")
    refused(_with(service, own, "POST", "/v1/agent/hosts/bench-7", HOST), 404, "host-not-found")
    refused(_with(service, other, "POST", "/v1/agent/hosts/bench-7", HOST), 403, "scope-missing")


def test_a_token_for_one_pool_controls_another(service: Service) -> None:
    job = service.submit(resources=["bench"])
    worker, bench = (
        service.ask("GET", f"/v1/{kind}", as_="root").json["items"][0]["id"] for kind in ("workers", "resources")
    )
    token = made(service, "root", "root", scopes=["operate:resource/bench"])["token"]
    assert _with(service, token, "POST", "/v1/pools/resource/bench/pause").status == 200
    refused(_with(service, token, "POST", "/v1/pools/target/linux/pause"), 403, "scope-missing")
    hold = {"reason": "looking", "for": 60}
    assert _with(service, token, "POST", f"/v1/resources/{bench}/hold", hold).status == 200
    for verb in ("hold", "release", "drain", "recycle"):
        answer = _with(service, token, "POST", f"/v1/workers/{worker}/{verb}", hold if verb == "hold" else {})
        refused(answer, 403, "scope-missing")
    refused(_with(service, token, "POST", "/v1/factories/hand/test"), 403, "scope-missing")
    assert job


def test_a_token_for_one_owner_submits_for_another(service: Service) -> None:
    for name in ("oxide:hubris", "oxide:idol"):
        service.ask("POST", "/v1/users", {"name": name}, as_="root")
    service.ask("PUT", "/v1/users/ada/privileges/as", as_="root")
    own = service.submit()
    token = made(service, "ada", scopes=["submit:oxide:hubris"])["token"]
    job = {"script": SCRIPT}
    assert _with(service, token, "POST", "/v1/jobs", job | {"owner": "oxide:hubris"}).status == 201
    for owner in (None, "ada", "oxide:idol"):
        refused(_with(service, token, "POST", "/v1/jobs", job | {"owner": owner}), 403, "scope-missing")
    refused(_with(service, token, "POST", f"/v1/jobs/{own}/cancel"), 404, "job-not-found")


def test_an_operators_token_that_submits_cancels_the_job_of_another(service: Service) -> None:
    job = service.submit()
    token = made(service, "root", "root", scopes=["submit"])["token"]
    refused(_with(service, token, "POST", f"/v1/jobs/{job}/cancel"), 404, "job-not-found")
    wide = made(service, "root", "root", scopes=["submit", "operate"])["token"]
    assert _with(service, wide, "POST", f"/v1/jobs/{job}/cancel").status == 200


def test_a_disabled_users_token_is_used(service: Service) -> None:
    """Every token, at once, also those that were made before for a program."""
    program = made(service, "bob", "bob", scopes=["read"])["token"]
    job = service.ask("POST", "/v1/jobs", {"script": SCRIPT, "inputs": ["data"]}, as_="bob").json["id"]
    service.ask("POST", "/v1/users/bob/disable", {"leases": "end"}, as_="root")
    for token in (token_of("bob"), program):
        refused(who(service, token), 401, "user-disabled")
    refused(_with(service, "root", "POST", "/v1/users/nobody/disable", {}), 404, "user-not-found")
    assert service.ask("GET", f"/v1/jobs/{job}", as_="root").json["outcome"] == "cancelled"
    service.ask("POST", "/v1/users/bob/enable", as_="root")
    assert who(service, program).status == 200


def test_a_disabled_user_makes_a_token_in_time(service: Service) -> None:
    """One that was made a moment before is refused like all others."""
    token = made(service, "bob", "bob")["token"]
    service.ask("POST", "/v1/users/bob/disable", as_="root")
    refused(who(service, token), 401, "user-disabled")


def test_an_operator_is_locked_out_by_another_users_name(service: Service) -> None:
    refused(service.ask("POST", "/v1/users/root/disable", as_="root"), 409, "own-user")
    refused(service.ask("POST", "/v1/users/root/disable", as_="ada"), 403, "privilege-missing")


def removed(service: Service, name: str) -> Answer:
    service.ask("POST", f"/v1/users/{name}/disable", {"leases": "end"}, as_="root")
    for _ in range(4):
        service.twin.pass_time(61)
        sweep.sweep(service.twin.on)
        service.twin.run()
    return service.ask("DELETE", f"/v1/users/{name}", as_="root")


def test_a_name_is_taken_over(service: Service) -> None:
    """Neither a removed user's, nor a former one: whoever had it would come into its jobs and files."""
    assert any("not given" in line for line in removed(service, "bob").json["left"])
    refused(service.ask("POST", "/v1/users", {"name": "bob"}, as_="root"), 409, "user-exists")
    service.ask("POST", "/v1/users/ada/rename", {"name": "adele"}, as_="root")
    refused(service.ask("POST", "/v1/users", {"name": "ada"}, as_="root"), 409, "user-exists")
    assert who(service, token_of("ada")).json["name"] == "adele"


def test_a_removed_users_token_is_used(service: Service) -> None:
    assert removed(service, "bob").status == 200
    refused(who(service, token_of("bob")), 401, "unknown-token")


def test_another_users_tokens_are_listed(service: Service) -> None:
    bobs = made(service, "bob", "bob")
    refused(service.ask("GET", "/v1/users/bob/tokens"), 403, "privilege-missing")
    refused(service.ask("DELETE", f"/v1/tokens/{bobs['id']}"), 404, "token-not-found")
    nobodys = service.ask("DELETE", f"/v1/tokens/{ulid(START, b'0123456789')}")
    assert refused(nobodys, 404, "token-not-found")
    refused(service.ask("DELETE", f"/v1/tokens/{'x' * 9000}"), 404, "token-not-found")
    assert len(service.ask("GET", "/v1/users/bob/tokens", as_="root").json["items"]) == 2


def test_a_list_of_tokens_shows_a_secret(service: Service) -> None:
    """SEC-1: neither it, nor its hash: not in lists, in what a revocation answers, in the audit log, nor in ours."""
    secret = made(service, "ada", name="ci")
    listed = service.ask("GET", "/v1/users/ada/tokens")
    gone = service.ask("DELETE", f"/v1/tokens/{secret['id']}")
    audit = service.ask("GET", "/v1/audit", as_="root")
    digests = [row.digest for row in service.twin.store.rows.values() if isinstance(row, Token)]
    for text in (listed.body.decode(), gone.body.decode(), audit.body.decode()):
        assert not [each for each in (secret["token"], *digests) if each in text]
    assert secret["token"] not in repr([*service.twin.store.rows.values()])


def test_a_secret_is_logged(service: Service, capfd: pytest.CaptureFixture[str]) -> None:
    """SEC-1: whatever is asked with it, also wrongly."""
    secret = made(service, "ada")["token"]
    asked = (("GET", "/v1/whoami", None), ("POST", "/v1/jobs", "{"), ("GET", f"/v1/tokens/{secret}", None))
    for method, path, body in asked:
        _with(service, secret, method, path, body)
    service.ask("DELETE", "/v1/tokens/x", as_="ada")
    out, err = capfd.readouterr()
    assert secret.rpartition("_")[2] not in out + err


GUESSES = {
    "the id alone": lambda id: id,
    "no secret": lambda id: f"pst_user_{id}_",
    "another secret": lambda id: token_secret(TokenKind.USER, id, "x" * 43),
    "the old form": lambda _: "pst_" + "x" * 43,
    "another kind of token": lambda id: token_secret(TokenKind.OPERATOR, id, "x" * 43),
}


@pytest.mark.parametrize("guess", GUESSES)
def test_a_token_is_guessed_by_its_id(service: Service, guess: str) -> None:
    """The id is in lists and logs, and helps nobody."""
    id = made(service, "root", "root")["id"]
    answer = who(service, GUESSES[guess](id))
    assert answer.status == 401
    assert answer.json["code"] == ("old-token" if guess == "the old form" else "unknown-token")


@pytest.mark.parametrize(
    "page", ["zzz/1/x", "../x", "a b", "tokens#ada", "\0", "é", "x" * 5000, "oxide:hubris", "0" * 26, "%", "~"]
)
def test_pages_of_users_and_tokens_that_are_none(service: Service, page: str) -> None:
    for path in ("/v1/users", "/v1/users/ada/tokens"):
        answer = service.ask("GET", path, as_="root", query={"page": page})
        assert answer.status in (200, 400), answer


def test_the_page_after_a_repository_is_shown(service: Service) -> None:
    """A name with a colon is the last of a page."""
    names = {f"oxide:r-{number:03}" for number in range(150)}
    for name in names:
        service.ask("POST", "/v1/users", {"name": name}, as_="root")
    found, page = [], ""
    while True:
        answer = service.ask("GET", "/v1/users", as_="root", query={"page": page}).json
        found += [each["name"] for each in answer["items"]]
        page = answer["next"]
        if page is None:
            break
    assert len(found) == len(set(found))
    assert names | {"ada", "bob", "root"} <= {*found}


def test_tokens_are_listed_page_by_page(service: Service, twin: Twin) -> None:
    made_ids = [made(service, "ada")["id"] for _ in range(150)]
    first = service.ask("GET", "/v1/users/ada/tokens").json
    rest = service.ask("GET", "/v1/users/ada/tokens", query={"page": first["next"]}).json
    listed = [each["id"] for each in first["items"] + rest["items"]]
    assert (listed[1:], rest["next"]) == (made_ids, None)


def test_a_user_makes_tokens_without_end(service: Service) -> None:
    """What nobody can list and revoke any more is not there. Expired and revoked ones make room."""
    last = [made(service, "ada", expires_in=3600) for _ in range(TOKENS - 1)][-1]  # Ada shows one more
    wish = ("POST", "/v1/users/ada/tokens", {})
    answer = _with(service, token_of("ada"), *wish)
    refused(answer, 409, "too-many-tokens")
    assert "`penstock token revoke`" in answer.json["detail"]
    refused(service.ask("POST", "/v1/users/ada/tokens", {}, token=token_of("root")), 409, "too-many-tokens")
    made(service, "bob", "bob")
    assert service.ask("DELETE", f"/v1/tokens/{last['id']}", as_="ada").status in (200, 204)
    made(service, "ada")
    refused(_with(service, token_of("ada"), *wish), 409, "too-many-tokens")
    service.twin.pass_time(3600)
    made(service, "ada")


def test_what_is_sent_for_a_token_is_nonsense(service: Service) -> None:
    nonsense = ({"scopes": "all"}, {"scopes": [1]}, {"name": "x" * 101}, {"expires_in": 1.5}, {"scope": []}, [])
    for body in (*nonsense, {"expires_in": True}):
        refused(service.ask("POST", "/v1/users/ada/tokens", body), 400, "bad-request")
    refused(service.ask("POST", "/v1/users/ada/tokens", "{"), 400, "malformed-json")


def test_what_was_done_is_on_record(service: Service) -> None:
    """Who made and revoked which token, and what was done to users."""
    token = made(service, "root", "bob")
    service.ask("DELETE", f"/v1/tokens/{token['id']}", as_="root")
    service.twin.pass_time(1)
    for verb, body in (("disable", {}), ("enable", None), ("rename", {"name": "rob"})):
        service.ask("POST", f"/v1/users/bob/{verb}", body, as_="root")
        service.twin.pass_time(1)
    removed(service, "rob")
    found = service.ask("GET", "/v1/audit", as_="root").json["items"]
    done = [(each["did"], each["what"]) for each in found if each["by"] == "root"]
    for deed in (
        ("make token", "user bob"), ("revoke token", "user bob"), ("disable user", "user bob"),
        ("enable user", "user bob"), ("rename user", "user bob"), ("remove user", "user rob"),
    ):  # fmt: skip
        assert deed in done
    assert any(token["id"] in each["detail"] for each in found)
    assert json.dumps(found).count(token["token"]) == 0


def test_whoever_begins_logins_does_not_choose_their_address(service: Service) -> None:
    """SEC-2: headers that callers send change neither what is shown, nor where they are counted."""
    for number in range(PER_ADDRESS):
        said = {"x-forwarded-for": f"203.0.113.{number}", "forwarded": f"for=203.0.113.{number}"}
        code = service.ask("POST", "/v1/logins", {"host": "x"}, as_=None, headers=said).json["code"]
        assert service.ask("GET", f"/v1/logins/{code}").json["address"] == "127.0.0.1"
    said = {"x-forwarded-for": "203.0.113.99"}
    refused(service.ask("POST", "/v1/logins", {"host": "x"}, as_=None, headers=said), 429, "too-many-logins")


@pytest.mark.parametrize("proof", ["guessed", "", "s3cret ", None])
def test_who_knows_no_secret_of_our_distribution_does_not_choose_their_address(
    service: Service, monkeypatch: pytest.MonkeyPatch, proof: str | None
) -> None:
    """SEC-2: neither where there is a distribution, nor where there is none."""
    service.twin.on = replace(service.twin.on, front_key=lambda: "s3cret")
    monkeypatch.setattr(bootstrap, "aws", lambda: service.twin.on)
    said = {"x-penstock-viewer": "203.0.113.7", **({} if proof is None else {"x-penstock-front": proof})}
    assert begun_at(service, said) == "127.0.0.1"


def test_without_a_distribution_nothing_proves_an_address(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-2."""
    service.twin.on = replace(service.twin.on, front_key=None)
    monkeypatch.setattr(bootstrap, "aws", lambda: service.twin.on)
    assert begun_at(service, {"x-penstock-viewer": "203.0.113.7", "x-penstock-front": ""}) == "127.0.0.1"
    assert begun_at(service, {"x-penstock-viewer": "203.0.113.7", "x-penstock-front": "x"}) == "127.0.0.1"


def test_what_came_through_our_distribution_is_counted_where_it_came_from(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-2: else all that sign in through it would be counted as one."""
    service.twin.on = replace(service.twin.on, front_key=lambda: "s3cret")
    monkeypatch.setattr(bootstrap, "aws", lambda: service.twin.on)
    proof = {"x-penstock-front": "s3cret"}
    for _ in range(PER_ADDRESS):
        assert begun_at(service, {"x-penstock-viewer": "203.0.113.7", **proof}) == "203.0.113.7"
    said = {"x-penstock-viewer": "203.0.113.7", **proof}
    refused(service.ask("POST", "/v1/logins", {"host": "x"}, as_=None, headers=said), 429, "too-many-logins")
    assert begun_at(service, {"x-penstock-viewer": "2001:db8::7", **proof}) == "2001:db8::7"
    assert begun_at(service, proof) == "127.0.0.1"


def begun_at(service: Service, headers: Mapping[str, str]) -> str:
    """The address of a login that is begun with these headers."""
    code = service.ask("POST", "/v1/logins", {"host": "x"}, as_=None, headers=headers).json["code"]
    return str(service.ask("GET", f"/v1/logins/{code}").json["address"])


def test_a_hosts_token_neither_sees_nor_approves_a_login(service: Service) -> None:
    """SEC-2."""
    code = service.ask("POST", "/v1/logins", {"host": "x"}, as_=None).json["code"]
    secret = token_secret(TokenKind.HOST, "0" * 26, "x" * 43)
    service.give("root", secret, "host:target/lab/bench-7")
    refused(service.ask("GET", f"/v1/logins/{code}", token=secret), 403, "scope-missing")
    refused(service.ask("POST", f"/v1/logins/{code}/approve", token=secret), 403, "scope-missing")
