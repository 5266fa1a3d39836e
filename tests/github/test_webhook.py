"""The webhook over HTTP: who signed it, how big it is, and that what is stored first is not lost. [SEC-2]"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import github_webhook
import pytest

from penstock import bootstrap
from penstock.domain.github.deliveries import BODY_BYTES, Delivery
from tests.functions.service import Answer, Context, is_problem, request
from tests.github.fake import signature
from tests.github.payloads import check_run, pull_request, push
from tests.github.rig import SECRET, A, Rig


@dataclass
class Web:
    """GitHub's side of the webhook."""

    rig: Rig

    def send(
        self,
        body: Any,
        *,
        name: str = "push",
        by: str | None = None,
        id: str = "one",
        encoded: bool = False,
        **headers: str,
    ) -> Answer:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {
            "X-Hub-Signature-256": signature(SECRET, raw) if by is None else by,
            "X-GitHub-Delivery": id,
            "X-GitHub-Event": name,
            **headers,
        }
        try:
            text: str | bytes = raw.decode()
        except UnicodeDecodeError:
            text = raw
        event = request("POST", "/v1/github/webhook", text, sent, (), encoded=encoded)
        told = github_webhook.handler(event, Context())  # type: ignore[arg-type]
        many = {key.lower(): value[0] for key, value in (told.get("multiValueHeaders") or {}).items()}
        one = {key.lower(): value for key, value in (told.get("headers") or {}).items()}
        return Answer(told["statusCode"], many | one, (told.get("body") or "").encode())

    def refused(self, status: int, code: str, *args: Any, **given: Any) -> None:
        answer = self.send(*args, **given)
        assert (answer.status, answer.json["code"]) == (status, code), answer
        is_problem(answer)

    def stored(self) -> list[Delivery]:
        return [row for row in self.rig.twin.store.rows.values() if isinstance(row, Delivery)]


@pytest.fixture
def web(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Web:
    monkeypatch.setattr(bootstrap, "aws", lambda: rig.on)
    return Web(rig)


@pytest.mark.parametrize("encoded", [False, True])
def test_a_delivery_is_stored_before_anything_follows(web: Web, encoded: bool) -> None:
    answer = web.send(push(A), encoded=encoded)
    assert (answer.status, answer.json) == (202, {"delivery": "stored"})
    (row,) = web.stored()
    assert (row.id, row.outcome, row.due, row.event and row.event.sha) == ("one", "", web.rig.now(), A)
    assert not web.rig.fake.asked
    web.rig.twin.queues.messages.clear()  # the hint is lost
    web.rig.later(60)
    assert web.stored()[0].outcome == f"jobs of {A[:12]}"
    assert web.send(push(A)).json == {"delivery": "known"}


@pytest.mark.parametrize(
    "by",
    ["", "sha256=", "sha256=" + "0" * 64, signature("another", b"{}"), "sha1=" + "0" * 40, "é" * 71, "\ud800"],
)
def test_what_is_not_signed_is_not_read(web: Web, by: str) -> None:
    web.refused(401, "bad-signature", push(A), by=by)
    web.refused(401, "bad-signature", b"not JSON at all", by=by)
    assert not web.stored()
    assert not web.rig.twin.queues.messages


def test_a_signature_is_of_the_body_to_the_last_byte(web: Web) -> None:
    body = json.dumps(push(A)).encode()
    assert web.send(body, by=signature(SECRET, body)).status == 202
    web.refused(401, "bad-signature", body + b" ", by=signature(SECRET, body))
    web.refused(401, "bad-signature", body, by=signature(SECRET, body).upper())
    web.refused(401, "bad-signature", body, by=signature(SECRET, body) + " ")


def test_what_is_too_big_is_refused_at_once(web: Web) -> None:
    web.refused(413, "body-too-big", b"x" * (BODY_BYTES + 1))
    big = push(A)
    big["commits"] = ["x" * (BODY_BYTES - 3000)]
    assert web.send(big).status == 202  # a push of many commits is large, and is nothing bad


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "malformed-json"),
        (b"{", "malformed-json"),
        (b"\xff\xfe{}", "malformed-json"),
        (b"[" * 200_000, "malformed-json"),
        (b"[]", "bad-request"),
        (b"7", "bad-request"),
        (b"NaN", "bad-request"),
    ],
)
def test_what_is_no_payload(web: Web, body: bytes, code: str) -> None:
    web.refused(400, code, body)
    assert not web.stored()


@pytest.mark.parametrize("id", ["", "x" * 65, "a b", "a#b", "é"])
def test_a_delivery_has_an_id(web: Web, id: str) -> None:
    web.refused(400, "bad-request", push(A), id=id)


def _without(path: str, payload: dict[str, Any], value: Any = None) -> dict[str, Any]:
    *steps, last = path.split(".")
    inside = payload
    for step in steps:
        inside = inside[step]
    inside[last] = value
    return payload


WRONG = [None, 7.5, [], {}, True, "\x00", "x" * 150_000, -1, 2**60, "é" * 60]


@pytest.mark.parametrize("value", WRONG, ids=lambda value: str(value)[:9])
@pytest.mark.parametrize(
    "path", ["ref", "after", "repository.id", "repository.full_name", "sender.login", "installation"]
)
def test_a_push_that_is_not_as_it_should_be(web: Web, path: str, value: Any) -> None:
    answer = web.send(_without(path, push(A), value))
    if path == "ref" and isinstance(value, str):
        assert answer.status == 202  # no branch: of no interest
        return
    assert (answer.status, answer.json["code"]) == (400, "bad-payload"), answer
    (row,) = web.stored()
    assert row.outcome.startswith("malformed: ")
    assert row.due is None


@pytest.mark.parametrize(
    ("name", "payload", "path", "value"),
    [
        ("push", push(A), "ref", "refs/heads/with space"),
        ("push", push(A), "ref", "refs/heads/\ud800"),
        ("push", push(A), "ref", "refs/heads/" + "x" * 300),
        ("push", push(A), "after", "A" * 40),
        ("pull_request", pull_request(A), "pull_request", None),
        ("pull_request", pull_request(A), "pull_request.head.sha", "main"),
        ("pull_request", pull_request(A), "pull_request.user", []),
        ("pull_request", pull_request(A), "pull_request.number", "12"),
        (
            "check_run",
            check_run({"id": 1, "name": "x", "head_sha": A, "external_id": "é"}, "ada"),
            "action",
            "rerequested",
        ),
        (
            "check_run",
            check_run({"id": 1, "name": "x", "head_sha": A, "external_id": "x"}, "ada", "approve"),
            "requested_action",
            None,
        ),
    ],
)
def test_others_that_are_not_as_they_should_be(
    web: Web, name: str, payload: dict[str, Any], path: str, value: Any
) -> None:
    web.refused(400, "bad-payload", _without(path, payload, value), name=name)


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("ping", {"zen": "Keep it simple", "hook_id": 1}),
        ("", {}),
        ("watch", {"action": "started"}),
        ("pull_request", pull_request(A, action="labeled")),
        ("pull_request", _without("action", pull_request(A), 7)),
        ("check_run", {"action": "created"}),
    ],
)
def test_what_nothing_follows_from_is_not_kept(web: Web, name: str, payload: Any) -> None:
    assert web.send(payload, name=name).json == {"delivery": "ignored"}
    assert not web.stored()


@pytest.mark.parametrize("payload", [push(A, deleted=True), _without("ref", push(A), "refs/tags/v1")])
def test_tags_and_branches_that_are_gone_lead_to_nothing(web: Web, payload: Any) -> None:
    assert web.send(payload).status == 202
    web.rig.twin.run()
    assert [row.outcome for row in web.stored()] == ["ignored"]
    assert not web.rig.fake.asked


def test_no_other_method_or_path_is_there(web: Web) -> None:
    for method, path in (("GET", "/v1/github/webhook"), ("POST", "/v1/github/other")):
        event = request(method, path, b"", {}, ())
        assert github_webhook.handler(event, Context())["statusCode"] == 404  # type: ignore[arg-type]
