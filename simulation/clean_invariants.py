"""What must hold after every commit of what is clean: slots that come back, units that are kept, and that are lent."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.pools.pools import WORKER, Slot, SlotState
from penstock.domain.units.units import Unit, UnitState
from simulation import faults
from simulation.commits import Broke, Moment


def freed_clean(moment: Moment) -> Iterator[Broke]:
    """UNIT-2: a slot comes back only with its unit, which has its driver's proof; and nobody uses it any more."""
    for was, now in moment.of(Slot):
        if was is None or was.unit is None or (now and now.unit):
            continue
        unit = moment.unit_of(was)
        if unit is None or unit.state is not UnitState.GONE or unit.cleaning.proof is None:
            yield "UNIT-2", f"slot {was.name} of {was.pool} came back without a proof in {was.unit}"
        elif not unit.cleaning.proof.checked.startswith(unit.id) or unit.id not in moment.proofs:
            yield "UNIT-2", f"the proof in {unit.id} is not its driver's"
        yield from _used_by(moment, was, was, "came back")


def _used_by(moment: Moment, slot: Slot, lease: Slot, what: str) -> Iterator[Broke]:
    """Scripts that may use a slot: of the lease that it had, or on the machine that it is with."""
    for job, attempt, machine in moment.running():
        if machine == slot.unit or (job, attempt) == (lease.job, lease.attempt):
            yield "UNIT-2", f"slot {slot.name} of {slot.pool} {what} while the script of {job} on {machine} may use it"


def kept_clean(moment: Moment) -> Iterator[Broke]:
    """UNIT-2: a unit becomes idle only with a proof that is newer than its last lease, of its well or of an agent that
    has cleaned up; and nobody uses it any more.
    """
    for was, now in moment.of(Slot):
        if was is None or now is None or was.state is not SlotState.HELD or now.state is SlotState.HELD or not now.unit:
            continue
        if now.leaving:  # it was held by an operator while it was idle, and is destroyed now
            continue
        unit = moment.unit_of(now)
        if unit is None or unit.state is not UnitState.IDLE or not _is_clean(moment, unit):
            yield "UNIT-2", f"{now.unit} is kept on {now.name} of {now.pool}, and is not clean"
        yield from _used_by(moment, now, was, "was kept")


def _is_clean(moment: Moment, unit: Unit) -> bool:
    """Whether a unit has nothing of its last lease. One that was made ahead of need, and never leased, has had none."""
    if unit.lease.leases == 0:
        return unit.id not in moment.facts.ended
    if unit.cleaning.proof is None or unit.cleaning.proof.time + faults.APART < moment.facts.ended[unit.id]:
        return False
    return moment.rests(unit.id) if unit.lease.order == WORKER else moment.cleanings.get(unit.id) == unit.cleaning.proof


def lent_clean(moment: Moment) -> Iterator[Broke]:
    """UNIT-2: a unit goes to its next lease from being idle, and from nothing else; and no script runs on it."""
    for was, now in moment.of(Unit):
        if was and now and was.lease.leases != now.lease.leases:
            if was.state is not UnitState.IDLE or not _is_clean(moment, was):
                yield (
                    "UNIT-2",
                    f"{now.id} goes to {now.lease.job}/{now.lease.attempt}, "
                    f"and was {was.state}, cleaned {was.cleaning.proof}",
                )
            if any(machine == now.id for _, _, machine in moment.running()):
                yield (
                    "UNIT-2",
                    f"{now.id} goes to {now.lease.job}/{now.lease.attempt} while a script may still run on it",
                )


def lent_to_its_owner(moment: Moment) -> Iterator[Broke]:
    """SEC-2: a worker goes from a job to another of the same owner, and to no other. Canaries are the site's."""
    for was, now in moment.of(Unit):
        if was is None or now is None or now.lease.order != WORKER or now.lease.leases <= max(1, was.lease.leases):
            continue
        last, next_ = (_owner(moment, unit.lease.job) for unit in (was, now))
        if last not in ("", next_):
            yield "SEC-2", f"{now.id} goes from a job of {last} to {now.lease.job} of {next_}"


def _owner(moment: Moment, id: str) -> str:
    """Whose job it is; "" for a canary, which leaves nothing that anybody hid."""
    job = moment.store.rows.get(job_key(id))
    return job.owner if isinstance(job, Job) and not job.provenance.canary else ""
