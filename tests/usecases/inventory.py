"""Objects that no row names."""

from __future__ import annotations

from datetime import timedelta

from penstock.domain.artifacts.artifacts import id_of
from penstock.domain.artifacts.volumes import object_name
from penstock.kernel import rows
from penstock.testing.twin import Twin


def stray(twin: Twin, hours: float = 24) -> str:
    """An object of which no row knows, stored so long ago."""
    job, own = (rows.ulid(twin.world.now(), twin.world.dice.randbytes(rows.RANDOM_BYTES)) for _ in range(2))
    id = id_of(job, own)
    twin.objects.objects[object_name(id)] = b"what?"
    twin.objects.times[object_name(id)] = twin.world.now() - timedelta(hours=hours)
    return id


def next_day(twin: Twin) -> None:
    twin.pass_time(24 * 3600)
