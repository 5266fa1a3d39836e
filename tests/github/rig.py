"""Penstock in memory, with GitHub on a port: the whole front end, from a signed webhook to check runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa

from penstock.aws.github import GitHub
from penstock.aws.kms import KmsAppKey
from penstock.domain.github.checks import CheckRun
from penstock.domain.github.commits import CheckSet, set_key
from penstock.domain.github.deliveries import Delivery, delivery_key
from penstock.domain.jobs.jobs import Job, Result
from penstock.domain.users.users import User
from penstock.testing.twin import ManualClock, MemoryVault, Twin
from penstock.usecases import sweep
from penstock.usecases.github import steps, webhook
from penstock.usecases.github.webhook import WebhookRequest
from penstock.usecases.site import apply
from penstock.usecases.users import users
from tests.github.fake import APP, CLIENT_SECRET, FakeGitHub, Repo, signature
from tests.usecases.steps import finish, hello, job_of

SECRET = "it is a secret to everybody"
A, B, C = "a" * 40, "b" * 40, "c" * 40
CONFIG = ".github/buildomat/config.toml"
JOBS = ".github/buildomat/jobs"
SITE = """
[factories.hand]
driver = "hand"
[targets.linux]
factory = "hand"
limit = 4
[targets.default]
redirect = "linux"
[targets.lab]
factory = "hand"
privilege = "target.lab"
[github]
app = {app}
api = "{url}"
repositories = ["oxide/*"]
"""


def job(name: str, *after: str, more: str = "") -> bytes:
    """A job file."""
    waits = "".join(f'#: [dependencies.{each}]\n#: job = "{each}"\n' for each in after)
    return f'#!/bin/bash\n#: name = "{name}"\n#: variety = "basic"\n{more}{waits}\necho {name}\n'.encode()


class InMemory(GitHub):
    """The real thing, but for its queue, which is the twin's."""

    def __init__(self, twin: Twin, key: KmsAppKey) -> None:
        super().__init__(None, "", key, lambda: SECRET, twin.world.now, lambda: CLIENT_SECRET)  # type: ignore[arg-type]
        self.twin = twin

    def enqueue(self, message: Mapping[str, Any], after: int = 0) -> None:
        due = self.twin.world.now() + timedelta(seconds=after)
        self.twin.queues.messages.append((due, "github", json.loads(json.dumps(message))))


class Rig:
    """A site with one repository: ada may write to it, and is a member; eve is neither."""

    def __init__(self, key: KmsAppKey, public: rsa.RSAPublicKey) -> None:
        self.twin = Twin()
        self.world: ManualClock = self.twin.world
        self.fake = FakeGitHub(public, self.world.now)
        self.forge = InMemory(self.twin, key)
        self.twin.on = replace(self.twin.on, forge=self.forge, minted=MemoryVault())
        self.on = self.twin.on
        self.sent = 0

    def set_up(self) -> None:
        """Apply a site, and fill the repository."""
        apply.apply(self.on, "root", SITE.format(app=APP, url=self.fake.url), "site.toml")
        self.twin.run()
        self.repo = Repo("oxide/hubris", 55, rights={"ada": "write", "bob": "read"})
        self.fake.repos[55] = self.repo
        self.fake.members.add("mem")
        self.policy("enable = true")
        self.commit(A, build=job("build"), test=job("test", "build"))
        self.user: User = users.create(self.on, "oxide:hubris", [], "root")

    def limit(self, *, jobs: int) -> None:
        """Let each owner have so many unsettled jobs."""
        text = SITE.format(app=APP, url=self.fake.url) + f"[limits]\njobs = {jobs}\n"
        apply.apply(self.on, "root", text, "site.toml")
        self.twin.run()

    def policy(self, text: str) -> None:
        self.repo.files.setdefault("main", {})[CONFIG] = text.encode()

    def commit(self, sha: str, **files: bytes) -> None:
        self.repo.files[sha] = {f"{JOBS}/{name}.sh": body for name, body in files.items()}

    def hook(self, name: str, payload: Any, *, id: str = "", by: str = "", again: bool = False) -> str:
        """A webhook, signed; with `again` what was sent before, to the last byte."""
        self.sent += 1
        if isinstance(payload, dict) and not again:
            payload = {**payload, "sent": self.sent}  # GitHub's payloads have times and counters in them
        body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        self.id = id or f"d-{self.sent}"
        return webhook.receive(self.on, WebhookRequest(body, by or signature(SECRET, body), self.id, name))

    def say(self, name: str, payload: Any) -> str:
        """A webhook, and all that follows; what it led to."""
        self.hook(name, payload)
        self.twin.run()
        return self.delivery(self.id).outcome

    def delivery(self, id: str) -> Delivery:
        found = self.on.store.get(delivery_key(id), Delivery)
        assert found is not None
        return found

    def set(self, sha: str = A) -> CheckSet:
        found = self.on.store.get(set_key(55, sha), CheckSet)
        assert found is not None
        return found

    def checks(self, sha: str = A) -> dict[str, CheckRun]:
        rows = self.on.store.find(set_key(55, sha).pk, "check#", CheckRun)
        return {row.name: row for row in rows}

    def jobs(self, sha: str = A) -> dict[str, Job]:
        return {name: job_of(self.twin, row.job) for name, row in self.checks(sha).items() if row.job}

    def all_jobs(self) -> list[Job]:
        return [row for row in self.twin.store.rows.values() if isinstance(row, Job)]

    def hello(self, id: str) -> None:
        hello(self.twin, id)
        self.twin.run()

    def finish(self, id: str, result: Result = Result.SUCCEEDED) -> None:
        finish(self.twin, id, result)
        self.twin.run()

    def later(self, seconds: float) -> None:
        """Time passes, and the sweep comes."""
        self.twin.pass_time(seconds)
        sweep.sweep(self.on)
        self.twin.run()

    def now(self) -> datetime:
        return self.world.now()

    def step(self, message: dict[str, Any]) -> bool:
        return steps.step(self.on, message)
