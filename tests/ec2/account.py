"""An emulated account: the functions with all that is around them, EC2 besides, and machines that really boot.

Table, queues and flows are MiniStack's, and handlers are called with what these bring, as in the crash sweep. EC2 is
moto's, which lists page by page and knows tags, user data and volumes. A machine is its user data, run by bash: it
fetches the agent over HTTP, compares it, and runs it.
"""

from __future__ import annotations

import base64
import http.server
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import agent_api
import boto3
import pytest
from ministack import app as ministack
from moto import mock_aws
from moto.ec2.models import ec2_backends

from penstock import agentfile
from penstock.aws import dynamodb
from penstock.domain.units.units import Unit, unit_key
from penstock.drivers import Registry
from penstock.drivers.factories import userdata
from penstock.drivers.factories.aws.tags import SITE
from penstock.drivers.factories.ec2.machines import connect
from penstock.ports import AgentFile, Grant
from penstock.testing.twin import MemoryObjects
from penstock.usecases.users import tokens, users
from tests.crash.runtime import Runtime
from tests.crash.site import REGION, Site
from tests.ec2.fake import ACCOUNT
from tests.ec2.helpers import HERE
from tests.functions.service import Context, request

MINUTE = 61
STORE = "/stored/"
"""Where the gateway also serves the agent's file, as the object store does."""
PATIENCE_SECONDS = 60
"""How long a machine may take. Nothing is asserted about how long it took."""


class Account:
    """The account, on a clock that is moved by hand."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.site = Site(patch)
        self.ec2 = boto3.client("ec2", REGION)
        self.pages: list[str] = []
        connect(REGION).meta.events.register("before-call.ec2.DescribeInstances", self._page)
        self.gateway = Gateway()
        self.site.on = replace(
            self.site.on, drivers=Registry({SITE: HERE}), url=self.gateway.url, agent_file=self.gateway.file
        )
        users.create(self.site.on, "root", ["admin"])
        self.token, _ = tokens.mint_first(self.site.on, "root", "never", "")
        self.runtime = Runtime(self.site)

    def _page(self, params: dict[str, Any], **_: Any) -> None:
        self.pages.append(params["body"].get("NextToken", ""))

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """What an operator asks of the service."""
        reply = self.runtime.ask("root", method, path, self.token, body)
        assert reply.status < 300, reply
        return reply.body

    def rest(self) -> None:
        """Deliver whatever is to be delivered."""
        while self.runtime.deliver() or self.runtime.settle():
            pass

    def wait(self, seconds: int) -> None:
        """Some time passes, and what was put off until then is delivered."""
        self.site.world.time += timedelta(seconds=seconds)
        self.rest()

    def minute(self, seconds: int = MINUTE) -> None:
        """A minute passes, or more, and what the rule does each minute is done."""
        self.site.world.time += timedelta(seconds=seconds)
        self.runtime.sweep()
        self.rest()

    def tell(self, event: dict[str, Any]) -> None:
        """EventBridge sends an event to the factory's queue."""
        self.site.clients["sqs"].send_message(QueueUrl=self.site.urls["factory"], MessageBody=json.dumps(event))
        self.rest()

    def launch(self, worker: str, image: str) -> None:
        """Launch a machine in the factory's name."""
        tags = {"penstock:site": HERE, "penstock:factory": "aws", "penstock:worker": worker}
        given: Any = {"ResourceType": "instance", "Tags": [{"Key": key, "Value": tags[key]} for key in tags]}
        wanted = {"MinCount": 1, "MaxCount": 1, "ImageId": image, "InstanceType": "m7g.large"}
        self.ec2.run_instances(**wanted, TagSpecifications=[given])

    def alive(self) -> dict[str, str]:
        """The machines that there are, by worker. The emulator itself is asked: a list takes seconds."""
        machines = ec2_backends[ACCOUNT][REGION].all_instances()
        there = (each for each in machines if each.state == "running")
        return {tag["value"]: each.id for each in there for tag in each.get_tags() if tag["key"] == "penstock:worker"}

    def unit(self, name: str) -> Unit | None:
        """A unit's row."""
        return self.site.on.store.get(unit_key(name), Unit)

    def boot(self, machine: str, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run a machine's user data to its end, answering what it asks meanwhile."""
        told = self.ec2.describe_instance_attribute(InstanceId=machine, Attribute="userData")
        script = base64.b64decode(told["UserData"]["Value"]).decode()
        script = script.replace(userdata.HOME, str(folder / "opt"))
        script = script.replace('"key":', f'"root": "{folder / "root"}", "key":', 1)
        path, power = folder / "user-data", folder / "bin" / "shutdown"
        power.parent.mkdir()
        for file, text in ((path, script), (power, '#!/bin/sh\necho "$@" >> "$POWER"\n')):
            file.write_text(text)
            file.chmod(0o700)
        environment = {"PATH": f"{power.parent}:{os.environ['PATH']}", "POWER": str(folder / "power")}
        with (folder / "console").open("wb") as console:
            running = subprocess.Popen([path], env=environment, stdout=console, stderr=console, start_new_session=True)
            for _ in range(PATIENCE_SECONDS * 10):
                if running.poll() is not None:
                    break
                self.gateway.handle_request()
                self.rest()
            else:
                os.killpg(running.pid, 9)
        return subprocess.CompletedProcess([], running.wait(), (folder / "console").read_text(), "")


class Stored(MemoryObjects):
    """Objects that a server serves."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url

    def download(self, name: str, seconds: int, filename: str) -> Grant:
        return Grant("GET", f"{self.url}{STORE}{name}")


class Gateway(http.server.HTTPServer):
    """What machines dial. It answers one request at a time, when it is told to, for the account has one thread."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.timeout = 0.1
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.file = AgentFile(Stored(self.url), f"{agentfile.digest()}.pyz")
        self.asked: list[str] = []


class _Request(http.server.BaseHTTPRequestHandler):
    server: Gateway

    def do_GET(self) -> None:
        if self.path.startswith(STORE):
            self._send(200, {}, agentfile.build() if self.path == f"{STORE}{agentfile.digest()}.pyz" else b"")
            return
        size = int(self.headers.get("content-length") or 0)
        event = request(self.command, self.path, self.rfile.read(size) or None, dict(self.headers), ())
        given = agent_api.handler(event, Context())  # type: ignore[arg-type]
        self.server.asked.append(f"{self.command} {self.path} {given['statusCode']}")
        text = given.get("body") or ""
        body = base64.b64decode(text) if given.get("isBase64Encoded") else text.encode()
        self._send(given["statusCode"], given.get("headers") or {}, body)

    def _send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, format: str, *given: object) -> None:
        del format, given


@contextmanager
def account(patch: pytest.MonkeyPatch) -> Iterator[Account]:
    """An account of its own, of which nothing is left."""
    ministack._reset_all_state()
    connect.cache_clear()
    patch.setenv("AWS_ENDPOINT_URL_EC2", f"https://ec2.{REGION}.amazonaws.com")
    with mock_aws(config={"core": {"mock_credentials": False}}):
        made = Account(patch)
        try:
            yield made
        finally:
            made.gateway.server_close()
            made.site.flows.forget()
            ministack._reset_all_state()
            connect.cache_clear()
            dynamodb.model.cache_clear()
