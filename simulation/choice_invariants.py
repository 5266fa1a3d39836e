"""What must hold of leases that chose among named things, when they are granted."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.pools.pools import Lease, LeaseState, Pool, Slot, SlotState, collection, pool_key, thing_of
from simulation.commits import Broke, Moment


def everybody_has_what_they_chose(moment: Moment) -> Iterator[Broke]:
    """SLOT-2: a lease has a thing that fits its choice; SLOT-1: of a thing that is one lease's, nobody else has a
    part, but for slots of it that the site took out or added since.
    """
    for was, now in moment.of(Lease):
        if now is None or now.state is not LeaseState.GRANTED or (was and was.state is LeaseState.GRANTED):
            continue
        job, pool = moment.store.rows.get(job_key(now.job)), moment.store.rows.get(pool_key(now.pool))
        needs = job.request.needs if isinstance(job, Job) else ()
        choice = next((need.choice for need in needs if need.order == now.order), None)
        if choice is None or not isinstance(pool, Pool):
            continue
        thing = thing_of(now.slot or "")
        if not choice.fits(thing, pool.labels.get(thing, {})):
            yield "SLOT-2", f"{now.job} chose {choice}, and got {now.slot} of {now.pool}"
        if choice.exclusive:
            yield from _alone(moment, now, thing)


def _alone(moment: Moment, lease: Lease, thing: str) -> Iterator[Broke]:
    for state in SlotState:
        for slot in moment.store.scan(collection(lease.pool), f"{state}#", Slot):
            is_its = state is SlotState.HELD and slot.unit == lease.unit
            if slot.thing == thing and state is not SlotState.OFF and not is_its:
                yield "SLOT-1", f"{lease.job} has {thing} for itself, and its slot {slot.name} is {state}: {slot.job}"
