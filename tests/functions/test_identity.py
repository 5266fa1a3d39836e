"""Identity tokens over HTTP, from the job that asks to whoever checks. [SEC-1] [SEC-2]"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.functions.agent import call
from tests.functions.service import Service, conforms, refused, token_of
from tests.functions.stage import Stage

WELL_KNOWN = "/.well-known/openid-configuration"
AWS = {"audience": "sts.amazonaws.com"}


@pytest.fixture
def stage(service: Service) -> Stage:
    return Stage(service)


def read(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def number(text: str) -> int:
    return int.from_bytes(read(text), "big")


def test_who_checks_finds_the_keys_from_what_the_token_says(stage: Stage) -> None:
    """As OpenID Connect Discovery has it: issuer, configuration below it, keys, signature."""
    head, body, signature = call(stage, "identity", AWS).json["token"].split(".")
    said = json.loads(read(body))
    path = said["iss"].removeprefix(stage.service.twin.on.url) + WELL_KNOWN
    issuer = stage.service.ask("GET", path, as_=None)
    conforms(issuer.json, "IssuerView")
    assert issuer.json["issuer"] == said["iss"]
    assert set(said) <= set(issuer.json["claims_supported"])
    keys = stage.service.ask("GET", issuer.json["jwks_uri"].removeprefix("http://here"), as_=None)
    conforms(keys.json, "KeySetView")
    (key,) = [key for key in keys.json["keys"] if key["kid"] == json.loads(read(head))["kid"]]
    public = rsa.RSAPublicNumbers(number(key["e"]), number(key["n"])).public_key()
    public.verify(read(signature), f"{head}.{body}".encode(), padding.PKCS1v15(), hashes.SHA256())
    for answer in (issuer, keys):
        assert answer.headers["cache-control"] == "public, max-age=300"


def test_keys_are_for_all_and_read_no_row(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("get", "find", "listed", "commit"):
        monkeypatch.setattr(stage.service.twin.store, name, None)
    for path in (WELL_KNOWN, "/.well-known/jwks.json"):
        assert stage.service.ask("GET", f"/v1/oidc{path}", as_=None).status == 200


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "bad-request"),
        ({"audience": 1}, 400, "bad-request"),
        ({"audience": ""}, 400, "bad-request"),
        ({"audience": "a" * 256}, 400, "bad-request"),
        ({"audience": "a b"}, 400, "bad-request"),
        ({"audience": "\ud800"}, 400, "malformed-json"),
        ({**AWS, "sub": "x"}, 400, "bad-request"),
        ({"audience": "https://elsewhere.example"}, 422, "audience-not-allowed"),
    ],
    ids=str,
)
def test_what_is_refused(stage: Stage, body: Any, status: int, code: str) -> None:
    refused(call(stage, "identity", body), status, code)


def test_only_the_jobs_own_worker_is_given_one(stage: Stage) -> None:
    refused(call(stage, "identity", AWS, token="t" * 43), 403, "not-your-job")
    refused(call(stage, "identity", AWS, job=stage.waiting), 403, "not-your-job")
    refused(call(stage, "identity", AWS, token=token_of("root")), 403, "not-your-job")


def test_operators_see_that_it_was_given_and_nobody_sees_it(stage: Stage) -> None:
    signature = call(stage, "identity", AWS).json["token"].rpartition(".")[2].encode()
    audit = stage.service.ask("GET", "/v1/audit", as_="root", query={"who": "ada"})
    (entry,) = audit.json["items"]
    assert (entry["did"], entry["what"]) == ("identity token", f"job {stage.job}")
    for answer in (audit, stage.service.ask("GET", f"/v1/jobs/{stage.job}/events")):
        assert b"sts.amazonaws.com" in answer.body
        assert signature not in answer.body
