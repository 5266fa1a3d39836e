"""Files that a job sends."""

from __future__ import annotations

from penstock.domain.commands import AgentFile


def files(count: int = 1, first: int = 0) -> list[AgentFile]:
    return [AgentFile(f"/work/{number}", size=1, sha256="0" * 64) for number in range(first, first + count)]
