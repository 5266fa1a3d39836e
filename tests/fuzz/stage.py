"""A site in which something of every kind exists, on the emulated account: its handlers, its rows, its flows.

Every request begins with the same rows, for most of what is sent to operators would end the site.
"""

from __future__ import annotations

import base64
import copy
import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest
from ministack.services import dynamodb

from penstock.domain.github import commits
from penstock.kernel.rows import Create
from penstock.testing.twin import START
from tests.crash.runtime import Reply, Runtime
from tests.crash.sitefile import PRIVATE
from tests.crash.sweep import Sweep
from tests.functions.stage import ASKS, BODIES, BYTES, DELIVERY, DIGEST, ENVIRONMENT, EVENT, LAB
from tests.fuzz.door import Door

CANARY = '[resources.licence.canary]\nevery = "1d"\nscript = "true"\ntarget = "linux"\n'
IDENTITY = '[identity]\naudiences = ["sts.amazonaws.com"]\n'
SITE = PRIVATE + CANARY + IDENTITY + LAB + ENVIRONMENT
TOKEN = "w" * 43
"""The token of the worker whose job runs."""


class Stage:
    """Everything is made by the requests that make it in life."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._sweep = Sweep(patch)
        self.site, self.root = self._sweep.site, self._sweep.token
        self.site.on = replace(self.site.on, front_key=lambda: "f" * 64)  # as with a cache in front of the API
        self.runtime = Runtime(self.site)
        self.door = Door(self.runtime)
        self.met: Counter[tuple[str, int]] = Counter()
        """How often which operation was answered how."""
        self.user("PUT", "/v1/config", {"toml": SITE})
        self.ada, self.eve = self._known("ada", "resource.bench"), self._known("eve")
        self.login = self.user("POST", "/v1/logins", {"host": "laptop"}).body
        self.big = self.key_of_log = ""
        self.settled = self._settled()
        self.running = self.job(resources=["bench", "licence"])
        self.worker = self.hello(self.running, TOKEN)
        self.output, self.archive = self._kept()
        self.waiting = self.job(resources=["bench"])
        self.given = self.job(inputs=["data"])
        self.reviewed = self.job(script=ASKS)
        self.tested = str(self.user("POST", "/v1/factories/hand/test", BODIES["begin_factory_test"]).body["id"])
        self.site.on.store.commit([Create(DELIVERY), Create(commits.new_set(EVENT, START))])
        self.user("PUT", f"/v1/jobs/{self.running}/store/answer", BODIES["put_value"])
        self.rest()
        self.real = self._real()
        self._first = self._rows = copy.deepcopy(dynamodb._tables["state"]["items"])

    def close(self) -> None:
        """End what is still parked."""
        self._sweep.close()

    def again(self) -> None:
        """Make the rows what they were."""
        items = dynamodb._tables["state"]["items"]
        if items != self._rows:
            items.clear()
            items.update(copy.deepcopy(self._rows))

    def begin(self, before: Callable[[Stage], Any]) -> None:
        """Have something happen first, after which every request begins until the next `begin`."""
        self._rows = self._first
        self.again()
        before(self)
        self.rest()
        self._rows = copy.deepcopy(dynamodb._tables["state"]["items"])

    def rest(self) -> None:
        """Let everything happen that happens by itself."""
        while self.runtime.deliver() or self.runtime.settle():
            pass

    def user(self, method: str, path: str, body: Any = None, token: str = "") -> Reply:
        """A request that must succeed: of the operator, or of whoever a token is of."""
        reply = self.runtime.ask("user", method, path, token or self.root, body)
        assert reply.status < 300, (method, path, reply)
        self.rest()
        return reply

    def job(self, **ask: Any) -> str:
        """A job of Ada's."""
        said = {"script": "#!/bin/sh\ntrue\n", "tags": {"a": "b", "set": "s-1"}, **ask}
        return str(self.user("POST", "/v1/jobs", said, self.ada).body["id"])

    def hello(self, job: str, token: str) -> str:
        """The worker of a job says hello."""
        made = self.site.drivers.hands["factory"].made
        worker, order = next((name, each) for name, each in made.items() if self.site.unit(name).lease.job == job)
        self.key = order.key
        self.user("POST", "/v1/agent/hello", {"worker": worker, "key": self.key, "token": token})
        return worker

    def _real(self) -> dict[str, list[str]]:
        """What there is, by the name of the parameter that it is given as."""
        resources = self.user("GET", "/v1/resources").body["items"]
        return {
            "job": [self.running, self.waiting, self.settled, self.given, self.tested],
            "output": [self.output, self.published],
            "artifact": [self.output, self.published, self.archive],
            "worker": [self.worker],
            "resource": [each["id"] for each in resources],
            "cache": [self.archive],
            "delivery": ["d-1"],
            "set": ["s-1"],
            "segment": ["0"],
            "lease": [self._leased(), self.running],
            "code": [self.login["code"]],
            "token": [each["id"] for each in self.user("GET", "/v1/users/ada/tokens").body["items"]],
            "owner": ["ada"],
            "series": ["nightly"],
            "version": ["v1"],
            "privilege": ["resource.bench", "admin", "target.lab"],
            "host": ["bench-7"],
            "sort": ["target", "resource", "quota"],
            "name": ["linux", "bench", "licence", "hand", "vcpus", "ada", "answer", "x.bin"],
        }

    def _leased(self) -> str:
        return str(self.user("POST", "/v1/leases", {"resources": ["licence"]}, self.ada).body["id"])

    def _known(self, name: str, *privileges: str) -> str:
        self.user("POST", "/v1/users", {"name": name, "privileges": list(privileges)})
        return str(self.user("POST", f"/v1/users/{name}/tokens", {}).body["token"])

    def _settled(self) -> str:
        """A job that is over, and of whose outputs one is published."""
        job = self.job()
        self.hello(job, "v" * 43)
        self.published = self._output(job, "v" * 43)
        self.user("POST", f"/v1/agent/jobs/{job}/finish", {"result": "failed", "exit_code": 1}, "v" * 43)
        self.user("POST", f"/v1/jobs/{job}/outputs/{self.published}/publish", BODIES["publish_output"], self.ada)
        return job

    def _output(self, job: str, token: str) -> str:
        path = f"/v1/agent/jobs/{job}/outputs"
        file = {"path": "/work/x", "size": len(BYTES), "sha256": DIGEST}
        (upload,) = self.user("POST", path, {"files": [file]}, token).body["uploads"]
        self.put(upload["url"])
        self.user("POST", f"{path}/commit", {"ids": [upload["id"]]}, token)
        return str(upload["id"])

    def _kept(self) -> tuple[str, str]:
        """What the job that runs has sent so far: lines, an output, an archive of a cache."""
        path = f"/v1/agent/jobs/{self.running}"
        self.user("POST", f"{path}/events", BODIES["agent_events"], TOKEN)
        told = self.user("POST", f"{path}/caches/save", BODIES["agent_save_cache"], TOKEN).body
        self.put(told["url"])
        ask = {name: BODIES["agent_save_cache"][name] for name in ("name", "paths", "key")}
        self.user("POST", f"{path}/caches/commit", {"id": told["id"], **ask}, TOKEN)
        return self._output(self.running, TOKEN), str(told["id"])

    def put(self, url: str) -> None:
        """Send the bytes of a file to where it belongs."""
        name = urlsplit(url).path.removeprefix("/outputs/")
        digest = base64.b64encode(hashlib.sha256(BYTES).digest()).decode()  # as the signed URL demands
        self.site.clients["s3"].put_object(Bucket="outputs", Key=name, Body=BYTES, ChecksumSHA256=digest)
