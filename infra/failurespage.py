"""Writes docs/users/failures.md from the tables of kinds and of evidence: `python -m infra.failurespage`."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.domain.causes import LostBy
from penstock.domain.failures import EVIDENCE, LINE_CHARS, LINES, MEANINGS, TEXT_CHARS

HEAD = f"""# Why a job did not succeed

<!-- made by `PYTHONPATH=functions .venv/bin/python -m infra.failurespage`; a test compares it with the code -->

A settled job that did not succeed has a `failure`, beside the sentence that is its `reason`:

```
"failure": {{
  "kind": "disk_full",
  "what": "a disk of the machine was full when a task failed, ...",
  "advice": "have the job keep less, or use a target with a larger disk",
  "evidence": {{"exit_code": 1, "path": "/work", "free_bytes": 0, "total_bytes": 2097152, "source": "statvfs"}},
  "task": {{"index": 0, "name": "build"}},
  "lines": ["dd: error writing 'fill': No space left on device"],
  "lines_of": "job"
}}
```

`penstock job show` and the end of `penstock job run` say it to people; `--json` prints it as it is, and so does
`GET /v1/jobs/{{job}}`. `kind` is one of the closed set below. `evidence` has those of the kind's keys that are known;
what nobody can prove is called `perhaps`. `task` is the task that ended the job, or null. `lines` are the last that it
said, at most {LINES} of {LINE_CHARS} characters, with secrets hidden; or, where `lines_of` is `console`, the last of
what its machine printed before it fell silent. A text of the evidence has at most {TEXT_CHARS} characters. Of each
attempt that was followed by another, `attempts` keeps the kind.

## Kinds

The agent tells those that are marked so: they are what the job's own machine says. The others are the service's.

| `kind` | means | evidence | what to do | by |
|---|---|---|---|---|
"""

MIDDLE = """
## Evidence

| key | type | is |
|---|---|---|
"""

TAIL = f"""
`lost_by` is one of {", ".join(f"`{each.value}`" for each in LostBy)}: its agent never spoke; its agent fell silent;
its unit is not listed any more by who made it; somebody, or its cloud, took the unit back; its script neither ended
nor was stopped in its time; its flow did not go on.

## What counts as proof

- **Out of memory.** The kernel counts the processes that it kills for want of memory: in `memory.events` (or, of
  control groups of the first version, `memory.oom_control`) of the group that the agent and the job run in. A count
  that grew while a failed task ran is proof. Where that group has no such count, the whole machine's (`oom_kill` in
  `/proc/vmstat`) is, but only for a task that was killed by signal 9 or exited with 137. An exit with 137, or a death
  by signal 9, without such a record is told as what it is, `exited` or `killed`, with `perhaps`.
- **Disk full.** When a task has failed, the disks of its folders are looked at. Full is one with less than 1 MiB free
  (of a small one, less than a 64th), or with room for fewer than 8 files. A task may have tidied up before it ended:
  one whose last lines say `No space left on device` or `Disk quota exceeded` is believed, and `source` says so.
- **Signals.** A task that was ended by a signal itself is `killed`. A command of its script that was is seen by the
  shell alone, which exits with 128 and the signal's number: that is `exited`, with `perhaps`.
- **Lost workers.** `last_heard` is the last call of its agent; `notice` is there when somebody, or the cloud, had said
  that the machine goes; `error` is what its driver or host said. The console is read where the driver can."""


def page() -> str:
    """The whole document."""
    return HEAD + "".join(_kinds()) + MIDDLE + "".join(_evidence()) + TAIL + "\n"


def _kinds() -> Iterator[str]:
    for kind, meaning in MEANINGS.items():
        keys = ", ".join(f"`{key}`" for key in meaning.evidence)
        by = "agent" if meaning.is_told else "service"
        yield f"| `{kind.value}` | {meaning.what} | {keys} | {meaning.advice} | {by} |\n"


def _evidence() -> Iterator[str]:
    for key, (type_, meaning) in EVIDENCE.items():
        yield f"| `{key}` | {'number' if type_ is int else 'text'} | {meaning} |\n"


if __name__ == "__main__":
    print(page(), end="")
