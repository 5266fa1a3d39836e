"""Claims and grants: who gets which slots, and when. [QUEUE-1] [QUEUE-2]

The schedule function calls `acquire` and `serve` for messages; whatever frees slots calls `serve`. What accepts a job
calls `claim_with_job` and `granted_at_once`.
However large a pool or long a queue, a grant reads no more than a bounded part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from itertools import count

from penstock import transaction
from penstock.domain import metrics
from penstock.domain.jobs import jobs, unused
from penstock.domain.jobs.jobs import Job, State, job_key
from penstock.domain.pools import grants, pools
from penstock.domain.pools.grants import Pick, Stock
from penstock.domain.pools.leases import WORKER, Lease, LeaseState, Need
from penstock.domain.pools.pools import Claim, Pool, Slot, pool_key
from penstock.domain.pools.why import explain
from penstock.domain.units.units import Unit
from penstock.kernel import limits
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Change, Create, Delete, Replace, exact_look
from penstock.system import System
from penstock.usecases.jobs import flow
from penstock.usecases.jobs.flow import answer_step
from penstock.usecases.logs import logs
from penstock.usecases.pools import forecast, grant
from penstock.usecases.units import prewarm, retire
from penstock.usecases.users import privileges

GRANTS = 25
"""How many grants one call makes. If more are possible, it schedules another call."""

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
        serve(on, claimed.claims[0].pool)
        _serve_overtaken(on, claimed.claims)
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
    grant.claim_granted(on, claimed.claims[0], claimed.given, claimed.leases, claimed.stocks, accepted)
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
    made = [change.row for change in granted if isinstance(change, Create) and isinstance(change.row, Lease)] or fresh
    claimed = jobs.acquire(job, now)
    if claimed.may_give_back:
        before = [replace(lease, state=LeaseState.READY) for lease in every]  # or the flow were not at this step
        claimed = replace(claimed, due=unused.next_check(claimed, [*before, *made]))
    waiting = [] if given else [*map(Create, claims), *map(Create, fresh)]
    return [Replace(job, claimed), *granted, *waiting], Claimed(made, claims, given, stocks)


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
    granted, given = grant.grant_changes(on, job, claims[0], fresh, stocks)
    changes = [*granted, *owner]
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


def _serve_overtaken(on: System, claims: Sequence[Claim]) -> None:
    """Serve the queues in which a new claim is not last, except for its own pool, which is served anyway.

    Nothing is reserved there any more for claims that must wait until the new one had its turn. [QUEUE-1]
    """
    for claim in claims[1:]:
        if any(other.order > claim.order for other in grant.first_waiting(on, claim.pool)):
            on.queues.schedule({"do": "serve", "pool": claim.pool})


def _log_if_waiting(on: System, job_id: str, lease: Lease) -> None:
    """Write into the job's log what it waits for, once, if it was not granted at once."""
    job = on.store.get(job_key(job_id), Job)
    blocked = forecast.short_block(on, job, lease.step) if job else None
    lease_now = on.store.get(lease.key, Lease)
    if job and blocked and lease_now and lease_now.state is LeaseState.WAITING:
        logs.append(on, job_id, lease.attempt, explain(job, [lease_now], blocked).summary)


def serve(on: System, pool_name: str) -> None:
    """Grant what can be granted to those who wait for a pool. [QUEUE-1] [QUEUE-2]

    A claim and a release both write first and serve after, with consistent reads. So of two that race, one sees both.
    """
    left: dict[str, None] = {}
    for tries in range(GRANTS):
        stocks = grant.read_stocks(on, pool_name)
        found = grants.pick(pool_name, stocks) if stocks else None
        if found is None:
            evict(on, pool_name, stocks)
            _resize_what_is_over(on, stocks)
            if not stocks and _has_min_warm(on, pool_name):
                prewarm.fill(on, pool_name)
            break
        if _grant(on, found, stocks):
            left |= dict.fromkeys(name for name in found.rows if name != pool_name)
        else:
            on.world.pause(min(tries, 4))
    else:
        left[pool_name] = None
    _serve_waiting(on, left)


def _resize_what_is_over(on: System, stocks: Mapping[str, Stock]) -> None:
    """A slot came back to a pool of which more may be held than its limit: a resize decides which one is free."""
    for name, stock in stocks.items():
        if stock.free and stock.pool.is_closed:
            on.queues.schedule({"do": "resize", "pool": name})


def _has_min_warm(on: System, pool_name: str) -> bool:
    """Whether units of a pool are made ahead of need."""
    pool = on.store.get(pool_key(pool_name), Pool)
    return pool is not None and pool.min_warm > 0


def _grant(on: System, found: Pick, stocks: Mapping[str, Stock]) -> bool:
    """Grant a claim in all its pools at once, or drop one that no longer waits. False for a lost race. [SLOT-2]

    What needs a privilege is granted only while the owner has it. [SEC-2]
    """
    claim = next(iter(found.rows.values()))
    job = on.store.get(job_key(claim.job), Job)
    waiting = flow.leases_of_step(on, claim.job, claim.attempt, claim.step)
    dropped: list[Change] = [Delete(row) for row in found.rows.values()]
    if job is None or not waiting or any(lease.state is not LeaseState.WAITING for lease in waiting):
        return on.store.commit(dropped)
    wanted = job.privileges_of(claim.step)
    why, owner = privileges.check_owner(on, job.owner, wanted) if wanted else (None, [])
    if why:
        privileges.end_waiting(on, job.id, why)
        return on.store.commit(dropped)
    passed = [Replace(other, replace(other, overtaken=other.overtaken + 1)) for other in found.overtaken]
    granted, given = grant.grant_changes(on, job, claim, waiting, stocks)
    changes = [*dropped, *passed, *granted, *owner]
    if len(changes) > limits.TRANSACTION_ITEMS:
        privileges.end_waiting(on, job.id, _too_many(claim, len(changes)))
        return on.store.commit(dropped)
    if not given or not on.store.commit(changes):
        return False
    grant.claim_granted(on, claim, given, waiting, stocks)
    return True


def _too_many(claim: Claim, rows: int) -> str:
    """Why a claim can never be granted, although its job was accepted: by an older version, which counted otherwise."""
    most = limits.TRANSACTION_ITEMS
    return f"{claim.pool}: to grant all that the job wants at once takes {rows} rows, and a commit has room for {most}"


def _serve_waiting(on: System, left: Iterable[str]) -> None:
    """A granted claim left all its queues: what was reserved for it there may be granted to others. [QUEUE-1]

    Who waits is read after the grant: a claim that came just before it, and was behind it, would not be served
    otherwise.
    """
    for name in left:
        if on.store.find(pools.collection(name), pools.WAITING, Claim, limit=1):
            on.queues.schedule({"do": "serve", "pool": name})


def evict(on: System, pool_name: str, stocks: Mapping[str, Stock]) -> None:
    """Have idle units destroyed if nothing else keeps a claim waiting. It is granted when they are gone. [QUEUE-1]"""
    idle = {name: on.store.find(pools.collection(name), "idle#", Slot, limit=grant.IDLE) for name in stocks}
    if any(idle.values()) or any(stock.warm for stock in stocks.values()):
        known = {name: replace(stock, idle=idle[name]) for name, stock in stocks.items()}
        for unit in grants.units_to_evict(pool_name, known):
            was_idle = retire.retire(on, unit, "it made room for others")
            on.metrics.add(metrics.EVICTIONS, int(was_idle), pool=pool_name)


def serve_other_queues(on: System, pool_name: str) -> None:
    """Serve the other queues of those who wait for a pool that was paused or lowered.

    Nothing is reserved there any more for claims that cannot be granted now: others may get it. [QUEUE-1]
    """
    for name in dict.fromkeys(name for claim in grant.first_waiting(on, pool_name) for name in claim.pools):
        if name != pool_name:
            on.queues.schedule({"do": "serve", "pool": name})
