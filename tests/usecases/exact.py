"""What tests look at who say exactly what a step does: messages, answers, and what is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.domain.pools.pools import Lease, Pool, lease_key, pool_key
from penstock.domain.units.units import Unit
from penstock.domain.users.users import User
from penstock.kernel.rows import Change, Replace, Row
from penstock.testing.store import lease_now
from penstock.testing.twin import Twin
from penstock.usecases.site import apply
from tests.rows import changed
from tests.usecases.steps import hello, live, submit


def site(toml: str) -> Twin:
    """A site of its own."""
    made = Twin()
    apply.apply(made.on, "admin", toml, "site.toml")
    made.run()
    return made


class Flows:
    """What flows were answered, from here on; they do not move."""

    def __init__(self, twin: Twin) -> None:
        self.succeeded: list[str] = []
        self.failed: list[tuple[str, str, str]] = []
        self.stopped: list[tuple[str, int]] = []
        twin.flows.succeed = lambda token: not self.succeeded.append(token)  # type: ignore[method-assign, func-returns-value]
        twin.flows.fail = lambda *given: self.failed.append(given)  # type: ignore[method-assign]
        twin.flows.stop = lambda *given: self.stopped.append(given)  # type: ignore[method-assign]


def sent(twin: Twin) -> list[tuple[str, dict[str, Any]]]:
    """The messages that are on their way, which are then forgotten."""
    found = [(queue, message) for _, queue, message in twin.queues.messages]
    twin.queues.messages.clear()
    return found


def unit_of(twin: Twin, job: str, order: int) -> Unit:
    return next(unit for unit in live(twin, job) if unit.lease.order == order)


def lease_of(twin: Twin, job: str, order: int) -> Lease:
    found = lease_of_or_none(twin, job, order)
    assert found
    return found


def put(twin: Twin, row: Row, **change: Any) -> None:
    """Let a row say something else."""
    assert twin.store.commit([Replace(row, changed(row, **change))])


def drop(twin: Twin, row: Row) -> None:
    del twin.store.rows[row.key]


def commits(twin: Twin) -> list[Sequence[Change]]:
    """What is written from here on."""
    commit, found = twin.store.commit, list[Sequence[Change]]()

    def noting(changes: Sequence[Change]) -> bool:
        found.append(changes)
        return commit(changes)

    twin.store.commit = noting  # type: ignore[method-assign]
    return found


def running(twin: Twin, ada: User, **ask: Any) -> str:
    job = submit(twin, ada, **ask)
    twin.run()
    hello(twin, job)
    return job


def lease_of_or_none(twin: Twin, job: str, order: int) -> Lease | None:
    found = twin.store.get(lease_key(job, 1, order), Lease)
    return lease_now(twin.store.rows, found) if found else None


def pool_row(twin: Twin, name: str) -> Pool:
    found = twin.store.get(pool_key(name), Pool)
    assert found
    return found


def all_units(twin: Twin) -> list[Unit]:
    return [row for row in twin.store.rows.values() if isinstance(row, Unit)]
