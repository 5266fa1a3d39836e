"""What a job cost: the service's own work, what it leased, and its bytes. docs/users/prices.md has an example.

    control   what Penstock itself does for the job, by counts, at the list prices of AWS
    charges   its worker and its resources: for as long as each is leased, at its price per hour
    stored    inputs and outputs, as long as the site keeps them after the job's end
    sent      what its workers downloaded

A lease costs from its grant until its unit is given back: until it is clean, or destroyed, and while somebody holds it
to look at it. A worker costs nothing before its machine is made. The time in which the script did not run is counted
apart: waiting for what is acquired later, booting, cleaning, being held. All attempts count.

When a job settles, its units are yet to be cleaned. So its bill is due a little later, and is closed by the sweep once
everything is given back. Until then `reckon` says what the job has cost so far.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from penstock.domain.artifacts.retention import Spans, by_outcome
from penstock.domain.jobs.jobs import Bill, Charge, Job
from penstock.domain.money import DOLLAR_PRICE, MILLION, PRICE, micros_of, rated
from penstock.domain.pools.pools import WORKER, Lease, LeaseState, is_lease_of, lease_as_of
from penstock.domain.site.site import Prices, Site
from penstock.domain.units import units
from penstock.domain.units.units import Unit, UnitState
from penstock.kernel.frozen import dataclass

CLOSE_AFTER = timedelta(minutes=5)
"""How long after a job's end its bill is closed. Most units are clean by then."""

CLOSE_AGAIN = timedelta(hours=1)
"""After how long a bill is looked at again while something of the job is not given back."""

CLOSE_AT_LAST = timedelta(days=8)
"""After how long a bill is closed in any case. No hold lasts that long."""

ATTEMPT = 72
"""What an attempt costs, in millionths of a US dollar, with the function time and what the sweep does afterwards.
Source for these four: docs/internals/benchmarks.md, which counts them; tests/figures/test_price.py compares.
"""

LEASE = 24
"""What a resource costs beside that, for each lease."""

TRANSITION = 25
"""What a state of a flow costs. Source: aws.amazon.com/step-functions/pricing, standard workflows."""

RUNNING_HOUR = 317
"""What an hour of a script that prints a line each second costs. One that prints nothing costs a third less."""

HOUR_MS = 3600 * 1000

MONTH = 730 * 3600
"""The seconds of a month, as AWS counts the hours of stored bytes."""

GIB = 2**30


@dataclass(frozen=True)
class Files:
    """How many bytes a job stored, and how many its workers downloaded."""

    stored: int = 0
    sent: int = 0


def open_bill(job: Job, now: datetime) -> Job:
    """A job that has settled on a site with prices: its bill is to be closed."""
    return replace(job, bill=Bill(due=now + CLOSE_AFTER))


def reckon(
    job: Job, leases: Sequence[Lease], of: Mapping[str, Unit], files: Files, site: Site, now: datetime
) -> tuple[Bill, bool]:
    """A job's bill as it is now, and whether everything is given back. `of` are the units of the leases, by id."""
    prices = site.prices or Prices()
    spans = [(lease, span_of(job, lease, of.get(lease.unit or ""), now)) for lease in leases if lease.granted]
    many = {need.order: need.slots for need in job.request.needs}
    charges = [_charge(lease, of.get(lease.unit or ""), span, many.get(lease.order, 1), site) for lease, span in spans]
    dollars = control(job, leases, now)
    bill = Bill(
        currency=prices.currency,
        control=rated(prices.dollar, dollars, MILLION),
        stored=_stored(job, files.stored, site.retention, prices),
        sent=rated(prices.sent, files.sent, GIB),
        charges=tuple(_merged(charges)),
    )
    return bill, not any(span.is_open for _, span in spans)


@dataclass(frozen=True)
class Span:
    """For how many milliseconds a lease is charged, and for how many of them the script did not run. `is_open`: it
    goes on.
    """

    held: int = 0
    unused: int = 0
    is_open: bool = False


def span_of(job: Job, lease: Lease, unit: Unit | None, now: datetime) -> Span:
    """How long a granted lease is charged. Times may come from two clocks, so no duration is negative."""
    begun, ended = _script(job, lease.attempt)
    given_back = _given_back(lease, unit, ended)
    start, end = _begin(lease, unit), given_back or now
    if start is None or end <= start:
        return Span(is_open=given_back is None)
    ran = min(end, ended or now) - max(start, begun) if begun else timedelta(0)
    held, used = _ms(end - start), _ms(max(timedelta(0), ran))
    return Span(held, held - used, given_back is None)


def _script(job: Job, attempt: int) -> tuple[datetime | None, datetime | None]:
    """When the script of an attempt began, and when the attempt ended."""
    if attempt == job.attempt:
        return job.started, job.times.settled
    return next(((past.started, past.ended) for past in job.history.attempts if past.attempt == attempt), (None, None))


def _begin(lease: Lease, unit: Unit | None) -> datetime | None:
    """From when a lease is charged; None if it never is, because no machine was made for it."""
    if lease.granted is None or lease.order != WORKER or unit is None:
        return lease.granted
    if is_lease_of(lease, unit):
        return max(lease.granted, unit.creation.made) if unit.creation.made else None
    return max(lease.granted, unit.journal.first(lease.granted, units.MADE) or lease.granted)


def _given_back(lease: Lease, unit: Unit | None, ended: datetime | None) -> datetime | None:
    """When a lease's unit was given back, as its journal says; None while it is not. What the journal has forgotten
    counts as given back at once.
    """
    if ended is None:
        return None
    noted = unit.journal.first(ended, units.FREED) if unit else None
    is_over = unit is None or unit.state is UnitState.GONE or lease_as_of(lease, unit).state is LeaseState.RELEASED
    return noted or (ended if is_over else None)


def _ms(span: timedelta) -> int:
    return span // timedelta(milliseconds=1)


def _charge(lease: Lease, unit: Unit | None, span: Span, slots: int, site: Site) -> Charge:
    """The charge for one lease. Who has a thing for itself pays for all leases that others could have had of it; who
    has parts of a host that jobs share pays for these.
    """
    rate, hour = slots * price_of(lease, unit, site), HOUR_MS * _parts(lease, site)
    return Charge(
        order=lease.order,
        name=lease.name,
        type=lease.type,
        held=span.held,
        unused=span.unused,
        cost=rated(rate, span.held, hour),
        unused_cost=rated(rate, span.unused, hour),
    )


def _parts(lease: Lease, site: Site) -> int:
    """Into how many parts what was leased is divided: 1 for anything but a host that jobs share."""
    target = site.targets.get(lease.type) if lease.order == WORKER else None
    return target.share.parts if target and target.share else 1


def price_of(lease: Lease, unit: Unit | None, site: Site) -> int:
    """The price per hour of what was leased, in millionths: as its factory says, or else the site."""
    kind = site.targets.get(lease.type) if lease.order == WORKER else site.resources.get(lease.type)
    told = _told_price(unit, site.prices or Prices()) if unit and lease.order == WORKER else None
    return told if told is not None else (kind.price or 0) if kind else 0


def _told_price(worker: Unit, prices: Prices) -> int | None:
    """The price per hour of a machine, as its factory said it when it was launched; None if it did not."""
    told = worker.creation.metadata
    dollars = micros_of(told.get(DOLLAR_PRICE))
    return micros_of(told.get(PRICE)) if dollars is None else rated(prices.dollar, dollars, MILLION)


def _merged(charges: Iterable[Charge]) -> list[Charge]:
    """One charge for each thing that the job asked for, all attempts together: resources by type, the worker last."""
    found: dict[int, Charge] = {}
    for one in charges:
        was = found.get(one.order)
        found[one.order] = one if was is None else _sum(was, one)
    return sorted(found.values(), key=lambda charge: (charge.order == WORKER, charge.order))


def _sum(one: Charge, other: Charge) -> Charge:
    return replace(
        one,
        held=one.held + other.held,
        unused=one.unused + other.unused,
        cost=one.cost + other.cost,
        unused_cost=one.unused_cost + other.unused_cost,
    )


def control(job: Job, leases: Sequence[Lease], now: datetime) -> int:
    """What the service's own work for a job costs, in millionths of a US dollar."""
    resources = sum(lease.order != WORKER and lease.granted is not None for lease in leases)
    spans = [_script(job, attempt) for attempt in range(1, job.attempt + 1)]
    ran = sum(_ms(max(timedelta(0), (ended or now) - begun)) for begun, ended in spans if begun)
    states = sum(_states([lease for lease in leases if lease.attempt == one]) for one in range(1, job.attempt + 1))
    return job.attempt * ATTEMPT + resources * LEASE + states * TRANSITION + rated(RUNNING_HOUR, ran, HOUR_MS)


def _states(leases: Sequence[Lease]) -> int:
    """How many states the flow of an attempt entered: one for each step, and the one that goes through them."""
    return 1 + len({lease.step for lease in leases}) if any(lease.token for lease in leases) else 0


def _stored(job: Job, size: int, spans: Spans, prices: Prices) -> int:
    """What a settled job's files cost for as long as the site keeps them after it."""
    if job.end.outcome is None:
        return 0
    kept = by_outcome(spans, job.end.outcome) // timedelta(seconds=1)
    return rated(prices.stored, size * kept, GIB * MONTH)
