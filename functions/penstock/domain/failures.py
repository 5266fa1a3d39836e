"""Why a job did not succeed: a kind of a closed set, and the evidence for it. Generates docs/users/failures.md.

The sentence that a job has as its reason says what happened; this says it to programs, and what there is to show
for it. What an agent tells is what the job's own machine says, so it is cut to what is known and to a bounded size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

LINES = 20
LINE_CHARS = 400
TEXT_CHARS = 1000
"""How many last lines are kept, and how many characters of each, and of a text of the evidence."""

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
    """Why a job did not succeed. `task` is that of the job that ended it, with its name; `lines` are the last that
    were said, by the job, or by its machine's console where `is_console`; secrets are hidden in them. [SEC-1]"""

    kind: Kind
    evidence: Mapping[str, Any] = field(default_factory=dict)
    task: int | None = None
    task_name: str = ""
    lines: tuple[str, ...] = ()
    is_console: bool = False


@dataclass(frozen=True)
class Meaning:
    """What a kind means, what to do, and which evidence it may have. `is_told`: an agent may say it."""

    what: str
    advice: str
    evidence: tuple[str, ...]
    is_told: bool = False


EVIDENCE: Mapping[str, tuple[type, str]] = {
    "exit_code": (int, "with which the task ended"),
    "signal": (int, "the number of the signal that ended the task"),
    "signal_name": (str, "its name, such as `SIGSEGV`"),
    "perhaps": (str, "what it may have been, of which there is no proof"),
    "oom_kills": (int, "how many processes the kernel killed for want of memory while the task ran"),
    "memory_limit_bytes": (int, "how much memory the job's control group may have"),
    "source": (str, "where the evidence is from"),
    "path": (str, "the file or folder, as the job knows it"),
    "repository": (str, "the repository that the job comes from, as `owner/name`"),
    "commit": (str, "the SHA of the job's commit"),
    "toolchain": (str, "the channel of Rust's, or the file that was to name it"),
    "free_bytes": (int, "what was free on its disk when the task had ended"),
    "total_bytes": (int, "how large that disk is"),
    "free_files": (int, "how many more files it could hold"),
    "error": (str, "the words of whoever found out: the system, the driver, the storage, the service"),
    "bound": (str, "which bound it was"),
    "bound_seconds": (int, "how long that is"),
    "ended": (str, "what was done to end it"),
    "rule": (str, "the output rule, as it was written"),
    "size_bytes": (int, "how large the file is"),
    "limit_bytes": (int, "how large it may be"),
    "files": (int, "how many files the output rules name"),
    "limit_files": (int, "how many outputs a job may have"),
    "found_bytes": (int, "how much of it came"),
    "cancelled_by": (str, "who asked for it"),
    "worker": (str, "the id of the worker"),
    "lost_by": (str, "`no_hello`, `silent`, `vanished`, `recycled`, `overdue` or `flow`: see below"),
    "last_heard": (str, "when its agent was heard of last, RFC 3339 in UTC"),
    "notice": (str, "that it was taken back, and by whom: such as a cloud's notice to a spot machine"),
    "resource": (str, "the id of the resource"),
    "type": (str, "its type"),
    "waited_for": (str, "the pools of what it had not got yet"),
}
"""The evidence that there is: its type and meaning."""

_ENDED = ("exit_code", "signal", "signal_name")
_BEFORE = ("error", "exit_code", "bound", "bound_seconds")
_LOST = ("worker", "lost_by", "last_heard", "notice", "error")
_AGAIN = (
    "nothing is wrong with the job: submit it again (`penstock job retry`), with more `retries` if it happens often"
)
_OURS = "tell who operates this site; then submit the job again: `penstock job retry`"

MEANINGS: Mapping[Kind, Meaning] = {
    Kind.EXITED: Meaning(
        "a task exited with a code other than 0",
        "read the last lines: they are the script's own",
        ("exit_code", "perhaps"),
        is_told=True,
    ),
    Kind.KILLED: Meaning(
        "a signal that nobody sent from here ended a task",
        "SIGSEGV, SIGBUS and SIGABRT are faults of the program; SIGKILL may be want of memory without a record of it",
        ("signal", "signal_name", "perhaps"),
        is_told=True,
    ),
    Kind.OUT_OF_MEMORY: Meaning(
        "the kernel killed a process of a task, for there was no memory left, and kept a record of it",
        "have it need less (fewer parallel jobs), or use a target with more memory",
        ("oom_kills", "source", "memory_limit_bytes", *_ENDED),
        is_told=True,
    ),
    Kind.DISK_FULL: Meaning(
        "a disk of the machine was full when a task failed, or a task said so, or it had no room for the inputs",
        "have the job keep less, or use a target with a larger disk",
        ("path", "free_bytes", "total_bytes", "free_files", "source", "error", *_ENDED),
        is_told=True,
    ),
    Kind.NOT_STARTED: Meaning(
        "a task could not be started at all", "look at its `workdir` and its environment", ("error",), is_told=True
    ),
    Kind.TIMED_OUT: Meaning(
        "the job ran for longer than it may",
        "find out from the last lines what it waited for, or give it a longer `timeout`",
        ("bound", "bound_seconds", "ended", *_ENDED),
        is_told=True,
    ),
    Kind.OUTPUT_MISSING: Meaning(
        "no file was uploaded for an output rule that requires one (`=`)",
        "look at which path the script writes to, and at the rule's",
        ("rule",),
        is_told=True,
    ),
    Kind.OUTPUT_TOO_LARGE: Meaning(
        "an output is larger than the site allows",
        "split or compress it; operators set the limit (docs/site.md)",
        ("path", "size_bytes", "limit_bytes"),
        is_told=True,
    ),
    Kind.TOO_MANY_OUTPUTS: Meaning(
        "the output rules name more files than a job may keep",
        "pack them into one, or write narrower rules",
        ("files", "limit_files"),
        is_told=True,
    ),
    Kind.OUTPUT_NOT_KEPT: Meaning(
        "an output could not be read or kept: it changed or vanished meanwhile, or may not be read",
        "have the script end before its outputs do; a rule with `%` allows changes",
        ("path", "error"),
        is_told=True,
    ),
    Kind.INPUT_TRUNCATED: Meaning(
        "fewer bytes of an input came than were kept, each time that it was fetched",
        _OURS,
        ("path", "size_bytes", "found_bytes", "error"),
        is_told=True,
    ),
    Kind.INPUT_FAILED: Meaning(
        "an input could not be fetched, or is not what was kept", _OURS, ("path", "error"), is_told=True
    ),
    Kind.AUTHENTICATION_FAILED: Meaning(
        "the job could not get the token for its repository, on the last try too",
        "look whether the GitHub App is still installed there; then re-run the check",
        ("repository", *_BEFORE),
        is_told=True,
    ),
    Kind.CLONE_FAILED: Meaning(
        "the repository could not be cloned at the job's commit",
        "the error is git's own word; when it was the network's fault, re-run the check",
        ("repository", "commit", *_BEFORE),
        is_told=True,
    ),
    Kind.TOOLCHAIN_FAILED: Meaning(
        "the Rust toolchain that the job asks for could not be installed",
        "look at `rust_toolchain` in the job file, and at the repository's rust-toolchain.toml",
        ("toolchain", *_BEFORE),
        is_told=True,
    ),
    Kind.MACHINE_BROKEN: Meaning(
        "the machine was found to be unfit before the script began, on the last try too", _OURS, ("worker", "error"),
        is_told=True,
    ),
    Kind.CANCELLED: Meaning(
        "somebody cancelled the job", "ask them, or submit it again: `penstock job retry`", ("cancelled_by",)
    ),
    Kind.WORKER_LOST: Meaning("the worker was lost in the middle of it, on the last try too", _AGAIN, _LOST),
    Kind.RESOURCE_LOST: Meaning(
        "a resource of the job was lost or taken away, on the last try too", _AGAIN, ("resource", "type", *_LOST)
    ),
    Kind.UNSATISFIABLE: Meaning(
        "what the job asks for cannot be had here at all", "ask for what there is: `penstock target list`", ("error",)
    ),
    Kind.QUEUE_EXPIRED: Meaning(
        "the job did not get what it asked for within the queue deadline",
        "`penstock pool show` shows who holds it; submit the job when there is less to do, or with a higher `priority`",
        ("bound", "bound_seconds", "waited_for", "error"),
    ),
    Kind.DEPENDENCY_FAILED: Meaning(
        "a job that it depends on ended otherwise than it was to, or a file that it waited for did not come",
        "put that job right first, or send the file",
        ("error",),
    ),
    Kind.NOT_ALLOWED: Meaning(
        "its owner has no privilege any more for what it waited for", "ask an operator for the privilege", ("error",)
    ),
    Kind.SERVICE_FAILED: Meaning("the service itself failed", _OURS, ("error",)),
}  # fmt: skip
"""The one table of kinds."""

assert set(MEANINGS) == set(Kind)


def of(kind: Kind, evidence: Mapping[str, Any]) -> Failure:
    """A failure with the evidence that its kind may have, cut to size. What is not of its type is left out."""
    wanted = MEANINGS[kind].evidence
    kept = {name: _cut(value) for name, value in evidence.items() if name in wanted and _is(value, EVIDENCE[name][0])}
    return Failure(kind, kept)


def _is(value: object, type_: type) -> bool:
    return isinstance(value, type_) and not isinstance(value, bool)


def _cut(value: Any) -> Any:
    return short(value, TEXT_CHARS) if isinstance(value, str) else value


def short(text: str, most: int) -> str:
    """As much of a text as is kept."""
    return text if len(text) <= most else text[: most - 1] + CUT


def heard(kind: str, evidence: Mapping[str, Any], task: int | None, name: str, lines: Sequence[str]) -> Failure | None:
    """What an agent tells, cut to size; None for a kind that is none of an agent's to tell."""
    known = next((each for each in Kind if each == kind and MEANINGS[each].is_told), None)
    if known is None:
        return None
    found = replace(of(known, evidence), task=task, task_name=short(name, LINE_CHARS))
    return said(found, lines)


def said(failure: Failure, lines: Sequence[str], *, is_console: bool = False) -> Failure:
    """A failure with the last lines that were said before it."""
    kept = tuple(short(line, LINE_CHARS) for line in lines[-LINES:])
    return replace(failure, lines=kept, is_console=is_console)
