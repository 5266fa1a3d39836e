"""Bells: how an idle worker learns of its next job within about a second, though it calls the service rarely.

A bell is an empty object in the bucket. An answer without a job contains a presigned URL of the bell of the next lease.
The agent looks there each second; to look costs a GET of S3, and no function runs. The factory function, which gets a
message for each worker that a job is given, rings: it stores the object. Each lease has a bell of its own, so that none
has to be silenced. A lifecycle rule of the bucket deletes bells after a day.

A bell is a hint. An agent that does not hear it calls the service after the seconds of its last answer.
"""

from __future__ import annotations

from penstock.domain.pools.pools import Slot
from penstock.domain.units.units import Unit
from penstock.system import System

PREFIX = "bells/"
"""What the names of all bells begin with."""

IDLE_SECONDS = 30
"""After how many seconds an agent calls that heard no bell; less than STEP_WITHIN, within which it has to come."""

URL_SECONDS = 300
"""How long the URL of a bell is valid: longer than the agent looks there, also if its next call takes long."""


def of_worker(unit: Unit) -> str:
    """The bell of an idle worker's next lease."""
    return _name(unit.id, unit.lease.leases + 1)


def of_host(slot: Slot) -> str:
    """The bell of the next worker on a host, whose slot is free."""
    return _name(f"{slot.pool}/{slot.name}", slot.fence + 1)


def url(on: System, bell: str) -> str:
    """Where an agent looks whether a bell rang."""
    return on.objects.download(bell, URL_SECONDS, "bell").url


def ring_worker(on: System, unit: Unit) -> None:
    """Tell a worker that was idle that it has a job."""
    on.objects.store(_name(unit.id, unit.lease.leases), b"")


def ring_host(on: System, unit: Unit) -> None:
    """Tell a host that it has a worker."""
    on.objects.store(_name(f"{unit.lease.pool}/{unit.lease.slot}", unit.lease.fence), b"")


def _name(whose: str, lease: int) -> str:
    return f"{PREFIX}{whose}/{lease}"
