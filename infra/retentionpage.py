"""Writes docs/users/retention.md from the table of spans and that of owners: `python -m infra.retentionpage`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from penstock.domain.artifacts.artifacts import KINDS
from penstock.domain.artifacts.retention import Spans
from penstock.domain.site.sections import format_span
from penstock.kernel import limits

HEAD = """# How long things are kept

<!-- made by `PYTHONPATH=functions .venv/bin/python -m infra.retentionpage`; a test compares it with the code -->

Unless your site says otherwise, the outputs, inputs and log of a job are kept for {succeeded} after it succeeded,
{failed} after it failed ({latest_failure} for the latest failure), {errored} after it errored and {cancelled} after it
was cancelled. You can keep single files longer:

```
penstock artifact list                              # your artifacts: what owns each, and until when
penstock artifact why ID                            # why an artifact is kept, and what would end that
penstock artifact pin ID --reason WHY --for 90d     # keep it longer
penstock job discard JOB                            # delete a job's files and log now
penstock artifact sweep --dry-run --within 7d       # operators: what would be deleted within a week
```

Each of these files, and each cache archive, is an **artifact**. An artifact is kept while it has an **owner**, and is
deleted with its last one. Nothing else decides about it.

## Owners

| owner | what it is | owns the artifact until |
|---|---|---|
"""

SPANS = """
- **Dependents keep what they need.** A job that depends on another one keeps the other's artifacts from its submit
  until it settles, even if their retention ends. At most {dependents} unsettled jobs may depend on one job.
- **The latest failure** is the one that failed last of all jobs of one user or repository with the same name. Its
  artifacts are kept longer. A later success does not change that; a later failure takes its place, and the earlier job
  gets its normal time.
- **A pin** keeps one artifact. Without `--for` it keeps it until you remove the pin (`penstock artifact unpin ID`). A
  pin belongs to the user who set it; operators may remove any pin.
- **A published name** keeps its artifact until it is withdrawn: see [Published files](publishing.md).
- **A cache entry** is replaced and evicted by rules of its own: see [Caches](caches.md).

After the artifacts of a job are deleted, `penstock job outputs JOB` says since when they are gone.

## Times

The site can set each of these times in its table `[retention]` (see [the site](../operators/site.md)). The artifacts
of a job get their time when the job settles. A change of the site applies to jobs that settle after it.

| `[retention]` | what is kept | counted from | default | allowed |
|---|---|---|---|---|
"""

TAIL = """
## How artifacts are deleted

For operators; as a user you need not know this.

1. When the time of a job is over and no unsettled job depends on it, its retention is *ended*. From then on no job can
   depend on it.
2. The job's ownership of each artifact is removed. When an artifact loses its last owner, its row is removed in the
   same transaction, and its bytes are marked *destroying*.
3. The bytes are deleted. When they are verifiably gone, the mark is removed. A failed step is repeated at growing
   intervals, from 90 seconds to six hours.

A scheduled function does this in small portions, after everything that somebody waits for. Once a day (`inventory`),
it compares all of storage with the database. Objects that the database does not know are deleted as in step 3. Bytes
that should exist and do not are reported: in the job's log, and by the alarm BytesLost. Objects whose names are not
Penstock's are never touched.
"""


def page() -> str:
    """The whole document."""
    head = HEAD.format(**{each.name: format_span(getattr(Spans(), each.name)) for each in fields(Spans)})
    middle = SPANS.format(dependents=limits.DEPENDENTS)
    return head + "".join(_owners()) + middle + "".join(_spans()) + TAIL


def _spans() -> Iterator[str]:
    for each in fields(Spans):
        rule = each.metadata["rule"]
        bounds = f"{format_span(rule.least)} to {format_span(rule.most)}"
        default = format_span(getattr(Spans(), each.name))
        yield f"| `{each.name}` | {rule.keeps} | {rule.begins} | {default} | {bounds} |\n"


def _owners() -> Iterator[str]:
    for name, kind in KINDS.items():
        yield f"| `{name}` | {kind.row} | {kind.ends} |\n"


if __name__ == "__main__":
    print(page(), end="")
