"""Messages to the front end for GitHub, sent through the scheduler, which alone knows its queue. The sweep repeats
them.
"""

from __future__ import annotations

from typing import Any

from penstock.domain.github.checks import CheckRun
from penstock.domain.github.commits import CheckSet
from penstock.domain.github.deliveries import Delivery
from penstock.domain.github.tokens import Minted
from penstock.domain.jobs.jobs import Job
from penstock.kernel.rows import Key
from penstock.system import System


def job_changed(on: System, job: Job) -> None:
    """A job that a check shows has changed."""
    send(on, {"check": job.provenance.check})


def job_settled(on: System, job: Job) -> None:
    """A job that a check shows has settled: revoke the tokens that it got, which are among its secrets."""
    send(on, {"revoke": job.id})


def send(on: System, message: dict[str, Any]) -> None:
    """Have the front end take a step."""
    on.queues.schedule({"do": "github", "message": message})


def resend(on: System, kind: str, key: Key) -> None:
    """Repeat the message of an overdue row."""
    message = _message_for(on, kind, key)
    if message:
        send(on, message)


def _message_for(on: System, kind: str, key: Key) -> dict[str, Any] | None:
    """The message for a row that is still due."""
    if kind == Delivery.kind:
        delivery = on.store.get(key, Delivery)
        return {"delivery": delivery.id} if delivery and delivery.due else None
    if kind == CheckSet.kind:
        found = on.store.get(key, CheckSet)
        return {"set": [found.repository_id, found.sha]} if found and found.due else None
    if kind == Minted.kind:
        minted = on.store.get(key, Minted)
        return {"revoke": minted.job} if minted else None
    check = on.store.get(key, CheckRun)
    return {"check": check.id} if check and check.due else None
