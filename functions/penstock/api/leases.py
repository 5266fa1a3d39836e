"""Leases without a job: acquire, list, show, renew, release. What a lease's owner may know of it is in `workers`."""

from __future__ import annotations

from typing import Annotated, Literal

from penstock.api.app import Caller, IdempotencyKey, Limit, Router, UlidPage
from penstock.api.jobs import MoreTime
from penstock.api.shapes import Created, JobOutcome, NextPage, view
from penstock.domain.commands import AcquireLease
from penstock.domain.jobs import deadlines
from penstock.domain.jobs.jobs import Job, State
from penstock.domain.pools.pools import Lease, Need
from penstock.domain.users.users import READ, SUBMIT
from penstock.kernel.frozen import dataclass
from penstock.system import System
from penstock.usecases.jobs import flow, leases, listing, readers, submit_lease
from penstock.usecases.jobs.listing import Wanted

router = Router("leases")


@dataclass(frozen=True)
class LeasedResource:
    """A resource that a lease is of."""

    name: Annotated[str, "Its name in the lease."]
    type: Annotated[str, "Its resource type."]
    state: Annotated[
        Literal["wanted", "waiting", "granted", "ready", "releasing", "released"],
        "How far it is: not asked for yet, in the queue, granted, ready for use, being given back, given back.",
    ]
    slot: Annotated[str | None, "The slot; null until one is granted."]
    fence: Annotated[int | None, "The number of this grant of the slot: the next one has a larger one."]


@dataclass(frozen=True)
class LeaseView:
    """A lease without a job."""

    id: Annotated[str, "Its id, a ULID."]
    name: Annotated[str, "Its name, which need not be unique."]
    owner: Annotated[str, "The user or repository that owns it."]
    state: Annotated[Literal["waiting", "held", "ended"], "How far it is."]
    outcome: Annotated[JobOutcome | None, "How it ended: `succeeded` if it was released; null until it has ended."]
    reason: Annotated[str | None, "Why it ended, in a sentence."]
    resources: Annotated[list[LeasedResource], "What it is of, in the order of acquisition."]
    submitted: Annotated[str, "When it was asked for, as RFC 3339."]
    since: Annotated[str | None, "Since when its owner has everything; null before."]
    until: Annotated[str | None, "When it ends unless it is renewed; null while it waits, and once it has ended."]
    ended: Annotated[str | None, "When it ended."]
    priority: Annotated[int, "From -100 to 100. Leases and jobs with a higher priority are served first."]
    tags: Annotated[dict[str, str], "Its tags, by name."]
    why: Annotated[str | None, "Why it waits, in a sentence. Lists leave it out."] = None


@dataclass(frozen=True)
class LeasePage:
    """Some leases, newest first."""

    items: Annotated[list[LeaseView], "The leases."]
    next: NextPage


@router.post("/v1/leases", "Acquire resources without a job", SUBMIT, status=201)
def acquire_lease(on: System, user: Caller, ask: AcquireLease, *, idempotency_key: IdempotencyKey = None) -> Created:
    return Created(submit_lease.acquire(on, user, ask, idempotency_key))


@router.get("/v1/leases", "List your leases without a job, newest first", READ)
def list_leases(
    on: System,
    user: Caller,
    *,
    ended: Annotated[bool, "Whether to list those that have ended too."] = False,
    owner: Annotated[str | None, "Only leases of this owner; others' are for operators. By default your own."] = None,
    all: Annotated[bool, "Whether to list the leases of every owner, which is for operators."] = False,
    limit: Limit = 50,
    page: UlidPage = "",
) -> LeasePage:
    wanted = Wanted(is_open=not ended, leases=True)
    rows, following = listing.list_jobs(on, user, owner, wanted, limit, page, everybody=all)
    return LeasePage([_show(row, flow.leases_of(on, row)) for row in rows], following)


@router.get("/v1/leases/{lease}", "Show a lease without a job", READ)
def get_lease(on: System, user: Caller, lease: str) -> LeaseView:
    return _whole(on, user, leases.find(on, user, lease))


@router.post("/v1/leases/{lease}/renew", "Have a lease without a job last longer", SUBMIT)
def renew_lease(on: System, user: Caller, lease: str, ask: MoreTime) -> LeaseView:
    return _whole(on, user, leases.renew(on, user, lease, ask.for_))


@router.post("/v1/leases/{lease}/release", "Give back what a lease without a job has, or stop waiting for it", SUBMIT)
def release_lease(on: System, user: Caller, lease: str) -> LeaseView:
    return _whole(on, user, leases.release(on, user, lease))


def _whole(on: System, user: Caller, row: Job) -> LeaseView:
    is_waiting = not row.is_settled and deadlines.ends(row) is None
    why = readers.explain(on, user, row).summary if is_waiting else None
    return _show(row, flow.leases_of(on, row), why)


def _show(row: Job, had: list[Lease], why: str | None = None) -> LeaseView:
    until = deadlines.ends(row)
    return view(
        LeaseView,
        row,
        row.request,
        row.end,
        state="ended" if row.is_settled else "held" if row.state is State.RUNNING else "waiting",
        resources=_resources(row, had),
        submitted=row.times.submitted,
        since=row.times.started,
        until=until,
        ended=row.times.settled,
        why=why,
    )


def _resources(row: Job, had: list[Lease]) -> list[LeasedResource]:
    by_order = {lease.order: lease for lease in had}
    return [_resource(need, by_order.get(need.order)) for need in row.request.needs]


def _resource(need: Need, lease: Lease | None) -> LeasedResource:
    if lease is None:
        return LeasedResource(need.name, need.type, "wanted", None, None)
    return view(LeasedResource, lease)
