"""What a service does that has too much to do or is not there, and what that is taken for."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from penstock.aws.reach import watched
from penstock.aws.s3 import S3Objects
from penstock.aws.sqs import SqsQueues
from penstock.aws.stepfunctions import StepFlows
from penstock.kernel.errors import Unreached


class Service(BaseHTTPRequestHandler):
    """Answers each request as it is told to."""

    status, body = 200, b"{}"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.send_response(self.status)
        self.send_header("content-type", "application/x-amz-json-1.0")
        self.send_header("content-length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    do_GET = do_PUT = do_POST

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Service]]:
    bound = type("Bound", (Service,), {})
    server = HTTPServer(("127.0.0.1", 0), bound)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_address[1]}")
    yield bound
    server.shutdown()
    server.server_close()


def client(name: Any) -> Any:
    given = {"region_name": "us-east-1", "aws_access_key_id": "test", "aws_secret_access_key": "test"}
    once = Config(retries={"mode": "standard", "total_max_attempts": 1}, connect_timeout=5, read_timeout=5)
    return watched(boto3.client(name, config=once, **given))


def send() -> None:
    SqsQueues(client("sqs"), *["http://queue"] * 5).schedule({})


def answer() -> None:
    StepFlows(client("stepfunctions"), "arn:aws:states:us-east-1:123456789012:stateMachine:a").succeed("token")


@pytest.mark.parametrize("call", [send, answer])
@pytest.mark.parametrize("status", [500, 503])
def test_its_own_fault_is_no_fault_of_the_call(service: type[Service], status: int, call: Any) -> None:
    service.status = status
    with pytest.raises(Unreached, match=f"(sqs|stepfunctions) did not take Send.*: {status}"):
        call()


@pytest.mark.parametrize("code", ["ThrottlingException", "RequestThrottled", "OverLimit"])
def test_what_came_too_fast_may_come_again(service: type[Service], code: str) -> None:
    service.status, service.body = 400, b'{"__type": "com.amazonaws.sqs#%s"}' % code.encode()
    with pytest.raises(Unreached, match=f"sqs did not take SendMessage: 400 {code}"):
        send()


def test_a_refusal_for_what_it_says_stays_one(service: type[Service]) -> None:
    service.status, service.body = 403, b'{"__type": "com.amazonaws.sqs#AccessDeniedException"}'
    with pytest.raises(ClientError, match="AccessDenied"):
        send()


def test_a_step_that_is_gone_is_answered_in_vain_as_before(service: type[Service]) -> None:
    service.status, service.body = 400, b'{"__type": "TaskTimedOut"}'
    answer()


def test_who_does_not_answer_is_unreached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(Unreached, match="sqs did not take SendMessage: Could not connect"):
        send()


def test_what_is_right_passes(service: type[Service]) -> None:
    service.body = b'{"MessageId": "m", "MD5OfMessageBody": "99914b932bd37a50b983c5e7c90ae93b"}'
    send()


def test_s3_says_it_in_xml(service: type[Service]) -> None:
    service.status, service.body = 503, b"<Error><Code>SlowDown</Code></Error>"
    with pytest.raises(Unreached, match="s3 did not take PutObject: 503 SlowDown"):
        S3Objects(client("s3"), "bucket").store("name", io.BytesIO(b"x").read())
