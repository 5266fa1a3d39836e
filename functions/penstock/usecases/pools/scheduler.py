"""Claims: a step gets what it needs at once, or waits in its queues; and who asks that pools are served. [QUEUE-1]

The schedule function calls `acquire` for messages; what accepts a job calls `claim_with_job` and `granted_at_once`;
whatever gives something back calls `freed`. penstock.usecases.pools.serving grants those who wait what they wait for.
However large a pool or long a queue, no more than a bounded part of it is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from itertools import count

from penstock import transaction
from penstock.domain.jobs import jobs, unused
from penstock.domain.jobs.jobs import Job, State, job_key
from penstock.domain.pools import grants, pools
from penstock.domain.pools.grants import Allocator, Stock
from penstock.domain.pools.leases import WORKER, Lease, LeaseState, Need
from penstock.domain.pools.pools import Claim, Pool, pool_key
from penstock.domain.pools.why import explain
from penstock.domain.units.units import Unit
from penstock.kernel import limits
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Change, Create, Replace, exact_look
from penstock.system import System
from penstock.usecases.jobs import flow
from penstock.usecases.jobs.flow import answer_step
from penstock.usecases.logs import logs
from penstock.usecases.pools import forecast, grant
from penstock.usecases.units import prewarm
from penstock.usecases.users import privileges

DIRECT_TRIES = 6
"""How often a new claim tries to be granted at once. After that many lost races it waits in its queues, and is granted
by whoever serves them.
"""


@dataclass(frozen=True)
class Claimed:
    """What came of a step's claim: its leases, and the units of those that were granted at once.

    `stale` is the flow's error if the attempt needs nothing more. `stocks`: what the claim's pools had.
    """

    leases: Sequence[Lease] = ()
    claims: Sequence[Claim] = ()
    given: Sequence[Unit] = ()
    stocks: Mapping[str, Stock] = field(default_factory=dict)
    stale: str = ""


def acquire(on: System, job_id: str, attempt: int, step: int, token: str) -> None:
    """Claim what one step of a flow needs. The step is answered when it is granted and ready, or never will be."""
    tries = count()
    claimed = transaction.run(
        on, lambda: _claim_changes(on, job_id, attempt, step, token, may_grant=next(tries) < DIRECT_TRIES)
    )
    if claimed.stale:
        on.flows.fail(token, claimed.stale, "the attempt needs nothing more")
    elif claimed.given:
        granted_at_once(on, claimed)
    elif claimed.leases[0].state is not LeaseState.WAITING:
        _answer_again(on, claimed.leases)
    elif not on.store.get(pool_key(claimed.claims[0].pool), Pool):
        on.flows.fail(token, "Unsatisfiable", f"the site no longer has {claimed.claims[0].pool}")
    else:
        _ask_if_first(on, claimed.claims)
        _log_if_waiting(on, job_id, claimed.leases[0])


def claim_with_job(on: System, job: Job) -> tuple[Job, list[Change], Claimed]:
    """A new job's claim, for the commit that creates the job: if it needs a worker only, and is granted that at once.

    Its attempt has no flow then: nothing is to be acquired after the worker. Everybody else claims by the step of a
    flow. Without a claim the job is returned as it was. docs/decisions/0057-a-worker-that-is-free-needs-no-flow.md
    """
    needs = job.request.needs
    if job.state is not State.QUEUED or any(need.step != WORKER for need in needs):
        return job, [], Claimed()
    now = on.world.now()
    claims = grants.claims(job, WORKER, now)
    stocks = grant.look(on, claims)
    fresh = [_lease(job, need, "", now) for need in needs]
    granted, given = _grant_at_once(on, job, claims, fresh, stocks) if stocks else ([], [])
    if not given:
        return job, [], Claimed()
    looked_at = replace(job, indexed=exact_look(job))  # a short job is over by then: the index is not written before
    return jobs.acquire(looked_at, now), granted, Claimed(fresh, claims, given, stocks)


def granted_at_once(on: System, claimed: Claimed, accepted: str = "") -> None:
    """What follows once a claim was granted when it came. `accepted` stands before that in the log of a new job."""
    warm = [unit.id for unit in claimed.given if unit.id in grant.ready_units(claimed.stocks)]
    grant.claim_granted(on, claimed.given, claimed.leases, warm, accepted)
    for name, stock in claimed.stocks.items():
        if stock.pool.min_warm:
            prewarm.fill(on, name)  # in the place of those that were granted


def _answer_again(on: System, had: Sequence[Lease]) -> None:
    """Answer a step that comes again after its claim was granted, and remind those who make its units."""
    answer_step(on, had)
    for lease in had:
        if lease.state is LeaseState.GRANTED and lease.unit:
            on.queues.advance(lease.unit, lease.order == WORKER)


def _needs(job: Job | None, attempt: int, step: int) -> list[Need]:
    """What a step acquires, if the attempt is the job's present one and not over.

    Also while it runs: the worker's step may be repeated between the hello that started the job and its answer.
    """
    if job is None or job.attempt != attempt or job.is_settled:
        return []
    return [need for need in job.request.needs if need.step == step]


def _claim_changes(
    on: System, job_id: str, attempt: int, step: int, token: str, *, may_grant: bool
) -> tuple[Sequence[Change], Claimed]:
    """The claim of a step, while the attempt needs it: granted at once, or waiting in the queues of its pools."""
    job = on.store.get(job_key(job_id), Job)
    needs = _needs(job, attempt, step)
    if job is None or job.cancellation.cancelled_by or not needs:
        return [], Claimed(stale="Cancelled" if job and job.cancellation.cancelled_by else "Stale")
    now = on.world.now()
    claims = grants.claims(job, step, now)
    # Until the first claim of an attempt, which moves the job on, it has no leases.
    every = [] if job.state is State.QUEUED else flow.lease_rows(on, job_id, attempt)
    had = [lease for lease in every if lease.step == step]
    if had:
        renewed = [replace(lease, token=token) for lease in had]
        changed = [Replace(was, now) for was, now in zip(had, renewed, strict=True) if was.token != token]
        return changed, Claimed([flow.see(on, lease) for lease in renewed], claims)
    fresh = [_lease(job, need, token, now) for need in needs]
    stocks = grant.look(on, claims) if may_grant else {}
    granted, given = _grant_at_once(on, job, claims, fresh, stocks) if stocks else ([], [])
    claimed = jobs.acquire(job, now)
    before = [replace(lease, state=LeaseState.READY) for lease in every]  # or the flow were not at this step
    claimed = replace(claimed, due=unused.next_check(claimed, [*before, *fresh]))
    waiting = [] if given else [*map(Create, claims), *map(Create, fresh)]
    return [Replace(job, claimed), *granted, *waiting], Claimed(fresh, claims, given, stocks)


def _grant_at_once(
    on: System, job: Job, claims: Sequence[Claim], fresh: Sequence[Lease], stocks: Mapping[str, Stock]
) -> tuple[list[Change], list[Unit]]:
    """The changes that create a claim's leases as granted, and its units; none if it has to wait. [SLOT-2] [QUEUE-2]

    Nobody waited in any of its pools when it looked. What needs a privilege is granted only while the owner has it; a
    claim of an owner who has it not waits, and is ended when its turn comes. [SEC-2]
    """
    if not grants.has_all(claims, stocks):
        return [], []
    wanted = job.privileges_of(claims[0].step)
    why, owner = privileges.check_owner(on, job.owner, wanted) if wanted else (None, [])
    if why:
        return [], []
    hand = Allocator(stocks)
    granted, given = grant.grant_changes(on, job, claims[0], fresh, hand)
    changes = [*granted, *hand.changes(), *owner]
    has_room = len(changes) < limits.TRANSACTION_ITEMS  # beside the job's row
    return (changes, given) if given and has_room else ([], [])


def _lease(job: Job, need: Need, token: str, now: datetime) -> Lease:
    return Lease(
        job=job.id,
        attempt=job.attempt,
        order=need.order,
        step=need.step,
        name=need.name,
        type=need.type,
        pool=need.pool,
        state=LeaseState.WAITING,
        token=token,
        since=now,
    )


def freed(on: System, names: Sequence[str]) -> None:
    """Something came back to pools, and that is written: have it granted if anybody waits. [QUEUE-1]

    A claim is written before it asks to be served, and what is free before this looks who waits. So of the two, one
    sees the other. Where nobody waits, units are made ahead of need.
    """
    heads = {name: grant.head(on, name) for name in names}
    if any(is_waited_for for _, is_waited_for in heads.values()):
        on.queues.serve(names, pools.group_of(names))
        return
    for name, (pool, _) in heads.items():
        if pool and pool.min_warm:
            prewarm.fill(on, name)


def _ask_if_first(on: System, claims: Sequence[Claim]) -> None:
    """Ask that a new claim's pools are served, if it is the first of its line, or others stand behind it. [QUEUE-1]

    Who stands before it in its line wants the same: whatever lets them go on serves this claim after them. Those behind
    it have nothing reserved any more that they cannot have until it had its turn: others may get that.
    """
    own = claims[0]
    first = on.store.find(pools.collection(own.pool), pools.line_prefix(own.line), Claim, limit=1)
    is_first = any(claim.order >= own.order for claim in first)
    if is_first or any(_is_overtaking(on, claim) for claim in claims):
        on.queues.serve(own.pools, pools.group_of(own.pools))


def _is_overtaking(on: System, claim: Claim) -> bool:
    return any(other.order > claim.order for other in grant.first_waiting(on, claim.pool))


def _log_if_waiting(on: System, job_id: str, lease: Lease) -> None:
    """Write into the job's log what it waits for, once, if it was not granted at once."""
    job = on.store.get(job_key(job_id), Job)
    if job is None:
        return
    blocked = forecast.short_block(on, job, lease.step)
    lease_now = on.store.get(lease.key, Lease)
    if lease_now and lease_now.state is LeaseState.WAITING:
        logs.append(on, job_id, lease.attempt, explain(job, [lease_now], blocked).summary)
