"""The function that puts the console's files into their bucket, as CloudFormation calls it."""

from __future__ import annotations

import importlib.util
import io
import json
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from botocore.exceptions import ClientError

FILE = Path(__file__).parents[2] / "infra" / "console_files.py"
INLINE_CHARS = 4096
"""The most that a template's ZipFile has taken of old. Source: CloudFormation, AWS::Lambda::Function Code."""

FILES = [
    {"Key": "assets/a-1.js", "ContentType": "text/javascript", "CacheControl": "immutable"},
    {"Key": "index.html", "ContentType": "text/html", "CacheControl": "no-cache"},
]


@dataclass
class Bucket:
    """S3 as far as the function uses it. `denied`: so many reads are refused first."""

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    denied: int = 0
    log: list[str] = field(default_factory=list)

    def get_object(self, Bucket: str, Key: str) -> dict[str, Any]:
        assert (Bucket, Key) == ("assets", "it.zip")
        self.denied -= 1
        if self.denied >= 0:
            raise ClientError({"Error": {"Code": "AccessDenied"}}, "GetObject")
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for each in FILES:
                archive.writestr(each["Key"], f"content of {each['Key']}")
        return {"Body": io.BytesIO(packed.getvalue())}

    def put_object(self, Bucket: str, Key: str, **more: Any) -> None:
        assert Bucket == "console"
        self.objects[Key] = more
        self.log.append(Key)

    def get_paginator(self, name: str) -> Bucket:
        assert name == "list_objects_v2"
        return self

    def paginate(self, Bucket: str) -> list[dict[str, Any]]:
        return [{"Contents": [{"Key": each}]} for each in list(self.objects)] + [{}]

    def delete_object(self, Bucket: str, Key: str) -> None:
        del self.objects[Key]


@dataclass
class Context:
    log_stream_name: str = "stream-7"


@pytest.fixture
def s3() -> Bucket:
    return Bucket()


@pytest.fixture
def code(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module as Lambda loads it: by itself."""
    spec = importlib.util.spec_from_file_location("index", FILE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module.boto3, "client", lambda name: s3)
    monkeypatch.setattr(module.time, "sleep", lambda seconds: None)
    return module


@pytest.fixture
def answers() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Where CloudFormation waits for an answer, and those that came."""
    got: list[dict[str, Any]] = []

    class Door(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            assert not self.headers["content-type"]  # the URL is signed for none
            got.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Door)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", got
    finally:
        server.shutdown()
        server.server_close()


def event(kind: str, url: str, keep: str = "true", **more: Any) -> dict[str, Any]:
    properties = {"Bucket": "console", "From": {"Bucket": "assets", "Key": "it.zip"}, "Files": FILES, "Keep": keep}
    ids = {"StackId": "stack", "RequestId": "request", "LogicalResourceId": "Uploaded"}
    return {"RequestType": kind, "ResponseURL": url, "ResourceProperties": properties, **ids, **more}


Answers = tuple[str, list[dict[str, Any]]]


def test_files_have_their_headers_and_index_html_comes_last(code: ModuleType, s3: Bucket, answers: Answers) -> None:
    s3.objects["assets/of-before.js"] = {}
    code.handler(event("Create", answers[0]), Context())
    assert s3.log == ["assets/a-1.js", "index.html"]
    assert s3.objects["index.html"] == {
        "Body": b"content of index.html", "ContentType": "text/html", "CacheControl": "no-cache",
    }  # fmt: skip
    assert "assets/of-before.js" in s3.objects  # for pages that are open
    (said,) = answers[1]
    assert said == {
        "Status": "SUCCESS", "PhysicalResourceId": "console", "StackId": "stack", "RequestId": "request",
        "LogicalResourceId": "Uploaded",
    }  # fmt: skip


def test_a_permission_that_is_not_known_yet_is_waited_for(code: ModuleType, s3: Bucket, answers: Answers) -> None:
    s3.denied = 3
    code.handler(event("Update", answers[0], PhysicalResourceId="console"), Context())
    assert [each["Status"] for each in answers[1]] == ["SUCCESS"]
    assert "index.html" in s3.objects


def test_what_fails_is_said_at_once(
    code: ModuleType, s3: Bucket, answers: Answers, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """CloudFormation would else wait until it gives up."""
    monkeypatch.setattr(code, "PATIENCE_SECONDS", 0)
    s3.denied = 10**6
    code.handler(event("Update", answers[0], PhysicalResourceId="console"), Context())
    (said,) = answers[1]
    assert (said["Status"], said["PhysicalResourceId"]) == ("FAILED", "console")
    assert "AccessDenied" in said["Reason"]
    assert "stream-7" in said["Reason"]
    assert "AccessDenied" in capsys.readouterr().err
    assert s3.objects == {}


@pytest.mark.parametrize(("keep", "left"), [("true", 1), ("false", 0)])
def test_files_go_with_a_trial_and_stay_else(
    code: ModuleType, s3: Bucket, answers: Answers, keep: str, left: int
) -> None:
    s3.objects["index.html"] = {}
    code.handler(event("Delete", answers[0], keep, PhysicalResourceId="console"), Context())
    assert len(s3.objects) == left
    assert [each["Status"] for each in answers[1]] == ["SUCCESS"]


def test_it_fits_into_a_template() -> None:
    assert len(FILE.read_text()) < INLINE_CHARS
