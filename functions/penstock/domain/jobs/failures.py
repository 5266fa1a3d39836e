"""Why a job did not succeed: a kind from a closed set, with evidence. docs/users/failures.md is generated from it.

A job's `reason` tells people what happened; its failure tells programs, with what there is to show for it. An agent's
report comes from the job's own machine, so it is reduced to known keys and bounded sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from typing import Any

from penstock.kernel.frozen import dataclass

MAX_LINES = 20
LINE_CHARS = 400


TEXT_CHARS = 1000
"""How many last lines are kept, and how many characters of a line and of a text of the evidence."""

CUT = "…"


class Kind(StrEnum):
    """Why a job did not succeed."""

    EXITED = "exited"
    KILLED = "killed"
    OUT_OF_MEMORY = "out_of_memory"
    DISK_FULL = "disk_full"
    NOT_STARTED = "not_started"
    TIMED_OUT = "timed_out"
    OUTPUT_MISSING = "output_missing"
    OUTPUT_TOO_LARGE = "output_too_large"
    TOO_MANY_OUTPUTS = "too_many_outputs"
    OUTPUT_NOT_KEPT = "output_not_kept"
    INPUT_TRUNCATED = "input_truncated"
    INPUT_FAILED = "input_failed"
    AUTHENTICATION_FAILED = "authentication_failed"
    CLONE_FAILED = "clone_failed"
    TOOLCHAIN_FAILED = "toolchain_failed"
    MACHINE_BROKEN = "machine_broken"
    CANCELLED = "cancelled"
    WORKER_LOST = "worker_lost"
    RESOURCE_LOST = "resource_lost"
    UNSATISFIABLE = "unsatisfiable"
    QUEUE_EXPIRED = "queue_expired"
    DEPENDENCY_FAILED = "dependency_failed"
    NOT_ALLOWED = "not_allowed"
    SERVICE_FAILED = "service_failed"


@dataclass(frozen=True)
class Failure:
    """Why a job did not succeed. `task` and `task_name`: the task that ended the job. `lines`: the last lines of its
    output, or of its machine's console if `is_console`; secrets are masked. [SEC-1]
    """

    kind: Kind
    evidence: Mapping[str, Any] = field(default_factory=dict)
    task: int | None = None
    task_name: str = ""
    lines: tuple[str, ...] = ()
    is_console: bool = False


@dataclass(frozen=True)
class Meaning:
    """What a kind means, what to do, and which evidence it may have. `is_told`: an agent may report it."""

    what: str
    advice: str
    evidence: tuple[str, ...]
    is_told: bool = False


EVIDENCE: Mapping[str, tuple[type, str]] = {
    "exit_code": (int, "the exit code of the task"),
    "signal": (int, "the number of the signal that ended the task"),
    "signal_name": (str, "its name, such as `SIGSEGV`"),
    "perhaps": (str, "a likely cause, of which there is no proof"),
    "oom_kills": (int, "how many processes the kernel killed while the task ran, because memory ran out"),
    "memory_limit_bytes": (int, "how much memory the job's control group may have"),
    "source": (str, "where the evidence is from"),
    "path": (str, "the file or folder, as the job knows it"),
    "repository": (str, "the repository that the job comes from, as `owner/name`"),
    "commit": (str, "the SHA of the job's commit"),
    "toolchain": (str, "the Rust channel, or the file that should name it"),
    "free_bytes": (int, "the free space on its disk when the task had ended"),
    "total_bytes": (int, "the size of that disk"),
    "free_files": (int, "how many more files it could hold"),
    "error": (str, "the error message of the system, the driver, the storage or the service"),
    "bound": (str, "the limit that was exceeded"),
    "bound_seconds": (int, "that limit"),
    "ended": (str, "how the job was ended"),
    "rule": (str, "the output rule, as it was written"),
    "size_bytes": (int, "the size of the file"),
    "limit_bytes": (int, "the largest size that is allowed"),
    "files": (int, "how many files the output rules match"),
    "limit_files": (int, "how many outputs a job may have"),
    "found_bytes": (int, "how many bytes arrived"),
    "cancelled_by": (str, "who cancelled the job"),
    "worker": (str, "the id of the worker"),
    "lost_by": (str, "`no_hello`, `silent`, `vanished`, `recycled`, `overdue` or `flow`: see below"),
    "last_heard": (str, "when its agent last contacted the service, RFC 3339 in UTC"),
    "notice": (str, "the notice that the machine would be taken away, such as a cloud's notice to a spot machine"),
    "resource": (str, "the id of the resource"),
    "type": (str, "its type"),
    "waited_for": (str, "the pools that it was still waiting for"),
}
"""Every key of the evidence: its type and meaning."""

_ENDED = ("exit_code", "signal", "signal_name")


_BEFORE = ("error", "exit_code", "bound", "bound_seconds")


_LOST = ("worker", "lost_by", "last_heard", "notice", "error")


_AGAIN = (
    "nothing is wrong with the job: submit it again (`penstock job retry`), with more `retries` if it happens often"
)


_OURS = "report it to the operators of the site, then submit the job again: `penstock job retry`"

MEANINGS: Mapping[Kind, Meaning] = {
    Kind.EXITED: Meaning(
        "a task exited with a code other than 0",
        "read the last lines, which the script printed",
        ("exit_code", "perhaps"),
        is_told=True,
    ),
    Kind.KILLED: Meaning(
        "a signal that Penstock did not send ended a task",
        "SIGSEGV, SIGBUS and SIGABRT are faults of the program; SIGKILL may mean that memory ran out",
        ("signal", "signal_name", "perhaps"),
        is_told=True,
    ),
    Kind.OUT_OF_MEMORY: Meaning(
        "memory ran out: the kernel killed a process of a task and recorded it",
        "use less memory (fewer parallel jobs), or a target with more memory",
        ("oom_kills", "source", "memory_limit_bytes", *_ENDED),
        is_told=True,
    ),
    Kind.DISK_FULL: Meaning(
        "a disk of the machine was full when a task failed, or a task reported that, or the inputs did not fit on it",
        "keep fewer files, or use a target with a larger disk",
        ("path", "free_bytes", "total_bytes", "free_files", "source", "error", *_ENDED),
        is_told=True,
    ),
    Kind.NOT_STARTED: Meaning(
        "a task could not be started at all", "check its `workdir` and its environment", ("error",), is_told=True
    ),
    Kind.TIMED_OUT: Meaning(
        "the job ran longer than its timeout",
        "see from the last lines what it was doing, or set a longer `timeout`",
        ("bound", "bound_seconds", "ended", *_ENDED),
        is_told=True,
    ),
    Kind.OUTPUT_MISSING: Meaning(
        "no file was uploaded for an output rule that requires one (`=`)",
        "compare the path that the script writes to with the path of the rule",
        ("rule",),
        is_told=True,
    ),
    Kind.OUTPUT_TOO_LARGE: Meaning(
        "an output is larger than the site allows",
        "split or compress it; operators set the limit (docs/operators/site.md)",
        ("path", "size_bytes", "limit_bytes"),
        is_told=True,
    ),
    Kind.TOO_MANY_OUTPUTS: Meaning(
        "the output rules match more files than a job may keep",
        "pack the files into one, or write narrower rules",
        ("files", "limit_files"),
        is_told=True,
    ),
    Kind.OUTPUT_NOT_KEPT: Meaning(
        "an output could not be kept: it changed or disappeared during the upload, or is not readable",
        "end everything that writes the file before the script ends; a rule with `%` allows changes",
        ("path", "error"),
        is_told=True,
    ),
    Kind.INPUT_TRUNCATED: Meaning(
        "every download of an input had fewer bytes than the stored file",
        _OURS,
        ("path", "size_bytes", "found_bytes", "error"),
        is_told=True,
    ),
    Kind.INPUT_FAILED: Meaning(
        "an input could not be downloaded, or differs from the stored file", _OURS, ("path", "error"), is_told=True
    ),
    Kind.AUTHENTICATION_FAILED: Meaning(
        "the job could not get the token for its repository, not even on the last attempt",
        "check that the GitHub App is still installed there, then re-run the check",
        ("repository", *_BEFORE),
        is_told=True,
    ),
    Kind.CLONE_FAILED: Meaning(
        "the repository could not be cloned at the job's commit",
        "read git's error message; if the network was at fault, re-run the check",
        ("repository", "commit", *_BEFORE),
        is_told=True,
    ),
    Kind.TOOLCHAIN_FAILED: Meaning(
        "the Rust toolchain of the job could not be installed",
        "check `rust_toolchain` in the job file and the repository's rust-toolchain.toml",
        ("toolchain", *_BEFORE),
        is_told=True,
    ),
    Kind.MACHINE_BROKEN: Meaning(
        "the machine failed its check before the script started, also on the last attempt", _OURS, ("worker", "error"),
        is_told=True,
    ),
    Kind.CANCELLED: Meaning(
        "somebody cancelled the job", "ask that user, or submit the job again: `penstock job retry`", ("cancelled_by",)
    ),
    Kind.WORKER_LOST: Meaning("the worker was lost during the job, also on the last attempt", _AGAIN, _LOST),
    Kind.RESOURCE_LOST: Meaning(
        "a resource of the job was lost or taken away, also on the last attempt", _AGAIN, ("resource", "type", *_LOST)
    ),
    Kind.UNSATISFIABLE: Meaning(
        "the site can never provide what the job asks for", "ask for what exists: `penstock target list`", ("error",)
    ),
    Kind.QUEUE_EXPIRED: Meaning(
        "the job did not get everything it asked for before the queue deadline",
        "see who holds it with `penstock pool show`; submit the job at a quieter time, or with a higher `priority`",
        ("bound", "bound_seconds", "waited_for", "error"),
    ),
    Kind.DEPENDENCY_FAILED: Meaning(
        "a job that it depends on did not end as required, or a file or an approval that it waited for did not come",
        "fix that job first, send the file, or ask a reviewer to approve the job",
        ("error",),
    ),
    Kind.NOT_ALLOWED: Meaning(
        "its owner lost the privilege for what the job waited for, or a reviewer refused the job",
        "ask an operator for the privilege, or the reviewer why",
        ("error",),
    ),
    Kind.SERVICE_FAILED: Meaning("the service itself failed", _OURS, ("error",)),
}  # fmt: skip
"""The one table of kinds."""

assert set(MEANINGS) == set(Kind)


def failure(kind: Kind, evidence: Mapping[str, Any]) -> Failure:
    """A failure with the evidence that its kind may have, cut to size. Values of the wrong type are left out."""
    wanted = MEANINGS[kind].evidence
    kept = {name: _cut(value) for name, value in evidence.items() if name in wanted and _is(value, EVIDENCE[name][0])}
    return Failure(kind, kept)


OWN_CANCELLATION = Meaning(
    "the owner of the job cancelled it", "submit the job again: `penstock job retry`", ("cancelled_by",)
)
"""What a cancellation means to who cancelled the job: there is nobody else to ask."""


def meaning_of(found: Failure, owner: str) -> Meaning:
    """What a failure of an owner's job means, and what to do."""
    is_own = found.kind is Kind.CANCELLED and found.evidence.get("cancelled_by") == owner
    return OWN_CANCELLATION if is_own else MEANINGS[found.kind]


def _is(value: object, type_: type) -> bool:
    return isinstance(value, type_) and not isinstance(value, bool)


def _cut(value: Any) -> Any:
    return short(value, TEXT_CHARS) if isinstance(value, str) else value


def short(text: str, most: int) -> str:
    """The text, shortened to at most `most` characters."""
    return text if len(text) <= most else text[: most - 1] + CUT


def from_agent(
    kind: str, evidence: Mapping[str, Any], task: int | None, name: str, lines: Sequence[str]
) -> Failure | None:
    """The failure that an agent reports, cut to size; None for a kind that agents may not report."""
    known = next((each for each in Kind if each == kind and MEANINGS[each].is_told), None)
    if known is None:
        return None
    found = replace(failure(known, evidence), task=task, task_name=short(name, LINE_CHARS))
    return with_lines(found, lines)


def with_lines(failure: Failure, lines: Sequence[str], *, is_console: bool = False) -> Failure:
    """The failure with the last lines of output before it."""
    kept = tuple(short(line, LINE_CHARS) for line in lines[-MAX_LINES:])
    return replace(failure, lines=kept, is_console=is_console)
