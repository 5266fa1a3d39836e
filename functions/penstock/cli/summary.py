"""How a job ended, in a few lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.cli import times
from penstock.cli.commands.job_hold import show_held
from penstock.cli.errors import CliError
from penstock.cli.failure import note_failure
from penstock.cli.output import STYLES
from penstock.cli.session import Session

MARKS = {"succeeded": "✓", "cancelled": "-"}


def summarize(session: Session, job: Mapping[str, Any]) -> None:
    """Say outcome, reason, duration and outputs, on stderr."""
    out = session.out
    outcome = str(job.get("outcome"))
    took = _took(job["times"])
    reason = "" if outcome == "succeeded" or not job.get("reason") else f": {job['reason']}"
    out.note(f"{MARKS.get(outcome, '✗')} {outcome}{reason}{took}", f"bold {STYLES.get(outcome, '')}".strip())
    note_failure(out, job)
    show_held(out, job)
    try:
        outputs = list(session.api.items("jobs", job["id"], "outputs"))
    except CliError as error:  # the job's own end counts, and is known
        out.note(f"its outputs can't be listed: {error.what}", "yellow")
        return
    width = max((len(output["path"]) for output in outputs), default=0)
    for output in outputs:
        out.note(f"  {output['path'].ljust(width)}  {times.size_text(output['size'])}", "")
    if outputs:
        out.note(f"`penstock job copy {job['id']} PATH` fetches one")


def _took(stations: Mapping[str, str | None]) -> str:
    """How long the job took, and how much of that its script ran."""
    begun, started, ended = (stations.get(name) for name in ("submitted", "started", "settled"))
    if not begun or not ended:
        return ""
    total = times.duration((times.parse(ended) - times.parse(begun)).total_seconds())
    if not started:
        return f" ({total}; it never ran)"
    ran = times.duration((times.parse(ended) - times.parse(started)).total_seconds())
    return f" ({total}, of which it ran {ran})"
