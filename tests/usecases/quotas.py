"""What a pool has granted, and what a quota has left."""

from __future__ import annotations

from penstock.domain.pools.pools import Pool, pool_key
from penstock.testing.twin import Twin
from penstock.usecases.jobs import flow
from tests.usecases.steps import finish, hello


def used(twin: Twin, pool: str) -> int:
    row = twin.store.get(pool_key(pool), Pool)
    assert row
    return row.used


def run_to_end(twin: Twin, job: str) -> None:
    hello(twin, job)
    finish(twin, job)


def is_granted(twin: Twin, job: str, pool: str) -> bool:
    had = flow.leases_of_job(twin.on, job)
    return any(lease.pool == pool and lease.granted for lease in had)
