"""Writes docs/users/retention.md from the table of spans and that of owners: `python -m infra.retentionpage`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from penstock.domain import limits
from penstock.domain.owners import KINDS
from penstock.domain.retention import Spans
from penstock.domain.siteretention import spelled

HEAD = """# How long things are kept

<!-- made by `PYTHONPATH=functions .venv/bin/python -m infra.retentionpage`; a test compares it with the code -->

Every file that a job made, or was given, is an **artifact**. It has owners and nothing else decides about it: while
there is one it stays, and with the last it goes. `penstock artifact why ID` says who owns one, why, until when, and
what would end that; `penstock artifact sweep --dry-run --within 7d` says what would go within a week.

## Spans

A site sets any of them anew in its table `[retention]` (docs/site.md). What a job owns gets its time when the job
settles; a change of the site holds for the jobs that settle after it.

| `[retention]` | kept | from | default | from least to most |
|---|---|---|---|---|
"""

OWNERS = """
## Owners

| kind | its row | lets go |
|---|---|---|
"""

TAIL = f"""
- **Dependents pin what they need.** From its submit until it settles, a job that depends on another keeps all that
  this one owns, whatever else runs out. At most {limits.DEPENDENTS} unsettled jobs may depend on one.
- **The latest failure of a name** is that of all jobs of one owner and one name which settled last as failed. A
  success after it changes nothing; a later failure takes its place, and then its own time holds again.
- **A pin** keeps one artifact: `penstock artifact pin ID --reason WHY --for 90d`. Without `--for` it keeps it until
  it is taken back. It is the user's own; operators may take back others'.
- **A published name** keeps its artifact until it is withdrawn, and no sweep ever takes it: docs/users/publishing.md.
- **What is gone stays known**: `penstock job outputs JOB` says since when.

## How it goes

1. A job's time has come, and nobody depends on it: its retention is *ended*. From that write on nobody can come to
   depend on it.
2. Each name that the job has for an artifact goes, and in the same write its ownership. With the last owner the
   artifact's row goes, and its volume is *destroying*.
3. The bytes are deleted, looked for, and the volume's row goes when they are not there. What fails is tried again,
   later each time, from a minute to six hours.

Each sweep does some of it, after all that somebody waits for. Once a day (`inventory`) all of the store is compared
with the rows: bytes that no row knows of are destroyed as in 3, and bytes that should be there and are not are told
(the alarm BytesLost, the job's log); for that nothing is deleted. Objects that are not named by us are not touched."""


def page() -> str:
    """The whole document."""
    return HEAD + "".join(_spans()) + OWNERS + "".join(_owners()) + TAIL


def _spans() -> Iterator[str]:
    for each in fields(Spans):
        rule = each.metadata["rule"]
        bounds = f"{spelled(rule.least)} to {spelled(rule.most)}"
        yield f"| `{each.name}` | {rule.keeps} | {rule.begins} | {spelled(getattr(Spans(), each.name))} | {bounds} |\n"


def _owners() -> Iterator[str]:
    for name, kind in KINDS.items():
        yield f"| `{name}` | {kind.row} | {kind.ends} |\n"


if __name__ == "__main__":
    print(page(), end="")
