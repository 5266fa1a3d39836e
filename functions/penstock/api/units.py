"""Workers and resources: the units that factories and wells make, and what operators do with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from penstock.api.app import Operator, Router, UnitPage
from penstock.api.shapes import JobName, JobOwner, NextPage, view
from penstock.domain.units import lifecycle, units
from penstock.domain.units.lifecycle import STAGES
from penstock.domain.units.units import DriverStep, Unit, UnitHealth, UnitKind, UnitLease, UnitState
from penstock.domain.users.users import OPERATE_POOL, READ, Bearer, User
from penstock.kernel.errors import Refused
from penstock.kernel.frozen import dataclass
from penstock.kernel.limits import Bound
from penstock.system import System
from penstock.usecases.jobs.names import Named, name_of, names_of
from penstock.usecases.units import listing, maintenance, quarantine

router = Router("workers and resources")

PAGE = 100
SHOWN = 100
"""How many units in quarantine, and how many ids of a sort, a reply lists at most."""

After = Annotated[int, Bound(most=10**11), "Only entries after the one of this number."]
Entries = Annotated[int, Bound(least=1, most=1000), "How many entries to show at most."]


@dataclass(frozen=True)
class QuarantineView:
    """The quarantine of a unit."""

    since: Annotated[str, "Since when, as RFC 3339."]
    reason: Annotated[str, "Why."]
    reminders: Annotated[int, "How many times operators were reminded of it, once a day."]


@dataclass(frozen=True)
class HoldView:
    """An operator's hold of a unit."""

    by: Annotated[str, "The operator."]
    reason: Annotated[str, "Why, for others to read."]
    since: Annotated[str, "Since when, as RFC 3339."]
    until: Annotated[str, "Until when, as RFC 3339."]


@dataclass(frozen=True)
class DrainView:
    """An operator's order that a unit takes no more jobs."""

    by: Annotated[str, "The operator."]
    reason: Annotated[str, "Why, for others to read."]
    since: Annotated[str, "Since when, as RFC 3339."]
    at_once: Annotated[bool, "Whether its present job is ended for that."]


@dataclass(frozen=True)
class HoldUnit:
    """A request to hold a unit as it is."""

    reason: Annotated[str, Bound(most=units.HOLD_REASON_CHARS), "Why, for others to read."]
    for_: Annotated[int, Bound(least=1, most=units.HOLD_MOST), "For how many seconds."] = units.HOLD_DEFAULT


@dataclass(frozen=True)
class ReleaseUnit:
    """A request to end a hold or a quarantine."""

    proof: Annotated[
        str,
        Bound(most=units.HOLD_REASON_CHARS),
        "For a unit in quarantine that you removed by hand: what you checked, for the record.",
    ] = ""


@dataclass(frozen=True)
class RemoveUnit:
    """A request to drain or recycle a unit."""

    reason: Annotated[str, Bound(most=units.HOLD_REASON_CHARS), "Why, for others to read."] = ""


@dataclass(frozen=True)
class UnitEvent:
    """An entry of a unit's log."""

    seq: Annotated[int, "Its number. A unit's entries count from 1; the oldest are dropped."]
    time: Annotated[str, "When it was written, as RFC 3339."]
    stream: Annotated[Literal["control"], "Always `control`: the service wrote it."]
    payload: Annotated[str, "The entry."]


@dataclass(frozen=True)
class UnitEventPage:
    """Some entries of a unit's log."""

    items: Annotated[list[UnitEvent], "The entries, oldest first."]
    next: Annotated[int, "The number to ask after for the entries that follow."]
    state: Annotated[str, "The unit's state. The log ends when the unit is gone."]


@dataclass(frozen=True)
class UnitView:
    """A worker or a resource."""

    id: Annotated[str, "Its id."]
    slot: Annotated[str, "Its slot; for a host, the host's name."]
    state: Annotated[str, "How far it is in its life."]
    job: Annotated[str | None, "The id of its present job, or of its last; null if it had none yet."]
    job_name: JobName
    job_owner: JobOwner
    attempt: Annotated[int | None, "The number of that job's attempt."]
    since: Annotated[str, "Since when it is in this state, as RFC 3339."]
    due: Annotated[str | None, "When the service looks at it again if it hears nothing, as RFC 3339."]
    reason: Annotated[str | None, "Why it is in this state."]
    leases: Annotated[int, "How many jobs it had."]
    hold: Annotated[HoldView | None, "The operator's hold; null if it is not held."]
    drain: Annotated[DrainView | None, "The operator's order to drain it; null if there is none."]
    quarantine: Annotated[QuarantineView | None, "Its quarantine; null if it is in none."]
    broken: Annotated[str | None, "What is wrong with its machine; null if nothing is known to be."]
    next_step: Annotated[str, "What happens to it next, and when."]
    moved_by: Annotated[str, "Who or what moves it on from its state."]
    due_is: Annotated[str, "What happens at `due`."]


@dataclass(frozen=True)
class WorkerView(UnitView):
    """A worker."""

    target: Annotated[str, "The target that it was made for."]
    factory: Annotated[str, "The factory that made it."]


@dataclass(frozen=True)
class WorkerPage:
    """Some workers."""

    items: Annotated[list[WorkerView], "The workers."]
    next: NextPage


@dataclass(frozen=True)
class ResourceView(UnitView):
    """A resource, without its metadata, which only its job may read."""

    type: Annotated[str, "Its resource type."]
    well: Annotated[str, "The well that made it."]


@dataclass(frozen=True)
class ResourcePage:
    """Some resources."""

    items: Annotated[list[ResourceView], "The resources."]
    next: NextPage


@dataclass(frozen=True)
class NeedyUnit(UnitView):
    """A worker or resource that needs somebody."""

    kind: Annotated[Literal["worker", "resource"], "What it is."]
    maker: Annotated[str, "The factory or well that made it."]


Names = Mapping[str | None, Named]

NO_PROOF = ReleaseUnit()
NO_REASON = RemoveUnit()


@router.get("/v1/workers", "List the workers", READ)
def list_workers(on: System, user: Operator, *, page: UnitPage = "") -> WorkerPage:
    found, further = listing.read_page(on, UnitKind.WORKER, page, PAGE)
    known = names(on, found)
    return WorkerPage([show_worker(on, unit, known) for unit in found], further)


@router.get("/v1/resources", "List the resources", READ)
def list_resources(on: System, user: Operator, *, page: UnitPage = "") -> ResourcePage:
    found, further = listing.read_page(on, UnitKind.RESOURCE, page, PAGE)
    known = names(on, found)
    return ResourcePage([show_resource(on, unit, known) for unit in found], further)


@router.get("/v1/workers/{worker}", "Show a worker", READ)
def get_worker(on: System, user: Operator, worker: str) -> WorkerView:
    return show_worker(on, maintenance.find(on, UnitKind.WORKER, worker))


@router.get("/v1/resources/{resource}", "Show a resource", READ)
def get_resource(on: System, user: Operator, resource: str) -> ResourceView:
    return show_resource(on, maintenance.find(on, UnitKind.RESOURCE, resource))


@router.get("/v1/workers/{worker}/events", "Read a worker's log", READ)
def read_worker_events(
    on: System, user: Operator, worker: str, *, after: After = 0, limit: Entries = 500
) -> UnitEventPage:
    return show_events(maintenance.find(on, UnitKind.WORKER, worker), after, limit)


@router.get("/v1/resources/{resource}/events", "Read a resource's log", READ)
def read_resource_events(
    on: System, user: Operator, resource: str, *, after: After = 0, limit: Entries = 500
) -> UnitEventPage:
    return show_events(maintenance.find(on, UnitKind.RESOURCE, resource), after, limit)


@router.post("/v1/workers/{worker}/hold", "Hold a worker as it is", OPERATE_POOL)
def hold_worker(on: System, user: Operator, worker: str, ask: HoldUnit) -> WorkerView:
    return show_worker(on, maintenance.hold(on, user, *_worker(on, user, worker), ask.reason, ask.for_))


@router.post("/v1/resources/{resource}/hold", "Hold a resource as it is", OPERATE_POOL)
def hold_resource(on: System, user: Operator, resource: str, ask: HoldUnit) -> ResourceView:
    return show_resource(on, maintenance.hold(on, user, *_resource(on, user, resource), ask.reason, ask.for_))


@router.post("/v1/workers/{worker}/release", "Release a worker from a hold or from quarantine", OPERATE_POOL)
def release_worker(on: System, user: Operator, worker: str, ask: ReleaseUnit = NO_PROOF) -> WorkerView:
    return show_worker(on, _release(on, user, *_worker(on, user, worker), ask.proof))


@router.post("/v1/resources/{resource}/release", "Release a resource from a hold or from quarantine", OPERATE_POOL)
def release_resource(on: System, user: Operator, resource: str, ask: ReleaseUnit = NO_PROOF) -> ResourceView:
    return show_resource(on, _release(on, user, *_resource(on, user, resource), ask.proof))


def operated(user: Bearer, pool: str) -> str:
    """A pool that is to be controlled. Raises Refused 403 for a token that is for another. [SEC-2]"""
    if not user.covers(OPERATE_POOL.scope, pool):
        raise Refused(
            403, "scope-missing", f"this token is not for {pool[:200]}: it needs the scope operate:{pool[:200]}"
        )
    return pool


def _worker(on: System, user: Bearer, id: str) -> tuple[UnitKind, str]:
    return _operated(on, user, UnitKind.WORKER, id)


def _resource(on: System, user: Bearer, id: str) -> tuple[UnitKind, str]:
    return _operated(on, user, UnitKind.RESOURCE, id)


def _operated(on: System, user: Bearer, is_a: UnitKind, unit: str) -> tuple[UnitKind, str]:
    """A unit that is to be controlled. Its pool is looked up only for a token that is narrowed."""
    if user.is_narrowed:
        operated(user, maintenance.find(on, is_a, unit).lease.pool)
    return is_a, unit


def _release(on: System, user: User, is_a: UnitKind, unit: str, proof: str) -> Unit:
    if proof:
        return quarantine.confirm_removed(on, user, is_a, unit, proof)
    return maintenance.release(on, user, is_a, unit)


@router.post("/v1/workers/{worker}/drain", "Destroy a worker once its job has ended", OPERATE_POOL)
def drain_worker(on: System, user: Operator, worker: str, ask: RemoveUnit = NO_REASON) -> WorkerView:
    return show_worker(on, maintenance.drain(on, user, *_worker(on, user, worker), ask.reason))


@router.post("/v1/resources/{resource}/drain", "Destroy a resource once its job has ended", OPERATE_POOL)
def drain_resource(on: System, user: Operator, resource: str, ask: RemoveUnit = NO_REASON) -> ResourceView:
    return show_resource(on, maintenance.drain(on, user, *_resource(on, user, resource), ask.reason))


@router.post("/v1/workers/{worker}/recycle", "Destroy a worker now", OPERATE_POOL)
def recycle_worker(on: System, user: Operator, worker: str, ask: RemoveUnit = NO_REASON) -> WorkerView:
    return show_worker(on, maintenance.recycle(on, user, *_worker(on, user, worker), ask.reason))


@router.post("/v1/resources/{resource}/recycle", "Destroy a resource now", OPERATE_POOL)
def recycle_resource(on: System, user: Operator, resource: str, ask: RemoveUnit = NO_REASON) -> ResourceView:
    return show_resource(on, maintenance.recycle(on, user, *_resource(on, user, resource), ask.reason))


@router.post(
    "/v1/workers/{worker}/console",
    "Have the end of a worker's console output written into its log, within seconds",
    OPERATE_POOL,
)
def ask_worker_console(on: System, user: Operator, worker: str) -> WorkerView:
    return show_worker(on, maintenance.ask_console(on, user, _worker(on, user, worker)[1]))


def show_worker(on: System, row: Unit, known: Names | None = None) -> WorkerView:
    """A worker. `known` are the names of its page's jobs."""
    return view(
        WorkerView, row, *_parts(on, row, known), target=row.type, factory=row.maker, **_unit(row, on.world.now())
    )


def show_resource(on: System, row: Unit, known: Names | None = None) -> ResourceView:
    """A resource, without its metadata. [SEC-1]"""
    return view(ResourceView, row, *_parts(on, row, known), well=row.maker, **_unit(row, on.world.now()))


def show_needy(on: System, row: Unit, known: Names) -> NeedyUnit:
    """A unit that needs somebody, without its metadata. [SEC-1]"""
    return view(NeedyUnit, row, *_parts(on, row, known), kind=row.is_a, **_unit(row, on.world.now()))


def names(on: System, found: Iterable[Unit]) -> Names:
    """The names of the jobs of some units."""
    return names_of(on, (unit.lease.job for unit in found))


def _parts(on: System, row: Unit, known: Names | None) -> tuple[UnitLease, DriverStep, UnitHealth, Named]:
    found = names(on, [row]) if known is None else known
    return row.lease, row.step, row.health, name_of(found, row.lease.job)


def _unit(row: Unit, now: datetime) -> dict[str, Any]:
    """What is shown of workers and of resources, and is not as the row has it."""
    return {
        "state": "creating" if units.is_prewarming(row) else row.state,
        "job": row.lease.job or None,
        "attempt": row.lease.attempt or None,
        "hold": row.hold if units.is_held(row, now) else None,
        "quarantine": show_quarantine(row),
        "next_step": lifecycle.next_step(row, now),
        "moved_by": STAGES[row.state].by,
        "due_is": STAGES[row.state].due,
    }


def show_quarantine(row: Unit) -> QuarantineView | None:
    """The quarantine of a unit, if it is in one."""
    if row.state is not UnitState.QUARANTINED:
        return None
    return view(QuarantineView, row, row.health, reason=row.step.reason or "")


def show_events(row: Unit, after: int, most: int) -> UnitEventPage:
    """The entries of a unit's log after a number."""
    found = row.journal.after(after)[:most]
    items = [view(UnitEvent, entry, seq=seq, stream="control", payload=entry.what) for seq, entry in found]
    return view(UnitEventPage, row, items=items, next=items[-1].seq if items else after)
