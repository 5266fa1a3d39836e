"""What callers ask for: the requests that use cases take, each declared once.

The HTTP API reads request bodies straight into these classes, and describes them in the OpenAPI document. Each field
says what it is; `Bound` says how long or how large it may be.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Any, Literal

from penstock.domain.jobs.tasks import NewTask
from penstock.kernel import limits
from penstock.kernel.frozen import dataclass
from penstock.kernel.limits import Bound

MACHINE_CHARS = 500
"""How many characters may say what is wrong with a machine."""


@dataclass(frozen=True)
class SubmitJob:
    """A job to run: a job file, or tasks. Values given here win over those in the header of the job file."""

    script: Annotated[
        str | None,
        "The whole job file: the `#!` line, the header of `#:` lines, and the script. Required without `tasks`.",
    ] = None
    path: Annotated[str, Bound(most=1024), "The file's path, as error messages name it."] = "job.sh"
    name: Annotated[str | None, "The job's name. By default the file's, or its name."] = None
    target: Annotated[str | None, "The target to run on. By default the file's, or `default`."] = None
    host: Annotated[
        dict[str, str] | None,
        'Which of the target\'s hosts to run on: `{"labels": EXPRESSION}` or `{"thing": NAME}`. By default any.',
    ] = None
    image: Annotated[
        str | None, "The image of the worker's container, by its digest, where the target lets jobs name one."
    ] = None
    services: Annotated[
        dict[str, dict[str, Any]] | None,
        'Containers beside the worker, by name: `{"image": IMAGE, "env": {}, "ready": COMMAND}`. Replaces the file\'s.',
    ] = None
    machine: Annotated[
        dict[str, Any] | None,
        'What it needs of its machine, such as `{"cpus": 4, "memory": "16GiB"}`. Replaces the file\'s.',
    ] = None
    resources: Annotated[
        list[str] | dict[str, dict[str, Any]] | None,
        "Resource types to acquire, or a table of type and options by name. Replaces the file's.",
    ] = None
    output_rules: Annotated[list[str], "More rules for which files to keep as outputs."] = field(default_factory=list)
    tags: Annotated[dict[str, str], "Tags, by name."] = field(default_factory=dict)
    env: Annotated[dict[str, str], "Environment variables of the script, by name."] = field(default_factory=dict)
    priority: Annotated[
        int | None, "From -100 to 100: the higher, the earlier. Above 0 it needs the privilege `priority`."
    ] = None
    timeout: Annotated[int | str | None, 'How long the script may run: in seconds, or as text like "30m".'] = None
    max_wait: Annotated[
        int | str | None, "How long it may wait for what it asks for: in seconds, or as text. At most the site's bound."
    ] = None
    retries: Annotated[int | None, "How many more attempts follow an attempt that lost its machine."] = None
    hold_on_failure: Annotated[
        int | str | None, "How long to hold what the job had when its script fails: in seconds, or as text."
    ] = None
    inputs: Annotated[
        list[str] | None, "Names of files below /input that you upload after submitting. The job waits for them."
    ] = None
    dependencies: Annotated[
        dict[str, Any] | None,
        'Jobs to wait for, by the name of their folder below /input: `{"job": ID, "on": "success", '
        '"copy_outputs": true}`.',
    ] = None
    matrix: Annotated[
        dict[str, str] | None, "For a file with a matrix, the combination to run: a value for each axis."
    ] = None
    owner: Annotated[str | None, Bound(most=200), "The repository that owns the job, if that is not the caller."] = None
    without: Annotated[list[str] | None, "Names of the file's dependencies that the job does not wait for."] = None
    tasks: Annotated[list[NewTask], "Instead of a job file, scripts that run in order until one fails: at most 64."] = (
        field(default_factory=list)
    )
    cache_scope: Annotated[
        str | None,
        Bound(most=limits.CACHE_SCOPE_CHARS),
        "The branch whose caches the job adds to. Only the front end for GitHub may set it.",
    ] = None


@dataclass(frozen=True)
class AcquireLease:
    """A lease without a job: its owner gets the resources, and uses them from wherever they like."""

    resources: Annotated[
        list[str] | dict[str, dict[str, Any]],
        "Resource types to lease, or a table of type and options by name: all of them, one after the other.",
    ]
    for_: Annotated[
        int | str | None,
        'How long to have them: in seconds, or as text like "30m". By default as long as a job may run.',
    ] = None
    max_wait: Annotated[
        int | str | None, "How long to wait for them: in seconds, or as text. By default as long as a job may wait."
    ] = None
    name: Annotated[str | None, "Its name, for those who wait for what it has. By default `lease`."] = None
    priority: Annotated[
        int | None, "From -100 to 100: the higher, the earlier. Above 0 it needs the privilege `priority`."
    ] = None
    tags: Annotated[dict[str, str], "Tags, by name."] = field(default_factory=dict)
    owner: Annotated[str | None, Bound(most=200), "The repository that owns it, if that is not the caller."] = None


@dataclass(frozen=True, kw_only=True)
class NewFile:
    """A file to upload."""

    size: Annotated[int, Bound(most=10**15), "Its size in bytes."]
    sha256: Annotated[str, Bound(most=64), "Its SHA-256 in hex."]
    composite: Annotated[
        str,
        Bound(most=64),
        "For an upload in parts: the SHA-256, in hex, of the joined binary SHA-256 digests of all parts.",
    ] = ""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Parts of a file to upload."""

    first: Annotated[int, Bound(most=10_000, least=1), "The number of the first part. Parts count from 1."]
    sha256: Annotated[list[str], "The SHA-256 of each part in hex, in order; at most 100."]


@dataclass(frozen=True)
class NewInput(NewFile):
    """A file to upload with a job."""

    name: Annotated[str, Bound(most=128), "The file's name below /input, one of the job's `inputs`."]


@dataclass(frozen=True)
class InputParts(Parts):
    """Parts of an input to upload."""

    name: Annotated[str, Bound(most=128), "The input's name."]


@dataclass(frozen=True)
class Hello:
    """An agent's first call for a job.

    An agent whose worker had a job before shows the token of that job, and what it cleaned. A machine that cannot be
    cleaned is reported as `broken`.
    """

    worker: Annotated[str, Bound(most=64), "The worker's id."]
    key: Annotated[str, Bound(most=128), "The worker's bootstrap key; empty if `previous` is given."]
    token: Annotated[str, Bound(most=128), "The token that the agent chose, and will show with later calls."]
    host: Annotated[str, Bound(most=255), "The machine's host name."] = ""
    previous: Annotated[str, Bound(most=128), "The token of the worker's job before this one."] = ""
    cleaned: Annotated[str, Bound(most=300), "What was checked when the machine was cleaned after that job."] = ""
    version: Annotated[str, Bound(most=64), "The agent's version."] = ""
    document: Annotated[str, Bound(most=8192), "The machine's identity document, where its factory requires one."] = ""
    signature: Annotated[str, Bound(most=2048), "The signature of that document."] = ""
    broken: Annotated[str, Bound(most=MACHINE_CHARS), "Why the machine cannot be cleaned."] = ""
    copies: Annotated[list[str], "Ids of artifacts whose bytes the machine has; at most 64."] = field(
        default_factory=list
    )
    pid: Annotated[int, "The agent's process id."] = 0


@dataclass(frozen=True)
class AgentHost:
    """What a host's agent reports when it asks for its next step."""

    session: Annotated[str, Bound(most=128), "What identifies the agent on this machine, also after a restart."]
    machine: Annotated[str, Bound(most=255), "The machine's host name."] = ""
    worker: Annotated[str, Bound(most=64), "The id of the worker that the host works on."] = ""
    stage: Annotated[
        Literal["working", "ended", "clean"],
        "How far that worker is: its job runs, its job has ended, or the host is clean again.",
    ] = "working"
    cleaned: Annotated[str, Bound(most=300), "What was checked when the host was cleaned."] = ""
    trouble: Annotated[str, Bound(most=300), "Why the host cannot be cleaned."] = ""
    leaving: Annotated[bool, "Whether the agent is about to end."] = False
    part: Annotated[int, Bound(limits.PARTS), "Which part of a host that jobs share asks, from 1; 0: the host."] = 0
    version: Annotated[str, Bound(most=64), "The agent's version."] = ""


@dataclass(frozen=True)
class AgentLine:
    """One line of a job's log."""

    time: Annotated[str, Bound(most=40), "When it was written, as RFC 3339."]
    stream: Annotated[str, Bound(most=64), "Where it was written: `stdout`, `stderr`, `control`, or a process's."]
    payload: Annotated[str, "The line."]
    task: Annotated[int | None, "The number of the task that wrote it. Tasks count from 0."] = None


@dataclass(frozen=True)
class AgentFile(NewFile):
    """An output to upload."""

    path: Annotated[str, Bound(most=1024), "The file's path in the job."]


@dataclass(frozen=True)
class AgentParts(Parts):
    """Parts of an output, or of an archive for a cache, to upload."""

    id: Annotated[str, Bound(most=64), "The id of the file's upload."]


@dataclass(frozen=True)
class CacheName:
    """Which entry of which cache a job means."""

    name: Annotated[str, Bound(most=128), "The cache's name."]
    paths: Annotated[list[str], "The cached paths, as the job file has them."]
    key: Annotated[str, Bound(most=512), "The entry's key."] = ""


@dataclass(frozen=True)
class FindCache(CacheName):
    """An entry to restore."""

    restore_keys: Annotated[list[str], "Prefixes of keys to accept, in order, if there is no entry of that key."] = (
        field(default_factory=list)
    )


@dataclass(frozen=True)
class SaveCache(CacheName, NewFile):
    """An archive to upload as a new entry."""


@dataclass(frozen=True, kw_only=True)
class CommitCache(CacheName):
    """An entry whose archive was uploaded."""

    id: Annotated[str, Bound(most=64), "The id of the archive's upload."]
