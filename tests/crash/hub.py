"""A GitHub beside the emulated account: the one of tests/github, called without a network, so that calls of it go wrong
as those of AWS do, and a process that parts takes its own along."""

from __future__ import annotations

import json
import urllib.error
from collections.abc import Callable, Mapping
from contextlib import closing
from email.message import Message
from io import BytesIO
from typing import Any
from urllib.request import Request

import boto3
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_der_public_key

from penstock.aws.github import GitHub
from penstock.aws.kms import KmsAppKey
from penstock.testing.twin import ManualClock
from penstock.usecases.github.client import OUR_PERMISSIONS
from tests.crash.faults import Seam, Way
from tests.github.fake import Answer, FakeGitHub, Repo, signature
from tests.github.rig import CONFIG

SECRET = "it is a secret to everybody"
NAME, ID = "oxide/hubris", 55


class Hub:
    """One GitHub with one repository, into which ada may write; and how functions reach it."""

    def __init__(self, world: ManualClock) -> None:
        client = boto3.client("kms")
        key = client.create_key(KeySpec="RSA_2048", KeyUsage="SIGN_VERIFY")["KeyMetadata"]["KeyId"]
        public = load_der_public_key(client.get_public_key(KeyId=key)["PublicKey"])
        assert isinstance(public, rsa.RSAPublicKey)
        self.public, self.world = public, world
        self.proofs = KmsAppKey(client, key)
        self.adapters: list[GitHub] = []
        self.seam: Seam | None = None
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self.fake = FakeGitHub(self.public, self.world.now)
        self.repo = Repo(NAME, ID, rights={"ada": "write"})
        self.repo.files["main"] = {CONFIG: b"enable = true"}
        self.fake.repos[ID] = self.repo
        self.forget()

    def forge(self, queue: str, secret: Callable[[], str]) -> GitHub:
        """The real adapter, but for the network."""
        made = GitHub(boto3.client("sqs"), queue, self.proofs, secret, self.world.now)
        made._opener = self  # type: ignore[assignment]
        self.adapters.append(made)
        return made

    def forget(self) -> None:
        """What functions keep in memory is gone with each event, as if each had a process of its own."""
        self.proofs._proofs.clear()
        for each in self.adapters:
            each._tokens.clear()

    def open(self, request: Request, timeout: float = 0) -> Any:
        """What the adapter calls to send a request. Raises HTTPError for what is no success."""
        del timeout
        assert self.seam is not None
        name = f"{request.get_method().title()}GitHub"
        way = Way(lambda: self._answer(request), lambda: _told(request, LIMITED), lambda: ConnectionResetError("lost"))
        return self.seam.call(name, way) if self.seam.handler else way.answer()

    def _answer(self, request: Request) -> Any:
        body = request.data if isinstance(request.data, bytes) else b""
        headers = {name.lower(): value for name, value in request.header_items()}
        return _told(request, self.fake.answer(request.get_method(), request.selector, headers, body))

    def sends(self, name: str, payload: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
        """Note that GitHub sends something: it lists it for whoever asks. The body and the headers."""
        number, body = len(self.fake.deliveries), json.dumps(payload)
        item = {
            "id": 7000 + number, "guid": f"guid-{number}", "event": name, "action": payload.get("action"),
            "delivered_at": f"{self.world.now():%Y-%m-%dT%H:%M:%SZ}", "request": {"payload": payload},
        }  # fmt: skip
        self.fake.deliveries.insert(0, item)
        signed = signature(SECRET, body.encode())
        return body, {
            "x-hub-signature-256": signed, "x-github-delivery": f"guid-{number}", "x-github-event": name,
        }  # fmt: skip

    def state(self) -> tuple[Any, ...]:
        """All of it that a run depends on. Of tokens only those of jobs: our own are made anew with each event."""
        fake = self.fake
        lines, files = sorted(self.repo.ends.items()), sorted(self.repo.files)
        alive = [(token, each.until) for token, each in fake.tokens.items() if each.permissions != OUR_PERMISSIONS]
        return sorted(fake.runs.items()), fake.deliveries, lines, files, alive


LIMITED = Answer(403, {"message": "You have exceeded a secondary rate limit."}, {"retry-after": "30"})
"""What GitHub says to whom it wants to slow down."""


def _told(request: Request, answer: Answer) -> Any:
    """An answer as urllib gives it."""
    raw = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
    headers = Message()
    for name, value in answer.headers.items():
        headers[name] = value
    if answer.status >= 300:
        raise urllib.error.HTTPError(request.full_url, answer.status, "no", headers, BytesIO(raw))
    return closing(_Open(answer.status, headers, b"" if answer.status == 204 else raw))


class _Open(BytesIO):
    """An answer that can be read."""

    def __init__(self, status: int, headers: Message, raw: bytes) -> None:
        super().__init__(raw)
        self.status, self.headers = status, headers
