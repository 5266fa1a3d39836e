"""Revoking privileges, and what becomes of the user's jobs. [SEC-2]

A grant itself checks that the owner has the privilege. Besides, jobs that wait under a revoked one end at once, instead
of when their turn comes. What jobs hold already, they keep.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from penstock.domain.jobs import jobs as rules
from penstock.domain.jobs.jobs import Job, State, job_key
from penstock.domain.pools.pools import WAITING, Claim, LeaseState, Slot, collection
from penstock.domain.users import users
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Change, Check, Replace
from penstock.listings import every_of
from penstock.system import System, current_site, transact
from penstock.usecases.jobs import cancel, flow, settle
from penstock.usecases.logs import logs
from penstock.usecases.users import users as granting


@dataclass(frozen=True)
class Revocation:
    """The jobs that a revocation concerns: those that it ended, since they waited, and those that hold something."""

    stopped: Sequence[str]
    holding: Sequence[str]


def revoke(on: System, by: User, name: str, privilege: str, *, at_once: bool) -> tuple[User, Revocation]:
    """Revoke a user's privilege; `at_once` also cancels the jobs that hold what it granted. Safe to repeat."""
    user = granting.change_privilege(on, name, privilege, grant=False, by=by.name)
    found = end_waiting_jobs(on, user)
    for job_id in found.holding if at_once else ():
        with suppress(Refused):  # the job has just settled
            cancel.cancel(on, by, job_id)
    return user, found


def check_owner(on: System, name: str, wanted: Iterable[str]) -> tuple[str | None, list[Change]]:
    """Why a job's owner may not have what needs these privileges; or the check of the owner's row for the grant."""
    owner = granting.by_name(on, name) or User(name=name, created=on.world.now())  # there never was one
    return users.explain_denial(owner, wanted), [Check(owner)]


def end_waiting(on: System, job_id: str, why: str) -> bool:
    """End a job that waits for what its owner may not have. False if it no longer waits."""

    def decide() -> tuple[Sequence[Change], Job | None]:
        job = on.store.get(job_key(job_id), Job)
        if job is None or job.is_settled or job.cancellation.cancelled_by or job.state is State.RUNNING:
            return [], None
        now = rules.refuse(job, why, on.world.now())
        return [Replace(job, now)], now

    job = transact(on, decide)
    if job is None:
        return False
    logs.append(on, job.id, job.attempt, why)
    settle.stop_waiting(on, job, "Unsatisfiable", why)
    return True


def end_waiting_jobs(on: System, user: User) -> Revocation:
    """End the user's jobs that wait for what the user may not have, and list those that hold such things."""
    stopped: list[str] = []
    holding: list[str] = []
    for job in _jobs_needing_privileges(on, user.names):
        wanted = {need.order: users.explain_denial(user, job.privileges_for(need)) for need in job.request.needs}
        held = flow.leases_of(on, job)
        lacking = [lease for lease in held if wanted.get(lease.order)]
        waiting = next((lease for lease in lacking if lease.state is LeaseState.WAITING), None)
        if waiting and end_waiting(on, job.id, str(wanted[waiting.order])):
            stopped.append(job.id)
        elif any(lease.state in (LeaseState.GRANTED, LeaseState.READY) for lease in lacking):
            holding.append(job.id)
    return Revocation(stopped, holding)


def _jobs_needing_privileges(on: System, owner: Sequence[str]) -> Iterator[Job]:
    """A user's jobs that wait for, or hold, something that needs a privilege, each once.

    No job holds what is held by an operator, or in quarantine.
    """
    known: dict[str, None] = {}
    for pool in sorted(current_site(on).guarded()):
        known |= {claim.job: None for claim in every_of(on, collection(pool), WAITING, Claim)}
        known |= {str(slot.job): None for slot in every_of(on, collection(pool), "held#", Slot)}
    for job_id in known:
        job = on.store.get(job_key(job_id), Job)
        if job and job.owner in owner:
            yield job
