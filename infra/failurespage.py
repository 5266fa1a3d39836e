"""Writes docs/users/failures.md from the tables of kinds and of evidence: `python -m infra.failurespage`."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.domain.jobs.failures import EVIDENCE, LINE_CHARS, MAX_LINES, MEANINGS, TEXT_CHARS
from penstock.domain.jobs.outcome import LostBy

HEAD = f"""# Why did my job fail?

<!-- made by `PYTHONPATH=functions .venv/bin/python -m infra.failurespage`; a test compares it with the code -->

`penstock job show JOB`, and `penstock job run` at its end, say why a job did not succeed and what to do:

```
reason       task 0 "build" exited with code 1
disk_full: a disk of the machine was full when a task failed, or a task reported that, or ...
  task: 0 "build"
  path: /work
what to do: keep fewer files, or use a target with a larger disk
```

Programs read the same as `failure`, from `penstock job show JOB --json` or `GET /v1/jobs/{{job}}`:

```json
"failure": {{
  "kind": "disk_full",
  "what": "a disk of the machine was full when a task failed, ...",
  "advice": "keep fewer files, or use a target with a larger disk",
  "evidence": {{"exit_code": 1, "path": "/work", "free_bytes": 0, "total_bytes": 2097152, "source": "statvfs"}},
  "task": {{"index": 0, "name": "build"}},
  "lines": ["dd: error writing 'fill': No space left on device"],
  "lines_of": "job"
}}
```

| key | meaning |
|---|---|
| `kind` | One of the [kinds](#kinds) below. There are no others. |
| `what`, `advice` | The meaning of the kind, and what to do, as in the table of kinds. |
| `evidence` | Those of the kind's [keys](#evidence) that are known. A text has at most {TEXT_CHARS} characters. |
| `task` | The task that ended the job, or null. |
| `lines` | The last lines of the job's output: at most {MAX_LINES}, of {LINE_CHARS} characters each, with \
secrets masked. |
| `lines_of` | `job`; or `console` if the lines are the last ones on the console of a machine that stopped answering. |

If a job had several attempts, `attempts` has the kind of each earlier one.

## Kinds

*agent*: the agent on the worker reports it, from what it sees on the machine. *service*: Penstock itself determines it.

| `kind` | meaning | evidence | what to do | by |
|---|---|---|---|---|
"""

MIDDLE = """
## Evidence

| key | type | meaning |
|---|---|---|
"""

LOST_BY = {
    LostBy.NO_HELLO: "the agent never contacted the service",
    LostBy.SILENT: "the agent stopped contacting the service",
    LostBy.VANISHED: "the driver no longer lists the machine or resource",
    LostBy.RECYCLED: "an operator, or the cloud, took the machine or resource away",
    LostBy.OVERDUE: "the script neither ended nor was stopped in time",
    LostBy.FLOW: "the attempt's workflow did not continue",
}

BETWEEN = """
Values of `lost_by`:

| value | meaning |
|---|---|
"""

TAIL = """
## What counts as proof

- **Out of memory.** The kernel counts the processes that it kills because memory ran out: in `memory.events` (with
  version 1 of control groups, in `memory.oom_control`) of the group in which the agent and the job run. If the count
  grew while the failed task ran, that is proof. If the group has no such count, the machine's count (`oom_kill` in
  `/proc/vmstat`) is used, and only for a task that signal 9 ended or that exited with 137. Without such a record, the
  kind is `exited` or `killed`, and `perhaps` mentions memory.
- **Disk full.** After a task has failed, the agent checks the disks of its folders. A disk is full if less than 1 MiB
  is free (on a small disk, less than 1/64 of it), or if it has room for fewer than 8 files. A task may have deleted
  files before it ended: the agent also accepts a task's last lines if they say `No space left on device` or
  `Disk quota exceeded`. `source` names the evidence.
- **Signals.** If a signal ended the task itself, the kind is `killed`. If it ended a command in the script, only the
  shell saw it, and exited with 128 plus the number of the signal: the kind is `exited`, and `perhaps` names the
  signal.
- **Lost workers.** `last_heard` is the last call of the agent. `notice` is present if an operator or the cloud
  announced that the machine would go. `error` is the message of the driver or host. If the driver can read the
  machine's console, `lines` are its last lines.
"""


def page() -> str:
    """The whole document."""
    return HEAD + "".join(_kinds()) + MIDDLE + "".join(_evidence()) + BETWEEN + "".join(_losses()) + TAIL


def _kinds() -> Iterator[str]:
    for kind, meaning in MEANINGS.items():
        keys = ", ".join(f"`{key}`" for key in meaning.evidence)
        by = "agent" if meaning.is_told else "service"
        yield f"| `{kind.value}` | {meaning.what} | {keys} | {meaning.advice} | {by} |\n"


def _evidence() -> Iterator[str]:
    for key, (type_, meaning) in EVIDENCE.items():
        yield f"| `{key}` | {'number' if type_ is int else 'text'} | {meaning} |\n"


def _losses() -> Iterator[str]:
    for each in LostBy:
        yield f"| `{each.value}` | {LOST_BY[each]} |\n"


if __name__ == "__main__":
    print(page(), end="")
