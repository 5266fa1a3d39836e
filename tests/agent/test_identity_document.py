"""An agent whose config says so sends the machine's identity document, as EC2 signs it."""

import http.server
import json
import threading
from collections.abc import Iterator

import pytest

from tests.agent.control_plane import order

DOCUMENT = '{\n  "instanceId" : "i-1234567890abcdef0"\n}'
SIGNATURE = "c2ln\nbmVk"


class Metadata(http.server.ThreadingHTTPServer):
    """The metadata service of a machine: no word without a token. The first calls may find it not ready."""

    def __init__(self, unready: int = 0) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.unready, self.calls = unready, list[str]()
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    """One request."""

    server: Metadata

    def do_PUT(self) -> None:
        lives = self.headers["X-aws-ec2-metadata-token-ttl-seconds"]
        self._answer("TOKEN" if self.path == "/latest/api/token" and 0 < int(lives) < 21600 else None)

    def do_GET(self) -> None:
        if self.headers["X-aws-ec2-metadata-token"] != "TOKEN":
            self.send_error(401)
            return
        below = self.path.removeprefix("/latest/dynamic/instance-identity/")
        self._answer({"document": DOCUMENT, "signature": SIGNATURE}.get(below))

    def _answer(self, text: "str | None") -> None:
        self.server.calls.append(f"{self.command} {self.path}")
        if text is None or len(self.server.calls) <= self.server.unready:
            self.send_error(404)
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *given: object) -> None:
        pass


@pytest.fixture
def metadata() -> Iterator[Metadata]:
    with Metadata() as service:
        threading.Thread(target=service.serve_forever, daemon=True).start()
        yield service
        service.shutdown()


def ask(job, url: str) -> None:
    config = json.loads((job.folder / "agent.json").read_text())
    (job.folder / "agent.json").write_text(json.dumps({**config, "identity": url}))


def test_a_configured_agent_sends_the_identity_document(worker, metadata):
    job = worker()
    ask(job, metadata.url)
    job.finish()
    assert (job.plane.hellos[0]["document"], job.plane.hellos[0]["signature"]) == (DOCUMENT, SIGNATURE)
    assert metadata.calls == [
        "PUT /latest/api/token",
        "GET /latest/dynamic/instance-identity/document",
        "GET /latest/dynamic/instance-identity/signature",
    ]


def test_it_is_sent_with_every_hello_and_fetched_once(worker, metadata):
    """SEC-2: also with the one after a job, which may have given the token to another machine."""
    job = worker(reuse=True)
    ask(job, metadata.url)
    job.plane.answer_next_hellos(order(job="job-2", reuse=True), 410)
    job.finish()
    assert [hello["document"] for hello in job.plane.hellos] == [DOCUMENT] * len(job.plane.hellos)
    assert len(job.plane.hellos) >= 2
    assert len(metadata.calls) == 3


def test_a_metadata_service_that_is_not_ready_is_retried(worker, metadata):
    metadata.unready = 2
    job = worker()
    ask(job, metadata.url)
    job.finish()
    assert job.plane.hellos[0]["document"] == DOCUMENT


def test_without_a_document_the_agent_still_says_hello(worker):
    """Nobody listens there."""
    job = worker()
    ask(job, "http://127.0.0.1:1")
    job.finish()
    assert "document" not in job.plane.hellos[0]
    assert "has no identity document" in job.log()


def test_an_agent_without_the_setting_fetches_no_document(worker, metadata):
    job = worker()
    job.finish()
    assert "document" not in job.plane.hellos[0]
    assert metadata.calls == []
