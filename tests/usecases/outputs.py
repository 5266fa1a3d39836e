"""Files that a job sends."""

from __future__ import annotations

import hashlib

from penstock.domain.commands import AgentFile
from penstock.testing.twin import Twin
from penstock.usecases.artifacts import outputs
from penstock.usecases.workers import agents
from tests.usecases.steps import TOKEN

X_SHA256 = hashlib.sha256(b"x").hexdigest()
"""The digest of the one byte that such a file has."""


def files(count: int = 1, first: int = 0) -> list[AgentFile]:
    return [AgentFile(f"/work/{number}", size=1, sha256=X_SHA256) for number in range(first, first + count)]


def keep(twin: Twin, job: str) -> None:
    """The agent of a running job keeps a file."""
    caller = agents.authenticate(twin.on, job, TOKEN)
    file = AgentFile("/work/app", size=1, sha256=hashlib.sha256(b"x").hexdigest())
    (upload,) = outputs.begin(twin.on, caller.job, [file]).uploads
    twin.objects.store(f"artifacts/{upload.id}", b"x")
    outputs.commit(twin.on, caller.job, [upload.id])
