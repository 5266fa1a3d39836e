"""What a pool has granted, and what a quota has left."""

from __future__ import annotations

from penstock.domain.pools.pools import Pool, pool_key
from penstock.testing.twin import Twin
from tests.usecases.steps import finish, hello, told


def used(twin: Twin, pool: str) -> int:
    row = twin.store.get(pool_key(pool), Pool)
    assert row
    return row.used


def run_to_end(twin: Twin, job: str) -> None:
    hello(twin, job)
    finish(twin, job)


def is_granted(twin: Twin, job: str, pool: str) -> bool:
    return any(line.startswith(f"{pool}: got") for line in told(twin, job))
