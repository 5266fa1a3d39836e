"""What must hold of hosts that jobs share, reckoned from the rows of slots, jobs and claims, apart from the code that
grants (penstock.domain.pools.packing).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction

from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.pools.grants import heads
from penstock.domain.pools.pools import WAITING, Claim, Pool, Serves, Slot, SlotState, collection, pool_key, thing_of
from penstock.domain.units.units import Unit, unit_key
from simulation import packings
from simulation.commits import OVERTAKEN, Broke, Moment
from simulation.ports import slots_of


def shared(moment: Moment) -> list[Pool]:
    """The pools of shared hosts that the commit touched."""
    found = (moment.store.rows.get(pool_key(name)) for name in moment.pools())
    return [pool for pool in found if isinstance(pool, Pool) and pool.share]


def leases_have_one_host(moment: Moment) -> Iterator[Broke]:
    """SLOT-2: all parts that a lease has are of one host, as many as its job asked for."""
    for was, now in moment.of(Unit):
        pool = moment.store.rows.get(pool_key(now.lease.pool)) if now and was is None else None
        if now is None or not isinstance(pool, Pool) or pool.share is None:
            continue
        mine = [now.lease.slot, *(name for also, name in now.lease.also if also == pool.name)]
        if len({thing_of(name) for name in mine}) > 1 or len(mine) != len(set(mine)):
            yield "SLOT-2", f"{now.lease.job} has {sorted(mine)} of {pool.name}, which are not of one host"
        held = [slot.name for slot in slots_of(moment.store, pool.name) if slot.unit == now.id]
        if sorted(held) != sorted(mine):
            yield "SLOT-2", f"{now.lease.job} has {sorted(mine)} of {pool.name}, and its rows say {sorted(held)}"


def hosts_have_room(moment: Moment) -> Iterator[Broke]:
    """SLOT-1: what is lent of a host is never more than the host, whatever it was divided into when it was lent."""
    for pool in shared(moment):
        taken = [now.thing for was, now in moment.of(Slot) if now and _is_new(was, now) and now.pool == pool.name]
        if not taken:
            continue
        lent: dict[str, Fraction] = defaultdict(Fraction)
        for slot in slots_of(moment.store, pool.name):
            if slot.state is SlotState.HELD:
                lent[slot.thing] += moment.facts.portions.get((slot.pool, slot.name), Fraction(0))
        for host in sorted(set(taken)):
            if lent[host] > 1:
                yield "SLOT-1", f"{lent[host]} of {host} is lent, of which there is one"


def _is_new(was: Slot | None, now: Slot) -> bool:
    return now.state is SlotState.HELD and (was is None or was.state is not SlotState.HELD)


def owners_are_apart(moment: Moment) -> Iterator[Broke]:
    """SEC-2: where owners are kept apart, no host has parts of two at once."""
    for pool in shared(moment):
        if pool.share is None or pool.share.serves is not Serves.OWNER:
            continue
        taken = {now.thing for was, now in moment.of(Slot) if now and _is_new(was, now) and now.pool == pool.name}
        owners: dict[str, set[str]] = {}
        for slot in slots_of(moment.store, pool.name):
            if slot.state is SlotState.HELD and slot.thing in taken:
                owners.setdefault(slot.thing, set()).add(owner_of(moment, slot))
        for host, some in sorted(owners.items()):
            if len(some) > 1:
                yield "SEC-2", f"{sorted(some)} have parts of {host} at once"


def owner_of(moment: Moment, slot: Slot) -> str:
    """Whose job has a slot, or had it, by the rows of its unit and its job; "" for a canary's."""
    unit = moment.store.rows.get(unit_key(slot.unit or ""))
    job = moment.store.rows.get(job_key(unit.lease.job)) if isinstance(unit, Unit) else None
    return job.owner if isinstance(job, Job) and not job.provenance.canary else ""


def nobody_loses_a_host(moment: Moment) -> Iterator[Broke]:
    """QUEUE-2: from the first in a line of a shared pool nobody takes its host more than 8 times: one that it could
    have had, or else that of which most was free. And nobody is granted while one before it, that its handler could
    see, could have had a host.
    """
    for was, now in moment.of(Claim):
        pool = moment.store.rows.get(pool_key(was.pool)) if was and now is None else None
        if was is None or not isinstance(pool, Pool) or pool.share is None:
            continue
        taken = moment.names_taken(pool.name, was.job)
        if not taken:
            continue
        looked = moment.task.looked.get(collection(pool.name), -1) if moment.task else -1
        queue = sorted(moment.store.scan(collection(pool.name), WAITING, Claim), key=lambda claim: claim.order)
        seen = [one for one in queue if one.order < was.order and moment.facts.born.get(one.key, 0) <= looked]
        before, after = _states(moment, pool, was, taken)
        yield from _passed(moment, pool, was, [one for one in seen if one in heads(queue)], before)
        if seen and seen[0] is queue[0] and moment.decided_alone(was):
            yield from _overtaken(moment, pool, queue[0], before, after, {thing_of(name) for name in taken})


def _states(moment: Moment, pool: Pool, claim: Claim, taken: Collection[str]) -> tuple[packings.Hosts, packings.Hosts]:
    """The hosts before a claim was granted, and after. What the commit gave to those behind it, is free in both."""
    behind = {was.job for was, now in moment.of(Claim) if was and now is None and was.order > claim.order}
    later = {
        now.name
        for was, now in moment.of(Slot)
        if now and was and was.state is SlotState.FREE and now.state is SlotState.HELD
        and now.pool == pool.name and now.name not in taken and now.job in behind
    }  # fmt: skip
    slots = slots_of(moment.store, pool.name)
    free = {slot.name for slot in slots if slot.state is SlotState.FREE} | later
    had = {
        slot.name: owner_of(moment, slot) for slot in slots if slot.state is SlotState.HELD and slot.name not in later
    }
    own = {name: owner for name, owner in had.items() if name not in taken}
    return packings.Hosts(pool, free | set(taken), own), packings.Hosts(pool, free, had)


def _passed(moment: Moment, pool: Pool, was: Claim, seen: list[Claim], before: packings.Hosts) -> Iterator[Broke]:
    looked = moment.task.looked.get(collection(pool.name), -1) if moment.task else -1
    for at, other in enumerate(seen):
        is_kept = any(one.overtaken >= OVERTAKEN for one in seen[:at])
        is_later = moment.facts.opened[pool.name] > looked
        if not pool.is_closed and not is_kept and not is_later and other.pools == (pool.name,) and before.fit(other):
            yield "QUEUE-2", f"{was.job} was granted {pool.name} before {other.job}, which could have had a host"


def _overtaken(
    moment: Moment, pool: Pool, first: Claim, before: packings.Hosts, after: packings.Hosts, taken: Collection[str]
) -> Iterator[Broke]:
    asides = [aside(pool.name) for aside in moment.asides([first])]
    if not pool.is_paused and all(_is_overtaken(pool, first, before, after, taken, aside) for aside in asides):
        moment.facts.overtaken[first.key] += 1
        if moment.facts.overtaken[first.key] > OVERTAKEN:
            yield "QUEUE-2", f"from {first.job} its host in {pool.name} was taken more than {OVERTAKEN} times"


def _is_overtaken(
    pool: Pool,
    first: Claim,
    before: packings.Hosts,
    after: packings.Hosts,
    taken: Collection[str],
    aside: Sequence[Slot],
) -> bool:
    """Whether the first claim could have a host that jobs bring back, and lost one, or of the one that it waits for."""
    away = {slot.name: slot.thing for slot in aside}
    names = [name for name in (pool.names or ())[: pool.limit] if name not in away]
    if not packings.Hosts(pool, names, {}).fit(first):
        return False
    lost = bool(before.fit(first)) and not after.fit(first)
    return lost or (not before.fit(first) and before.most(first, Counter(away.values())) in [[host] for host in taken])


def portions(moment: Moment) -> Mapping[tuple[str, str], Fraction]:
    """How much of a host each slot is that the commit lent."""
    found: dict[tuple[str, str], Fraction] = {}
    for was, now in moment.of(Slot):
        pool = moment.store.rows.get(pool_key(now.pool)) if now and _is_new(was, now) else None
        if now and isinstance(pool, Pool) and pool.hosts:
            parts = pool.share.parts if pool.share and "/" in now.name else 1
            found[now.pool, now.name] = Fraction(1, parts)
    return found
