"""A host without a stack, for what the emulator does, and small functions to put on it."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest

from penstock.deploy.account import Account
from penstock.local import cloud
from penstock.local.state import Running, StateFolder
from tests.local.assemblies import BUCKET

ROLE = "arn:aws:iam::000000000000:role/any"

TRUST = {"Effect": "Allow", "Principal": {"AWS": "*", "Service": ["lambda.amazonaws.com", "states.amazonaws.com"]}}
ANYTHING = {"Effect": "Allow", "Action": "*", "Resource": "*"}


def policy(statement: dict[str, Any]) -> str:
    """A policy document of one statement."""
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def quiet(line: str) -> None:
    """Progress that nobody reads."""


@dataclass
class Host:
    """An emulator with nothing on it."""

    url: str
    place: StateFolder

    def client(self, service: str, key: str = "", secret: str = "local", token: str | None = None) -> Any:
        """A client with the deployer's key, or another."""
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name=cloud.REGION,
            aws_access_key_id=key or self.place.key(),
            aws_secret_access_key=secret,
            aws_session_token=token,
        )

    def function(self, name: str, source: str) -> Callable[[Any], Any]:
        """Make a function and return what calls it."""
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as content:
            content.writestr(zipfile.ZipInfo("module.py"), source)  # of no date: the same source is the same zip
        client = self.client("lambda")
        client.create_function(
            FunctionName=name,
            Runtime="python3.13",
            Handler="module.handler",
            Role=ROLE,
            Code={"ZipFile": archive.getvalue()},
            Timeout=20,
        )

        def call(event: Any) -> Any:
            return json.load(client.invoke(FunctionName=name, Payload=json.dumps(event))["Payload"])

        return call

    def role(self, name: str, allowed: dict[str, Any]) -> str:
        """Make a role that may do one thing, and return its ARN."""
        iam = self.client("iam")
        trust = policy({**TRUST, "Action": "sts:AssumeRole"})
        made = iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust)
        iam.put_role_policy(RoleName=name, PolicyName="one", PolicyDocument=policy(allowed))
        return str(made["Role"]["Arn"])

    def acting_as(self, role: str, allowed: dict[str, Any], service: str) -> Any:
        """A client with the credentials of a new role that may do one thing."""
        arn = self.role(role, allowed)
        given = self.client("sts").assume_role(RoleArn=arn, RoleSessionName="test")["Credentials"]
        return self.client(service, given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Plain HTTP."""
        return httpx.request(method, self.url + path, trust_env=False, timeout=20, **more)


CONSOLE = {"index.html": "<title>Penstock</title>", "icon.svg": "<svg/>", "assets/index-0a1B.js": "let it;"}


def build_console(folder: Path) -> Path:
    """A folder with a console in it."""
    for name, content in CONSOLE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """One host for all tests that need no stack."""
    place = StateFolder(tmp_path_factory.mktemp("host") / "state")
    console = build_console(tmp_path_factory.mktemp("console"))
    with cloud.listen(None) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        cloud.start(place, listener, tied=True, console=console)
    try:
        cloud.wait_until_healthy(place, url)
        host = Host(url, place)
        host.role("any", ANYTHING)
        yield host
    finally:
        cloud.down(quiet, place)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[StateFolder]:
    """A folder for a local cloud, which is down afterwards whatever a test does."""
    place = StateFolder(tmp_path / "state")
    try:
        yield place
    finally:
        cloud.down(quiet, place)


@pytest.fixture
def up(place: StateFolder) -> Running:
    """A whole local cloud of a test's own."""
    return cloud.up(report=quiet, place=place, tied=True)


@pytest.fixture
def account(host: Host, monkeypatch: pytest.MonkeyPatch) -> Account:
    """The host's account, prepared for deployments."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", host.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", host.place.key())
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "local")
    for name in ("AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    found = Account(region="us-east-1")
    found.client("s3").create_bucket(Bucket=BUCKET)
    return found
