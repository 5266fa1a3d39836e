"""What the agent is told to do: the answer to hello."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .log import now
from .rules import Rule


@dataclass(frozen=True)
class Task:
    """One script of the job.

    One before the job's own has a `kind`, which the job's failure is of when it fails; `trouble` says that in words,
    `about` is evidence. It may take so many `seconds`, and is `as_root` where it makes the job's user.
    """

    index: int
    name: str
    script: str
    env: dict[str, str]
    env_clear: bool
    workdir: str
    seconds: float | None = None
    kind: str = ""
    trouble: str = ""
    about: dict[str, Any] = field(default_factory=dict)
    as_root: bool = False

    @classmethod
    def read(cls, index: int, told: dict[str, Any]) -> Task:
        env, clear, workdir = told.get("env") or {}, bool(told.get("env_clear")), told.get("workdir") or "/work"
        return cls(index, told["name"], told["script"], env, clear, workdir)

    def __str__(self) -> str:
        return f'task {self.index} "{self.name}"'


@dataclass(frozen=True)
class Order:
    """The job, and when it was told. Durations are in seconds. Whatever has no field here is looked up in `reply`."""

    reply: dict[str, Any] = field(repr=False)
    job: str
    tasks: list[Task]
    rules: list[Rule]
    env: dict[str, str] = field(repr=False)
    timeout: float
    heartbeat: float
    limits: dict[str, int]
    posts: list[dict[str, str]] = field(default_factory=list)
    reuse: bool = False
    health: dict[str, Any] = field(default_factory=dict, repr=False)
    told: float = field(default_factory=now)

    @classmethod
    def read(cls, reply: dict[str, Any]) -> Order:
        return cls(
            reply=reply,
            job=reply["job"],
            tasks=[Task.read(index, told) for index, told in enumerate(reply["tasks"])],
            rules=[Rule.parse(text) for text in reply["output_rules"]],
            env=reply.get("env") or {},
            timeout=float(reply["timeout_seconds"]),
            heartbeat=float(reply["heartbeat_seconds"]),
            limits=reply["limits"],
            posts=[dict(told) for told in reply.get("posts") or []],
            reuse=bool(reply.get("reuse")),
            health=reply.get("health") or {},
        )
