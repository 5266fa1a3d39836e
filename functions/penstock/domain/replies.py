"""What use cases reply to agents, and to users who move files: each shape declared once.

The HTTP API sends these classes as they are, and describes them in the OpenAPI document. An optional key is left out
where it has no value, and is never null: agents, also of earlier versions, look whether the key is there.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Any, Literal

from penstock.domain.jobfile.sections import CacheAsk, Post
from penstock.domain.jobs.origins import Origin
from penstock.kernel.frozen import dataclass

COMPOSITE = "If it was sent in parts of 64 MiB: the SHA-256, in hex, of the parts' joined binary SHA-256 digests."
PartBytes = Annotated[int | None, "The bytes of each part but the last. Absent for a file that was sent in one piece."]
HeldSeconds = Annotated[
    int | None, "For how many seconds the agent must leave the machine as it is. Absent unless the machine is held."
]
Bell = Annotated[
    str | None,
    "A URL to GET each second: with the answer 200, there is a job, so call again at once. Absent if none can come.",
]


LeaseSeconds = Annotated[int, "After how many seconds without a call the service takes the agent for lost."]


Copies = Annotated[
    list[str] | None, "Those of the artifacts in `copies` that still exist. Absent if the agent named none."
]


@dataclass(frozen=True)
class Empty:
    """An empty reply: the call succeeded."""


@dataclass(frozen=True)
class Upload:
    """How to upload a file."""

    method: Annotated[str, "The HTTP method; empty if nothing is uploaded to `url`."]
    url: Annotated[str, "The URL; empty for an upload in parts, whose URLs have a call of their own."]
    headers: Annotated[dict[str, str], "The headers to send, by name."]
    part_bytes: Annotated[
        int, "The size of a part in bytes, where the last may be smaller; 0 to upload the file as a whole."
    ]


@dataclass(frozen=True)
class InputUpload(Upload):
    """How to upload an input."""

    there: Annotated[bool, "Whether the service has the file already: then there is nothing to upload."]


@dataclass(frozen=True)
class OutputUpload(Upload):
    """How to upload an output."""

    id: Annotated[str, "The id of the upload, which is also the output's."]
    path: Annotated[str, "The file's path in the job."]


@dataclass(frozen=True)
class OutputUploads:
    """How to upload outputs."""

    uploads: Annotated[list[OutputUpload], "The uploads, in the order of the request."]


@dataclass(frozen=True)
class PartUpload:
    """How to upload a part of a file."""

    number: Annotated[int, "The part's number. Parts count from 1."]
    there: Annotated[bool, "Whether the service has the part already."]
    method: Annotated[str, "The HTTP method; empty if the service has the part."]
    url: Annotated[str, "The URL; empty if the service has the part."]
    headers: Annotated[dict[str, str], "The headers to send, by name."]


@dataclass(frozen=True)
class PartUploads:
    """How to upload parts of a file. You may upload them at the same time."""

    parts: Annotated[list[PartUpload], "The parts, in order."]


@dataclass(frozen=True)
class SignedOutput:
    """A URL to download a file without a token."""

    url: Annotated[str, "The URL."]
    size: Annotated[int, "The file's size in bytes."]
    sha256: Annotated[str | None, "Its SHA-256 in hex. Absent for a file that was sent in parts."]
    composite: Annotated[str | None, COMPOSITE]
    expires_in: Annotated[int, "For how many seconds the URL is valid."]


@dataclass(frozen=True)
class InputDownload:
    """A file to download before the script begins."""

    path: Annotated[str, "Where it goes below /input."]
    size: Annotated[int, "Its size in bytes."]
    sha256: Annotated[str, "Its SHA-256 in hex; empty for a file that was sent in parts."]
    url: Annotated[str, "The URL to download it from."]
    artifact: Annotated[str, "The id of its artifact."]
    composite: Annotated[str | None, COMPOSITE] = None
    part_bytes: PartBytes = None


@dataclass(frozen=True)
class InputDownloads:
    """Some of the files to download before the script begins."""

    inputs: Annotated[list[InputDownload], "The files."]
    next: Annotated[str | None, "The page to ask for next; null on the last page."]


@dataclass(frozen=True)
class CacheHit:
    """An entry of a cache to restore."""

    hit: Annotated[Literal[True], "Always true."] = field(default=True, init=False)
    exact: Annotated[bool, "Whether the entry has the key itself; false if a restore key found it."]
    id: Annotated[str, "The entry's id, which is also its artifact's."]
    key: Annotated[str, "The entry's key."]
    scope: Annotated[str, "The branch that added it; empty for one that every branch may restore."]
    size: Annotated[int, "The archive's size in bytes."]
    sha256: Annotated[str, "The archive's SHA-256 in hex; empty if it was sent in parts."]
    url: Annotated[str, "The URL to download the archive from."]
    composite: Annotated[str | None, COMPOSITE] = None
    part_bytes: PartBytes = None


@dataclass(frozen=True)
class CacheMiss:
    """There is no entry to restore."""

    hit: Annotated[Literal[False], "Always false."] = field(default=False, init=False)


@dataclass(frozen=True)
class CacheUpload(Upload):
    """How to upload an archive for a cache."""

    there: Annotated[Literal[False], "Always false: there is no entry of that key."] = field(default=False, init=False)
    id: Annotated[str, "The id of the upload."]


@dataclass(frozen=True)
class CacheTaken:
    """The entry that has the key already: nothing is uploaded."""

    there: Annotated[Literal[True], "Always true."] = field(default=True, init=False)
    id: Annotated[str, "The entry's id."]
    job: Annotated[str, "The id of the job that saved it."]
    scope: Annotated[str, "The branch that added it; empty for one that every branch may restore."]


@dataclass(frozen=True)
class CacheRefused:
    """Why a job may not save its archive: nothing is uploaded."""

    there: Annotated[Literal[False], "Always false: there is no entry of that key."] = field(default=False, init=False)
    why: Annotated[str, "Why, in a sentence."]


@dataclass(frozen=True)
class CacheSaved:
    """The entry that has the key, after an archive was uploaded."""

    kept: Annotated[
        bool, "Whether the entry is the archive that was uploaded; false if another job saved the key first."
    ]
    id: Annotated[str, "The entry's id."]
    job: Annotated[str, "The id of the job that saved it."]
    scope: Annotated[str, "The branch that added it; empty for one that every branch may restore."]


@dataclass(frozen=True)
class CacheDropped:
    """Why an archive that was uploaded is not kept."""

    kept: Annotated[Literal[False], "Always false."] = field(default=False, init=False)
    why: Annotated[str, "Why, in a sentence."]


@dataclass(frozen=True)
class StoredValue:
    """A value of the job's store."""

    there: Annotated[Literal[True], "Always true."] = field(default=True, init=False)
    value: Annotated[str, "The value."]
    secret: Annotated[bool, "Whether only the job may read it."]


@dataclass(frozen=True)
class NoValue:
    """Nobody has put that value yet."""

    there: Annotated[Literal[False], "Always false."] = field(default=False, init=False)


@dataclass(frozen=True)
class IdentityToken:
    """An identity token of the attempt."""

    token: Annotated[str, "The token, a JWT."]
    expires: Annotated[str, "When it expires, as RFC 3339."]


@dataclass(frozen=True)
class LogFull:
    """The job's log has no room for more output. What was dropped of what the agent sent."""

    lines: Annotated[int, "How many lines."]
    bytes: Annotated[int, "How many bytes these have."]


OPTIONAL = {"is_optional": True}
"""The metadata of a field whose key is left out where it has no value."""


@dataclass(frozen=True, kw_only=True)
class Instructions:
    """What an agent must do, and whether somebody reads the job's log."""

    cancel: Annotated[bool, "Whether to cancel the job."]
    watched: Annotated[bool, "Whether somebody reads the log now, so that lines must be sent at once."]
    held_seconds: HeldSeconds = field(default=None, metadata=OPTIONAL)
    timeout_seconds: Annotated[
        int | None, "How many seconds the tasks may take, from when they began. Absent while that is as it was."
    ] = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, kw_only=True)
class LeaseRenewed(Instructions):
    """The lease is renewed."""

    lease_seconds: LeaseSeconds


@dataclass(frozen=True, kw_only=True)
class LinesReceived(Instructions):
    """The lines are in the log. If the lease had to be renewed soon, it is."""

    lease_seconds: Annotated[
        int | None, "As in the answer to heartbeat, if the call renewed the lease. Absent if it did not."
    ] = field(default=None, metadata=OPTIONAL)
    full: Annotated[LogFull | None, "What was dropped. Absent while the log has room."] = field(
        default=None, metadata=OPTIONAL
    )


@dataclass(frozen=True)
class ResultReceived:
    """The report on how the job ended is recorded."""

    held_seconds: HeldSeconds = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True)
class ResourceAccess:
    """What a job may know of a resource that it holds."""

    type: Annotated[str, "Its resource type, or quota."]
    metadata: Annotated[dict[str, Any], "Its metadata: what its well says about it, by name."]
    public: Annotated[list[str], "The names in `metadata` whose values are no secrets."]
    fresh_seconds: Annotated[
        int | None, "For how many seconds the metadata will not change. Absent if it never changes."
    ] = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True)
class ResourceList:
    """The job's resources as they are now."""

    resources: Annotated[dict[str, ResourceAccess], "The resources, by their names in the job."]


@dataclass(frozen=True)
class AssignedTask:
    """A task to run."""

    name: Annotated[str, "Its name."]
    script: Annotated[str, "Its script."]
    env: Annotated[dict[str, str], "Its own environment variables, by name."]
    env_clear: Annotated[bool, "Whether it gets no other environment variables."]
    workdir: Annotated[str, "The folder in which it starts."]
    uid: Annotated[int | None, "The id of its user, if that is not the job's."] = field(default=None, metadata=OPTIONAL)
    gid: Annotated[int | None, "The id of its group, if that is not its user's."] = field(
        default=None, metadata=OPTIONAL
    )


@dataclass(frozen=True)
class HealthChecks:
    """Scripts that check whether the machine is fit."""

    before: Annotated[str, "The script to run before the tasks; empty for none."]
    after: Annotated[str, "The script to run after the tasks; empty for none."]
    timeout_seconds: Annotated[int, "How many seconds each may take."]


@dataclass(frozen=True)
class AgentLimits:
    """How much the agent may send."""

    output_bytes: Annotated[int, "The bytes of an output."]
    part_bytes: Annotated[int, "The bytes of each part of an upload but the last."]
    cache_bytes: Annotated[int, "The bytes of an archive for a cache."]
    unpacked_bytes: Annotated[int, "The bytes of an unpacked archive."]
    unpacked_entries: Annotated[int, "How many files, folders and links an archive has."]
    unpacked_depth: Annotated[int, "How many folders deep an archive is, counted from the job's root."]
    unpacked_ratio: Annotated[int, "How many times larger than itself an archive is when unpacked."]
    outputs: Annotated[int, "How many outputs a job keeps."]
    line_bytes: Annotated[int, "The bytes of a line of the log."]
    batch_bytes: Annotated[int, "The bytes of the lines that one call sends."]
    batch_events: Annotated[int, "How many lines one call sends."]


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """The job that a worker runs, with all that its agent needs."""

    job: Annotated[str, "The job's id."]
    name: Annotated[str, "The job's name."]
    owner: Annotated[str, "The user or repository that owns the job."]
    attempt: Annotated[int, "The number of the attempt. Attempts count from 1."]
    fence: Annotated[int, "The number of the worker's lease of its slot, which grows with each lease."]
    target: Annotated[str, "The target."]
    worker: Annotated[str, "The worker's id."]
    factory: Annotated[str, "The factory that made the worker."]
    repository: Annotated[Origin | None, "The commit that the job checks; null if it checks none."]
    toolchain: Annotated[str, "The Rust toolchain to install, or the repository's file that names it; empty for none."]
    tasks: Annotated[list[AssignedTask], "The tasks, in order."]
    posts: Annotated[list[Post], "Scripts that run after the tasks."]
    output_rules: Annotated[list[str], "Rules for which files to keep as outputs."]
    resources: Annotated[dict[str, ResourceAccess], "The resources that the job holds, by their names in the job."]
    inputs: Annotated[bool, "Whether there are files to download before the first task."]
    caches: Annotated[list[CacheAsk], "The caches to restore and save."]
    reuse: Annotated[bool, "Whether the machine may run another job after this one."]
    health: Annotated[HealthChecks, "How to check whether the machine is fit."]
    sudo: Annotated[bool, "Whether the job may become root. If not, it must not reach its agent either."]
    env: Annotated[dict[str, str], "The environment variables of all tasks, by name."]
    timeout_seconds: Annotated[int, "How many seconds the tasks may take."]
    grace_seconds: Annotated[int, "How many seconds a task has to end by itself when it is cancelled."]
    heartbeat_seconds: Annotated[int, "After how many seconds to renew the lease."]
    lease_seconds: LeaseSeconds
    deadline: Annotated[str, "When the job's time is over, as RFC 3339."]
    limits: Annotated[AgentLimits, "How much the agent may send."]
    copies: Copies = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, kw_only=True)
class Idle:
    """There is no job for the worker yet."""

    idle: Annotated[Literal[True], "Always true."] = field(default=True, init=False)
    seconds: Annotated[int, "After how many seconds to call again."]
    lease_seconds: LeaseSeconds
    bell: Bell = field(default=None, metadata=OPTIONAL)
    held_seconds: HeldSeconds = field(default=None, metadata=OPTIONAL)
    copies: Copies = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True)
class Container:
    """The container in which a worker runs on a host that jobs share."""

    image: Annotated[str, "Its image."]
    cpus: Annotated[float, "How many cpus it may use."]
    memory: Annotated[int, "How much memory it may use, in MiB."]


@dataclass(frozen=True)
class HostInstruction:
    """What a host's agent does next."""

    do: Annotated[
        Literal["wait", "work", "clean", "forget"],
        "Wait, start `worker`, clean up after `worker`, or forget `worker`, as it is gone.",
    ]
    seconds: Annotated[int, "After how many seconds to call again."]
    lease_seconds: LeaseSeconds
    worker: Annotated[str | None, "The worker's id. Absent if there is none."] = field(default=None, metadata=OPTIONAL)
    key: Annotated[str | None, "The worker's bootstrap key. Absent unless the host starts it."] = field(
        default=None, metadata=OPTIONAL
    )
    bell: Bell = field(default=None, metadata=OPTIONAL)
    held_seconds: HeldSeconds = field(default=None, metadata=OPTIONAL)
    parts: Annotated[int | None, "Into how many parts the host is divided. Absent unless jobs share it."] = field(
        default=None, metadata=OPTIONAL
    )
    busy: Annotated[tuple[int, ...] | None, "The parts that have a worker, each of which asks for itself."] = field(
        default=None, metadata=OPTIONAL
    )
    container: Annotated[Container | None, "Where the worker runs. Absent unless jobs share the host."] = field(
        default=None, metadata=OPTIONAL
    )
