"""Files that a job sends."""

from __future__ import annotations

import hashlib

from penstock.domain.commands import AgentFile

X_SHA256 = hashlib.sha256(b"x").hexdigest()
"""The digest of the one byte that such a file has."""


def files(count: int = 1, first: int = 0) -> list[AgentFile]:
    return [AgentFile(f"/work/{number}", size=1, sha256=X_SHA256) for number in range(first, first + count)]
