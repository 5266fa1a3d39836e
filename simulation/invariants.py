"""What must hold after every commit. `checks` has what must hold outside, in quiet moments and at the end.

Every check carries the label of the promise in DESIGN's section 3 that it follows from, and says how.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from penstock.domain.costs import Spend
from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.logs.logs import Batch
from penstock.domain.pools.pools import (
    WAITING,
    WORKER,
    Claim,
    Lease,
    LeaseState,
    Pool,
    Slot,
    SlotName,
    SlotState,
    collection,
    lease_prefix,
    pool_key,
)
from penstock.domain.site.site import SITE_KEY, SiteText
from penstock.domain.units.lifecycle import may_move
from penstock.domain.units.units import Unit, UnitState, unit_key
from penstock.domain.users.users import Tally
from penstock.system import parse_site
from penstock.testing.store import lease_now
from simulation.choice_invariants import everybody_has_what_they_chose
from simulation.clean_invariants import freed_clean, kept_clean, lent_clean, lent_to_its_owner
from simulation.commits import OVERTAKEN, Broke, Moment
from simulation.host_invariants import free_hosts_are_there
from simulation.ports import slots_of
from simulation.prewarm_invariants import nobodys
from simulation.share_invariants import hosts_have_room, leases_have_one_host, nobody_loses_a_host, owners_are_apart

GONE = (UnitState.DIRTY, UnitState.QUARANTINED, UnitState.GONE)

TAKEN = (SlotState.HELD, SlotState.IDLE)
"""What nobody else can have."""


def one_slot_one_row(moment: Moment) -> Iterator[Broke]:
    """SLOT-1, one holder: a slot is one row, in one state, and its name is recorded, but for parts of an amount."""
    for pool in moment.pools():
        names = [slot.name for slot in slots_of(moment.store, pool)]
        if len(names) != len(set(names)):
            yield "SLOT-1", f"a slot of {pool} is there twice: {sorted(names)}"
        known = {row.name for row in moment.store.scan(collection(pool), "name#", SlotName)}
        if set(names) != known and not moment.is_amount(pool):
            yield "SLOT-1", f"the slots of {pool} are {sorted(names)}, their names {sorted(known)}"


def one_slot_one_unit(moment: Moment) -> Iterator[Broke]:
    """SLOT-1, one holder: two units that are not gone never have the same slot, and every slot of a unit knows it."""
    for _, now in moment.of(Unit):
        if now is None or now.state is UnitState.GONE:
            continue
        there = moment.facts.at[now.lease.pool, now.lease.slot]
        if len(there) > 1:
            yield "SLOT-1", f"slot {now.lease.slot} of {now.lease.pool} has {len(there)} units: {sorted(there)}"
        for pool, name in slots_of_unit(now):
            slot = next((slot for slot in slots_of(moment.store, pool) if slot.name == name), None)
            if slot is None or not _is_with(slot, now):
                yield "SLOT-1", f"unit {now.id}, {now.state}, thinks that it has {name} of {pool}, which is {slot}"
    for _, slot in moment.of(Slot):
        unit = moment.unit_of(slot) if slot and slot.unit else None
        if slot and slot.unit and (unit is None or (slot.pool, slot.name) not in slots_of_unit(unit)):
            yield "SLOT-1", f"slot {slot.name} of {slot.pool} is with {slot.unit}, which does not have it"


def slots_of_unit(unit: Unit) -> tuple[tuple[str, str], ...]:
    """The slots that a unit has: its own, and what it takes besides, for as long as it is not gone."""
    return () if unit.state is UnitState.GONE else ((unit.lease.pool, unit.lease.slot), *unit.lease.also)


def _is_with(slot: Slot, unit: Unit) -> bool:
    """A leased unit's slots are held; an idle one's own is free and warm, the others idle; then they may be leaving.

    Those of an idle one that an operator holds, or held until now, are held by it.
    """
    is_own = (slot.pool, slot.name) == (unit.lease.pool, unit.lease.slot)
    if slot.unit != unit.id or (is_own and slot.fence != unit.lease.fence):
        return False
    if unit.state is UnitState.IDLE and not (unit.hold and slot.state is SlotState.HELD and slot.job is None):
        return slot.state is (SlotState.FREE if is_own else SlotState.IDLE) and not slot.leaving
    is_leaving = slot.state is SlotState.IDLE and slot.leaving
    return slot.state is SlotState.HELD or (unit.state is UnitState.DIRTY and is_leaving)


def no_more_than_the_limit(moment: Moment) -> Iterator[Broke]:
    """SLOT-1, never beyond the limit: what is held or idle is at most the limit, or what that was before it fell.

    A named pool's limit is its names, of which none is ever two slots; what is free there, is one of them. An amount's
    holders add up to what is used.
    """
    for name in moment.pools():
        pool = moment.store.rows.get(pool_key(name))
        if not isinstance(pool, Pool):
            continue
        taken = [slot for slot in slots_of(moment.store, name) if slot.state in TAKEN]
        count = sum(slot.count for slot in taken)
        most = pool.limit if pool.is_amount else moment.facts.highest.get(name, 0)
        is_more = any(_is_taken(was, now) for was, now in moment.of(Slot) if now and now.pool == name)
        if is_more and count > most and pool.names is None:
            yield "SLOT-1", f"{count} of {name} are held; its limit is {pool.limit}, and was at most {most}"
        free = {slot.name for slot in moment.store.scan(collection(name), "free#", Slot)}
        if pool.names is not None and pool.due is None and not free <= set(pool.names):
            yield "SLOT-1", f"{name} lends {sorted(free)}; its names are {pool.names}"
        if pool.is_amount and pool.used != count:
            yield "SLOT-1", f"{name} says that {pool.used} are used, and its holders have {count}"


def _is_taken(was: Slot | None, now: Slot | None) -> bool:
    return now is not None and now.state in TAKEN and (was is None or was.state not in TAKEN)


def no_more_under_way(moment: Moment) -> Iterator[Broke]:
    """SLOT-1, never beyond the limit: of an owner's jobs no more are under way than the site allows, and its tally has
    just those that were counted and have not settled.
    """
    for was, now in moment.of(Tally):
        if now is None or (was and was.begun == now.begun):
            continue
        jobs = [row for row in moment.store.rows.values() if isinstance(row, Job) and row.owner == now.owner]
        begun = sum(job.usage.begun and not job.is_settled for job in jobs)
        site = moment.store.rows.get(SITE_KEY)
        most = parse_site(site.toml).limits.at_once if isinstance(site, SiteText) else 0
        if begun != now.begun:
            yield "SLOT-1", f"{begun} jobs of {now.owner} are under way, and its tally says {now.begun}"
        if begun > most > 0 and was and was.begun < now.begun:
            yield "SLOT-1", f"{begun} jobs of {now.owner} are under way; the site allows {most}"


def billed_once(moment: Moment) -> Iterator[Broke]:
    """JOB-1, exactly once: a closed bill never changes, and the sums of an owner are those of its closed bills."""
    for was, now in moment.of(Job):
        if was and was.bill and was.bill.due is None and (now is None or now.bill != was.bill):
            yield "JOB-1", f"the bill of {was.id} was closed, and changed"
    for owner in {spend.owner for _, spend in moment.of(Spend) if spend}:
        rows = list(moment.store.rows.values())
        jobs = [row for row in rows if isinstance(row, Job) and row.owner == owner]
        closed = [job.bill for job in jobs if job.bill and job.bill.due is None]
        sums = [row for row in rows if isinstance(row, Spend) and row.owner == owner]
        told = (sum(row.jobs for row in sums), sum(row.total for row in sums), sum(row.unused for row in sums))
        true = (len(closed), sum(bill.total for bill in closed), sum(bill.unused for bill in closed))
        if told != true:
            yield "JOB-1", f"the jobs of {owner} cost {true}, and their sums say {told}"
        pools = sum(each.cost for row in sums for each in row.pools)
        charges = sum(charge.cost for bill in closed for charge in bill.charges)
        if pools != charges:
            yield "JOB-1", f"what the jobs of {owner} had cost {charges}, and the sums of its pools say {pools}"


def whole_or_not_at_all(moment: Moment) -> Iterator[Broke]:
    """SLOT-2: of a step's leases all wait or none does; its claims stand in all of its pools while they do."""
    for _, now in moment.of(Lease):
        if now is None:
            continue
        step, whose = moment.step_of(now), f"{now.job}/{now.attempt}"
        waiting = [lease for lease in step if lease.state is LeaseState.WAITING]
        if waiting and len(waiting) < len(step):
            yield "SLOT-2", f"of the {len(step)} leases of {whose} on {now.pool}, {len(waiting)} wait"
        own = [row for row in moment.store.scan(collection(now.pool), WAITING, Claim) if _is_of(row, now)]
        if bool(own) != bool(waiting):
            yield "SLOT-2", f"{whose} has {len(own)} claims on {now.pool} and {len(waiting)} waiting leases"
        for pool in own[0].pools if own else ():
            if not any(_is_of(row, now) for row in moment.store.scan(collection(pool), WAITING, Claim)):
                yield "SLOT-2", f"{whose} waits for {now.pool}, but not for {pool}"


def _is_of(claim: Claim, lease: Lease) -> bool:
    return (claim.job, claim.attempt, claim.step) == (lease.job, lease.attempt, lease.step)


def fences_grow(moment: Moment) -> Iterator[Broke]:
    """SLOT-3: a slot's fence goes up by one when it is taken, and is never otherwise written. A part of an amount is
    made for one lease and never lent again.
    """
    for was, now in moment.of(Slot):
        row = now or was
        if row is None:
            continue
        place = (row.pool, row.name)
        fence = moment.facts.fences.get(place, 0)
        if moment.is_amount(row.pool):
            if was is None and fence:
                yield "SLOT-3", f"{row.count} of {row.pool} were lent to {row.name} once more"
        elif now is None:
            yield "SLOT-3", f"slot {row.name} of {row.pool} was forgotten, and its fence with it"
        elif now.fence != fence + (was is not None and was.state is SlotState.FREE and now.job is not None):
            yield "SLOT-3", f"the fence of slot {now.name} of {now.pool} went from {fence} to {now.fence}"
        moment.facts.fences[place] = row.fence


def old_leases_change_nothing(moment: Moment) -> Iterator[Broke]:
    """SLOT-3: an agent whose unit was dirty before the commit writes nothing but lines of a log.

    But for what has to be done after the end of a lease by whoever ended it: its report may have been that, or its
    hello what made its unit idle.
    """
    task = moment.task
    if task is None or task.unit is None or task.goes_on:
        return
    key = unit_key(task.unit)
    unit = moment.before.get(key) or moment.store.rows.get(key)
    if isinstance(unit, Unit) and unit.state in GONE:
        changed = [type(now or was).__name__ for was, now in moment.moves if not isinstance(now, Batch)]
        if changed:
            yield "SLOT-3", f"{task.unit} is {unit.state}, and its agent changed {changed}"


def nobody_is_passed(moment: Moment) -> Iterator[Broke]:
    """QUEUE-2: a grant passes no earlier claim that its handler could see and that there was room for; nor does it take
    from one too often, so that there is no room left for it and those before it.

    What came, or was freed, after the handler had looked is the next handler's. Of two claims over several pools the
    later may go first from a queue that the earlier does not stand in; that counts as passing.
    """
    granted = [was for was, now in moment.of(Claim) if was and now is None and _is_grant(moment, was)]
    for was in granted:
        looked = moment.task.looked.get(collection(was.pool), -1) if moment.task else -1
        for other in moment.store.scan(collection(was.pool), WAITING, Claim):
            is_before = other.order < was.order and moment.facts.born.get(other.key, 0) <= looked
            stands_there = set(was.pools) <= set(other.pools) and moment.could_see(other)
            earlier = {each.job for each in granted if each.order < other.order}
            if is_before and stands_there and moment.has_room(other, but=earlier):
                yield "QUEUE-2", f"{was.job} was granted {was.pool} before {other.job}, though there was room"
        for other in moment.harmed_by(was) if moment.decided_alone(was) else ():
            moment.facts.overtaken[other.key] += 1
            if moment.facts.overtaken[other.key] > OVERTAKEN:
                yield "QUEUE-2", f"{was.job} took {was.pool} from {other.job}, from which that was done 8 times"


def nobody_stood_before(moment: Moment) -> Iterator[Broke]:
    """QUEUE-2: a claim is granted at once only if nobody waited in any of its pools when its handler looked there.

    Who comes after that look may be granted later; who stood there, must be granted before.
    """
    for was, now in moment.of(Lease):
        if was is not None or now is None or now.state is not LeaseState.GRANTED:
            continue
        for pool in {slot.pool for _, slot in moment.of(Slot) if slot and slot.job == now.job}:
            looked = moment.task.looked.get(collection(pool), -1) if moment.task else -1
            for other in moment.store.scan(collection(pool), WAITING, Claim):
                if moment.facts.born.get(other.key, 0) <= looked:
                    yield "QUEUE-2", f"{now.job} was granted {pool} at once, while {other.job} waited there"


def _is_grant(moment: Moment, claim: Claim) -> bool:
    return any(lease and _is_of(claim, lease) and lease.state is LeaseState.GRANTED for _, lease in moment.of(Lease))


def one_after_the_other(moment: Moment) -> Iterator[Broke]:
    """QUEUE-3, no deadlock: a step is claimed when all before it are there, the steps in order, the worker's last.

    But for an attempt that got all that it needs in the commit that it came with: it holds nothing while it waits.
    """
    for was, now in moment.of(Lease):
        leases = moment.store.scan(f"job#{now.job}", lease_prefix(now.attempt), Lease) if was is None and now else []
        if now and leases and not _is_whole(moment, now, leases):
            others = [lease_now(moment.store.rows, lease) for lease in leases if lease.step != now.step]
            late = [lease.type for lease in others if lease.state is not LeaseState.READY]
            if late:
                yield "QUEUE-3", f"{now.job}/{now.attempt} claims {now.pool} while {late} is not there yet"
            if any(lease.step == WORKER or lease.step > now.step != WORKER for lease in others):
                yield "QUEUE-3", f"{now.job}/{now.attempt} claims {now.pool} out of order"


def _is_whole(moment: Moment, one: Lease, leases: Sequence[Lease]) -> bool:
    """Whether this commit grants all that an attempt needs, of which this lease is one."""
    granted = {now.key for was, now in moment.of(Lease) if was is None and now and now.state is LeaseState.GRANTED}
    job = moment.store.rows.get(job_key(one.job))
    return (
        isinstance(job, Job) and {lease.key for lease in leases} == granted and len(granted) == len(job.request.needs)
    )


def settled_once(moment: Moment) -> Iterator[Broke]:
    """JOB-1: a settled job says how and why it ended, and never anything else; an attempt's first report stands."""
    for was, now in moment.of(Job):
        if now is None:
            yield "JOB-1", "a job was deleted"
        elif was and was.is_settled and _end_of(was) != _end_of(now):
            yield "JOB-1", f"{now.id} was settled, and changed"
        elif now.is_settled and not (now.end.outcome and now.end.reason):
            yield "JOB-1", f"{now.id} is settled with outcome {now.end.outcome} and reason {now.end.reason!r}"
        elif was and was.attempt == now.attempt and was.run.report and now.run.report != was.run.report:
            yield "JOB-1", f"the report of {now.id}/{now.attempt} changed from {was.run.report} to {now.run.report}"
        elif was and now.attempt not in (was.attempt, was.attempt + 1):
            yield "JOB-1", f"{now.id} went from attempt {was.attempt} to {now.attempt}"


def _end_of(job: Job) -> object:
    return (
        job.state,
        job.end.outcome,
        job.end.reason,
        job.end.exit_code,
        job.attempt,
        job.history.attempts,
        job.run.report,
        job.times,
        job.owner,
    )


def one_worker(moment: Moment) -> Iterator[Broke]:
    """JOB-2: a job has at most one worker that is not gone."""
    for _, now in moment.of(Unit):
        if now and now.lease.order == WORKER and len(moment.facts.workers[now.lease.job]) > 1:
            yield "JOB-2", f"{now.lease.job} has {len(moment.facts.workers[now.lease.job])} workers"


def nothing_begins_too_early(moment: Moment) -> Iterator[Broke]:
    """JOB-2: an attempt claims its first thing only when no script of an older one may run."""
    for was, now in moment.of(Lease):
        if was is None and now:
            older = [unit for job, attempt, unit in moment.running() if job == now.job and attempt < now.attempt]
            if older:
                yield "JOB-2", f"{now.job}/{now.attempt} begins while {older[0]} may still run its script"


def intruders_change_nothing(moment: Moment) -> Iterator[Broke]:
    """SEC-2: whoever may not do a thing writes nothing."""
    if moment.task and moment.task.intruder:
        yield "SEC-2", f"{moment.task.name} changed {[type(now or was).__name__ for was, now in moment.moves]}"


def moves_are_in_the_table(moment: Moment) -> Iterator[Broke]:
    """UNIT-1: a unit goes only where the table of its life says that it may."""
    for was, now in moment.of(Unit):
        if was and now and not may_move(was.state, now.state):
            yield "UNIT-1", f"{now.id} goes from {was.state} to {now.state}"


AFTER_A_COMMIT: Sequence[Callable[[Moment], Iterator[Broke]]] = (
    one_slot_one_row,
    one_slot_one_unit,
    no_more_than_the_limit,
    no_more_under_way,
    billed_once,
    whole_or_not_at_all,
    fences_grow,
    old_leases_change_nothing,
    nobody_is_passed,
    nobody_stood_before,
    everybody_has_what_they_chose,
    free_hosts_are_there,
    leases_have_one_host,
    hosts_have_room,
    owners_are_apart,
    nobody_loses_a_host,
    nobodys,
    one_after_the_other,
    settled_once,
    one_worker,
    nothing_begins_too_early,
    freed_clean,
    kept_clean,
    lent_clean,
    lent_to_its_owner,
    intruders_change_nothing,
    moves_are_in_the_table,
)
