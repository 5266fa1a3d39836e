"""Metrics of events, each counted after the commit of its event. No decision depends on them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from aws_lambda_powertools import Logger

from penstock.domain import metrics
from penstock.domain.cooldowns import maker_of
from penstock.domain.jobs.jobs import Job
from penstock.domain.jobs.outcome import Boot, Ending
from penstock.domain.pools.pools import Lease
from penstock.domain.units.units import CleanProof, Unit
from penstock.ports import NotYet
from penstock.system import System

T = TypeVar("T")

log = Logger(child=True)


@dataclass
class Isolation:
    """Runs the steps of a sweep one by one. One that fails costs only itself: it is logged and counted."""

    failed: int = 0

    @contextmanager
    def step(self, what: str, **of: object) -> Iterator[None]:
        """One step: what it does, and what for."""
        try:
            yield
        except Exception:
            log.exception(f"{what} failed", extra=of)
            self.failed += 1


def elapsed(since: datetime, until: datetime) -> float:
    """Seconds between two times; at least 0, since two clocks may have read them."""
    return max(0.0, (until - since).total_seconds())


def count_call(on: System, maker: str, operation: str, call: Callable[[], T]) -> T:
    """Call a driver, and count the result. Raises what the call raises."""

    def count(result: str) -> None:
        on.metrics.add(metrics.DRIVER_CALLS, maker=maker, operation=operation, result=result)

    try:
        done = call()
    except Exception as error:
        count(metrics.result_of(error))
        raise
    count(metrics.YIELD if isinstance(done, NotYet) else metrics.OK)
    return done


def claim_granted(on: System, given: Sequence[Unit], waiting: Sequence[Lease], warm: Collection[str]) -> None:
    """A claim was granted: how long it waited, and which of its units were warm."""
    waited = elapsed(waiting[0].since, given[0].since)
    on.metrics.add(metrics.GRANTED_AFTER, waited, pool=given[0].lease.pool)
    for unit in given:
        if unit.cleaning.is_kept:
            on.metrics.add(metrics.WARM_HAND_OVERS, pool=unit.lease.pool, result="hit" if unit.id in warm else "miss")


def job_started(on: System, job: Job) -> None:
    """A worker said hello, and its job's script starts."""
    begun, times = job.times.started or on.world.now(), job.times
    if job.attempt == 1:
        waited = elapsed(times.ready or times.submitted, begun)
        on.metrics.add(metrics.STARTED_AFTER, waited, target=job.request.target_resolved)


def worker_booted(on: System, before: Unit) -> None:
    """A worker's agent said hello first; the unit is as it was before. A reused worker booted long ago.

    A worker that waited for its first lease is counted when it came up, so its idle time does not count.
    """
    if before.lease.leases > 1 or before.session.past_hash:
        return
    now = on.world.now()
    on.metrics.add(
        metrics.BOOTED_AFTER, elapsed(before.creation.made or before.creation.born or now, now), target=before.type
    )
    boot_outcome(on, before.type, Boot.SUCCESS)


def attempt_ended(on: System, ending: Ending) -> None:
    """An attempt ended."""
    target = ending.before.request.target_resolved
    if ending.after.end.outcome:
        on.metrics.add(metrics.JOBS_SETTLED, target=target, outcome=ending.after.end.outcome)
    if ending.lost_by:
        on.metrics.add(metrics.ATTEMPTS_LOST, target=target, cause=ending.lost_by)
    if ending.boot:
        boot_outcome(on, target, ending.boot)


def boot_outcome(on: System, target: str, outcome: Boot) -> None:
    """What became of a worker that was ordered."""
    on.metrics.add(metrics.BOOT_OUTCOMES, target=target, outcome=outcome)
    if outcome is not Boot.ABORTED:
        failed = 0 if outcome is Boot.SUCCESS else 100
        on.metrics.add(metrics.BOOT_FAILURES, failed, target=target)


def unit_gone(on: System, unit: Unit, proof: CleanProof, released: bool | None) -> None:
    """A unit was destroyed; `released` is None if another process recorded that before."""
    if released is not None:
        took = elapsed(unit.since, proof.time)
        on.metrics.add(metrics.GONE_AFTER, took, maker=maker_of(unit.is_a, unit.maker))
