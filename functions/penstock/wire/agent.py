"""The JSON that agents send. What they get is described in docs/internals/agent.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from penstock.wire import Bound

BROKEN = 500
"""How many characters say what is wrong with a machine."""


@dataclass(frozen=True)
class AgentHello:
    """An agent's first call for a job: its worker, its bootstrap key, and the token that it chose for itself.

    After a job, `previous` is the token that it had for it, and `cleaned` says what was checked; or `broken`, why the
    machine cannot be cleaned. `document` and `signature` are what the machine can show of itself, where its factory
    asks for that. `copies` are artifacts of which it has the bytes, at most 64.
    """

    worker: Annotated[str, Bound(most=64)]
    key: Annotated[str, Bound(most=128)]
    token: Annotated[str, Bound(most=128)]
    host: Annotated[str, Bound(most=255)] = ""
    pid: int = 0
    version: Annotated[str, Bound(most=64)] = ""
    previous: Annotated[str, Bound(most=128)] = ""
    cleaned: Annotated[str, Bound(most=300)] = ""
    document: Annotated[str, Bound(most=8192)] = ""
    signature: Annotated[str, Bound(most=2048)] = ""
    broken: Annotated[str, Bound(most=BROKEN)] = ""
    copies: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class AgentLine:
    """One line that a job said. `task` counts from 0."""

    time: Annotated[str, Bound(most=40)]
    stream: Annotated[str, Bound(most=64)]
    payload: str
    task: int | None = None


@dataclass(frozen=True)
class AgentEvents:
    """Lines in order; the first has the agent's own number `first`, counted from 1."""

    first: Annotated[int, Bound(least=1, most=10**9)]
    events: list[AgentLine]


@dataclass(frozen=True)
class AgentGetValue:
    """The name of a value that the job asks its store for."""

    name: Annotated[str, Bound(most=64)]


@dataclass(frozen=True)
class AgentPutValue:
    """A value that the job puts into its store."""

    name: Annotated[str, Bound(most=64)]
    value: str
    secret: bool = False


@dataclass(frozen=True)
class AgentFindCache:
    """Which cache the job wants restored. `paths` are as the job knows them; docs/users/caches.md: what is found."""

    name: Annotated[str, Bound(most=128)]
    paths: list[str]
    key: Annotated[str, Bound(most=512)] = ""
    restore_keys: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class AgentSaveCache:
    """An archive to be kept under a key: its size in bytes, its SHA-256 in hex; `composite`, if it is in parts."""

    name: Annotated[str, Bound(most=128)]
    paths: list[str]
    size: int
    sha256: Annotated[str, Bound(most=64)]
    key: Annotated[str, Bound(most=512)] = ""
    composite: Annotated[str, Bound(most=64)] = ""


@dataclass(frozen=True)
class AgentCommitCache:
    """An archive whose bytes were sent."""

    id: Annotated[str, Bound(most=64)]
    name: Annotated[str, Bound(most=128)]
    paths: list[str]
    key: Annotated[str, Bound(most=512)] = ""


@dataclass(frozen=True)
class AgentIdentity:
    """Whom an identity token is to be for."""

    audience: Annotated[str, Bound(most=255)]


@dataclass(frozen=True)
class AgentFile:
    """A file to be sent: its path in the job, its size in bytes, its SHA-256 in hex; `composite`, if it is in parts."""

    path: Annotated[str, Bound(most=1024)]
    size: int
    sha256: Annotated[str, Bound(most=64)]
    composite: Annotated[str, Bound(most=64)] = ""


@dataclass(frozen=True)
class AgentOutputs:
    """Files that the agent asks leave to send."""

    files: list[AgentFile]


@dataclass(frozen=True)
class AgentParts:
    """Parts of a file that are to be sent: the number of the first, from 1 on, and the SHA-256 of each, in hex."""

    id: Annotated[str, Bound(most=64)]
    first: Annotated[int, Bound(most=10_000, least=1)]
    sha256: list[str]


@dataclass(frozen=True)
class AgentCommit:
    """Outputs whose bytes were sent."""

    ids: list[str]


@dataclass(frozen=True)
class AgentInputs:
    """Which page of the job's inputs the agent asks for: the first, or the one that a page before called `next`."""

    after: Annotated[str, Bound(most=64)] = ""


@dataclass(frozen=True)
class AgentFailure:
    """Why a job did not succeed: a kind of docs/users/failures.md, the evidence for it, and the last lines of its task.

    What is not known is left out, and what is too long is cut.
    """

    kind: Annotated[str, Bound(most=64)]
    evidence: dict[str, Any] = field(default_factory=dict)
    task: int | None = None
    task_name: str = ""
    lines: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class AgentFinish:
    """How the script ended, and why, if it did not succeed.

    `broken` says what is wrong with the machine, whatever became of the script.

    The result `broken` is for a machine that was found so before the script began, `unprepared` for inputs that could
    not be had.
    """

    result: Literal["succeeded", "failed", "cancelled", "timed_out", "broken", "unprepared"]
    exit_code: int | None = None
    signal: int | None = None
    task: int | None = None
    reason: Annotated[str, Bound(most=2000)] | None = None
    broken: Annotated[str, Bound(most=BROKEN)] | None = None
    failure: AgentFailure | None = None


@dataclass(frozen=True)
class AgentHost:
    """What a host's agent says when it asks for its next step. docs/operators/hosts.md tells what it is answered.

    `session` is what this agent is known by, `stage` how far it is with `worker`; `cleaned` says what was checked,
    `trouble` why it cannot get clean.
    """

    session: Annotated[str, Bound(most=128)]
    machine: Annotated[str, Bound(most=255)] = ""
    version: Annotated[str, Bound(most=64)] = ""
    worker: Annotated[str, Bound(most=64)] = ""
    stage: Literal["working", "ended", "clean"] = "working"
    cleaned: Annotated[str, Bound(most=300)] = ""
    trouble: Annotated[str, Bound(most=300)] = ""
    leaving: bool = False
