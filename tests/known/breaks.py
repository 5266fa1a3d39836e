"""What Penstock would be without one of the things that keep its promises: writes, claims and grants.

The docstring of each begins with the function whose breaking it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from penstock.domain.jobs import jobs
from penstock.domain.jobs.jobs import Job
from penstock.domain.pools import grants
from penstock.domain.pools.pools import WAITING, Claim, Lease, LeaseState, Need, Pool, Slot, collection
from penstock.domain.units.units import Unit
from penstock.kernel.rows import Change, Check, Create, Delete, Key, Replace, Row, holds, key_of
from penstock.testing.store import MemoryStore
from penstock.testing.twin import MemoryFlows
from penstock.usecases.jobs import flow, submit
from penstock.usecases.pools import scheduler, serving
from tests.rows import changed


def _put(store: MemoryStore, change: Change) -> None:
    """Write without asking what stands there."""
    if isinstance(change, Delete):
        store.rows.pop(change.was.key, None)
    elif not isinstance(change, Check):
        there = store.rows.get(key_of(change))
        store.rows[change.row.key] = replace(change.row, version=(there.version if there else 0) + 1)


def writes_without_condition(patch: pytest.MonkeyPatch) -> None:
    """`kernel.rows.holds`: a write does not check the row that it replaces."""

    def commit(store: MemoryStore, changes: Sequence[Change]) -> bool:
        for change in changes:
            _put(store, change)
        return True

    patch.setattr(MemoryStore, "commit", commit)


def reads_again_in_the_write(patch: pytest.MonkeyPatch) -> None:
    """`kernel.rows.holds`: a write reads the row again before it replaces it, and so never finds it changed."""
    _with_the_latest(patch, Row)


def counts_and_then_writes(patch: pytest.MonkeyPatch) -> None:
    """`kernel.rows.holds`: the write of a pool does not check that the amount in use is still what was read."""
    _with_the_latest(patch, Pool)


def _with_the_latest(patch: pytest.MonkeyPatch, kind: type[Row]) -> None:
    commit = MemoryStore.commit

    def latest(store: MemoryStore, change: Change) -> Change:
        if not isinstance(change, Replace) or not isinstance(change.was, kind):
            return change
        return Replace(store.rows.get(change.was.key, change.was), change.row)

    patch.setattr(MemoryStore, "commit", lambda store, changes: commit(store, [latest(store, c) for c in changes]))


def writes_in_part(patch: pytest.MonkeyPatch) -> None:
    """`ports.Store.commit`: a transaction is written row by row, and rows whose conditions fail are left out."""

    def commit(store: MemoryStore, changes: Sequence[Change]) -> bool:
        good = [change for change in changes if holds(change, store.rows.get(key_of(change)))]
        for change in good:
            _put(store, change)
        return len(good) == len(changes)

    patch.setattr(MemoryStore, "commit", commit)


def slot_stays_free(patch: pytest.MonkeyPatch) -> None:
    """`domain.pools.pools.move`: a slot that is taken stays among the free ones."""
    shared = ("resource/server", "resource/licence")

    def commit(store: MemoryStore, changes: Sequence[Change]) -> bool:
        is_grant = any(isinstance(change, Create) and isinstance(change.row, Unit) for change in changes)
        for change in changes:
            is_free = isinstance(change, Delete) and isinstance(change.was, Slot) and change.was.pool in shared
            if not (is_grant and is_free):
                _put(store, change)
        return True

    patch.setattr(MemoryStore, "commit", commit)


def claims_again(patch: pytest.MonkeyPatch) -> None:
    """`usecases.pools.scheduler._claim_changes`: a repeated step does not look for the lease that it has already."""
    original = scheduler._claim_changes

    def claim(on: Any, job: str, attempt: int, step: int, token: str, **how: Any) -> Any:
        for lease in flow.leases_of_step(on, job, attempt, step):
            claims = on.store.find(collection(lease.pool), WAITING, Claim)
            on.store.commit([Delete(lease), *(Delete(claim) for claim in claims if claim.job == job)])
        return original(on, job, attempt, step, token, **how)

    patch.setattr(scheduler, "_claim_changes", claim)


def _need(lease: Lease) -> Need:
    return Need(lease.order, lease.step, lease.name, lease.type, lease.pool, "hand")


def makes_before_it_is_granted(patch: pytest.MonkeyPatch) -> None:
    """`usecases.pools.scheduler._claim_changes`: the unit begins at once, and waits for its slot with its lease."""
    original = scheduler._claim_changes

    def claim(on: Any, *given: Any, **how: Any) -> Any:
        changes, claimed = original(on, *given, **how)
        waiting = [lease for lease in claimed.leases if lease.state is LeaseState.WAITING]
        made = [scheduler._new_unit(on, lease, _need(lease)) for lease in waiting if changes]
        for unit in made:
            on.queues.advance(unit.id, False)
        return [*changes, *map(Create, made)], claimed

    patch.setattr(scheduler, "_claim_changes", claim)


def as_named(patch: pytest.MonkeyPatch) -> None:
    """`usecases.jobs.submit.resources`: resources are acquired in the order in which the job names them."""

    def resources(site: Any, asks: Any) -> Iterator[Need]:
        for order, ask in enumerate(asks, 1):
            kind = site.resources[ask.type]
            yield Need(order, order, ask.name, ask.type, kind.pool, kind.well, {}, site.takes(kind.uses))

    patch.setattr(submit, "resources", resources)


def worker_first(patch: pytest.MonkeyPatch) -> None:
    """`attempt.asl.json`: the flow acquires the worker before the resources."""
    step = MemoryFlows._step

    def first(flows: MemoryFlows, flow: Any) -> None:
        flow.steps.sort(key=lambda each: (each["do"] != "acquire", each.get("step", 0)))
        step(flows, flow)

    patch.setattr(MemoryFlows, "_step", first)


def head_of_the_line(patch: pytest.MonkeyPatch) -> None:
    """`domain.pools.grants._grantable`: no claim may pass one that is ahead of it in a queue."""
    patch.setattr(grants, "MAX_OVERTAKEN", 0)


def passes_without_end(patch: pytest.MonkeyPatch) -> None:
    """`domain.pools.grants._grantable`: it does not matter how often the claims ahead were overtaken."""
    patch.setattr(grants, "MAX_OVERTAKEN", 10_000)


def waits_for_one_slot(patch: pytest.MonkeyPatch) -> None:
    """`domain.pools.grants.pick`: a claim that had to wait waits for the slot that it saw, whatever else falls free."""
    pick = grants.pick
    waiting: set[Key] = set()

    def stuck(pool: str, stocks: Any) -> Any:
        if any(claim.key in waiting for claim in stocks[pool].claims) and all(s.name != "1" for s in stocks[pool].free):
            return None
        found = pick(pool, stocks)
        if found is None:
            waiting.update(claim.key for claim in stocks[pool].claims)
        return found

    patch.setattr(grants, "pick", stuck)


def forgets_who_waits_long(patch: pytest.MonkeyPatch) -> None:
    """`domain.pools.grants.pick`: a claim that nobody renewed for a minute has lost its place."""
    read, pick = scheduler.read_stocks, grants.pick
    now: list[Any] = []

    def remember(on: Any, pool: str) -> Any:
        now[:] = [on.world.now()]
        return read(on, pool)

    def recent(pool: str, found: Any) -> Any:
        stock = found[pool]
        young = [claim for claim in stock.claims if (now[0] - claim.since).total_seconds() < 60]
        return pick(pool, {**found, pool: replace(stock, claims=young)})

    patch.setattr(scheduler, "read_stocks", remember)
    patch.setattr(grants, "pick", recent)


def keeps_a_lock(patch: pytest.MonkeyPatch) -> None:
    """`usecases.pools.serving.serve`: it takes a lock, and an error leaves the lock taken."""
    serve, taken = serving.serve, set()

    def locked(on: Any, names: Sequence[str], *group: str) -> None:
        if not taken.intersection(names):
            taken.update(names)
            serve(on, names, *group)
            taken.difference_update(names)

    patch.setattr(serving, "serve", locked)


def fails_when_nothing_is_free(patch: pytest.MonkeyPatch) -> None:
    """`usecases.pools.scheduler.acquire`: a claim that cannot be granted at once is an error."""
    acquire = scheduler.acquire

    def now_or_never(on: Any, job: str, attempt: int, step: int, token: str) -> None:
        acquire(on, job, attempt, step, token)
        if any(lease.state is LeaseState.WAITING for lease in flow.leases_of_step(on, job, attempt, step)):
            on.flows.fail(token, "Unsatisfiable", "nothing is available")

    patch.setattr(scheduler, "acquire", now_or_never)


def waits_without_deadline(patch: pytest.MonkeyPatch) -> None:
    """`domain.jobs.jobs.acquire`: a waiting job is not due."""
    acquire = jobs.acquire
    patch.setattr(jobs, "acquire", lambda job, now: changed(acquire(job, now), due=None, queue_until=None))


def counts_waiting_as_running(patch: pytest.MonkeyPatch) -> None:
    """`domain.jobs.jobs.start`: the timeout of a job begins at its submission."""
    start = jobs.start

    def early(job: Job, worker: str, now: Any, health: int = 0) -> Job:
        begun = start(job, worker, now, health)
        waited = now - job.times.submitted
        return replace(begun, times=replace(begun.times, started=job.times.submitted), due=begun.due - waited)

    patch.setattr(jobs, "start", early)
