"""Pools: limited things, the jobs that hold them, and the queues of those that wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Annotated, Literal

from penstock.api.app import Caller, Operator, Pattern, Router
from penstock.api.shapes import JobName, JobOwner, PoolKind, view
from penstock.api.units import SHOWN, QuarantineView, operated, show_quarantine
from penstock.domain.pools.delays import Delay
from penstock.domain.pools.forecast import ClaimId
from penstock.domain.pools.matching import Chosen
from penstock.domain.pools.pools import Claim, Pool, Slot, SlotState, collection
from penstock.domain.units import power
from penstock.domain.units.hosts import Host
from penstock.domain.units.power import PowerOrder
from penstock.domain.units.units import HOLD_REASON_CHARS, Unit
from penstock.domain.users.users import OPERATE_POOL, READ
from penstock.kernel import rows
from penstock.kernel.frozen import dataclass
from penstock.kernel.limits import Bound
from penstock.system import System
from penstock.usecases.jobs.names import Named, name_of, names_of
from penstock.usecases.pools import delays, forecast
from penstock.usecases.site import apply
from penstock.usecases.workers import presence

router = Router("pools")

_NAME = "(target|resource|quota)/[A-Za-z0-9._-]{1,64}"

Wholes = Annotated[
    str,
    Pattern(f"({_NAME}(,{_NAME}){{0,19}})?", "whole is at most 20 pools with commas between, like resource/bench"),
    "The pools that are to have their slots and queues, with commas between; at most 20. By default none.",
]

Reason = Annotated[str, Bound(most=HOLD_REASON_CHARS), "Why, for others to read. By default no reason is given."]

QUEUED = 100
"""How many jobs in a queue are shown."""


@dataclass(frozen=True)
class Waiting:
    """Who waits for a pool: how many, and the first of them; and when these may be granted it, if that is known.

    `names` are those of these jobs, and of the holders.
    """

    count: int = 0
    first: Sequence[Claim] = ()
    names: Mapping[str | None, Named] = field(default_factory=dict)
    expected: Mapping[ClaimId, datetime] = field(default_factory=dict)


@dataclass(frozen=True)
class Details:
    """What is shown of single slots: the units in quarantine, the pool's hosts, and by unit what keeps it.

    `orders`: the last order for the power of each host that has one.
    """

    apart: Sequence[Unit] = ()
    known: Mapping[str, Host | None] = field(default_factory=dict)
    kept: Mapping[str, Delay] = field(default_factory=dict)
    orders: Mapping[str, PowerOrder] = field(default_factory=dict)


NO_DETAILS = Details()


@dataclass(frozen=True)
class HostView:
    """Whether a host is there."""

    is_there: Annotated[bool, "Whether its agent calls."]
    since: Annotated[str | None, "Since when it is or is not there, as RFC 3339; null if it never called."]
    power: Annotated[
        str | None, "Whether it is off, or being switched on or off, in a sentence; null if it is not."
    ] = None


@dataclass(frozen=True)
class KeptView:
    """What keeps a unit when its job has ended, or will keep it then."""

    slot: Annotated[str, "The slot that the unit has."]
    unit: Annotated[str, "The unit that is kept. A resource may wait for the worker of its job's attempt."]
    cause: Annotated[
        Literal["hold", "quarantine", "failing", "cleaning"],
        "hold: somebody holds it. quarantine: only an operator moves it on. failing: its maker could not clean it. "
        "cleaning: its maker or its agent cleans it.",
    ]
    since: Annotated[str, "Since when, as RFC 3339."]
    until: Annotated[str | None, "When that ends by itself, as RFC 3339; null if nobody knows."]
    by: Annotated[str | None, "Who holds it; null if nobody does."]
    says: Annotated[str, "All that as a sentence."]
    ends_when: Annotated[str, "What ends it, and who does that."]


@dataclass(frozen=True)
class SlotView:
    """A slot of a pool."""

    slot: Annotated[str, "Its name, or its number."]
    state: Annotated[
        Literal["free", "coming", "warm", "held", "idle", "away", "withdrawn"],
        "free: nobody has it. coming: free, and a unit is being made on it. warm: free, with a unit that is ready. "
        "held: a job has it; an operator or a unit in quarantine, if `job` is null. idle: a warm unit keeps it. "
        "away: its host is away. withdrawn: it is not granted any more.",
    ]
    job: Annotated[str | None, "The id of the job that has it."]
    job_name: JobName
    job_owner: JobOwner
    attempt: Annotated[int | None, "The number of that job's attempt."]
    since: Annotated[str | None, "Since when it is in this state, as RFC 3339."]
    fence: Annotated[int, "How often it was granted: a number that grows with each grant."]
    unit: Annotated[str | None, "The id of the worker or resource on it."]
    quarantine: Annotated[QuarantineView | None, "The quarantine of that unit; null if it is in none."] = None
    kept: Annotated[KeptView | None, "What keeps its unit from being given back; null if nothing does."] = None
    host: Annotated[HostView | None, "The host that the slot stands for; null in a pool without hosts."] = None
    until: Annotated[
        str | None,
        "When the time limit of its job ends the script, as RFC 3339; null unless that runs. It may end before.",
    ] = None
    labels: Annotated[dict[str, str], "The labels of the thing that it is a slot of, by which jobs choose."] = field(
        default_factory=dict
    )


@dataclass(frozen=True)
class QueuedView:
    """A job in a queue."""

    position: Annotated[int, "Its place. Places count from 1."]
    job: Annotated[str, "The job's id."]
    job_name: JobName
    job_owner: JobOwner
    attempt: Annotated[int, "The number of its attempt."]
    since: Annotated[str, "Since when it waits, as RFC 3339."]
    priority: Annotated[int, "Its priority."]
    choice: Annotated[str, "What it chooses among the pool's things; empty if it takes any."] = ""
    turn: Annotated[str | None, "By when it stands there on a site with shares, as RFC 3339; null for its age."] = None
    expected: Annotated[
        str | None,
        "When it may be granted what it waits for here, as RFC 3339; null if unknown, and for all but the first 20.",
    ] = None


@dataclass(frozen=True)
class SetbackView:
    """Failures in a row to make warm units."""

    count: Annotated[int, "How many failed in a row."]
    until: Annotated[str, "Until when no more warm units are made, as RFC 3339."]
    why: Annotated[str, "Why the last one failed."]


@dataclass(frozen=True)
class ByHandView:
    """Who changed a pool by hand, or what it belongs to."""

    by: Annotated[str, "The operator."]
    at: Annotated[str, "When, as RFC 3339."]
    reason: Annotated[str, "Why, for others to read; empty if no reason was given."]
    scope: Annotated[str, "`site`, `factory/NAME` or `well/NAME` if all of that was paused; empty if the pool was."] = (
        ""
    )


@dataclass(frozen=True)
class PoolView:
    """A pool."""

    pool: Annotated[str, "Its name, such as `target/linux`."]
    kind: Annotated[PoolKind, "Whether its slots are numbered or named, or it is an amount, such as a quota."]
    limit: Annotated[int, "How many slots it has, or how much of an amount."]
    held: Annotated[int, "How many are held."]
    free: Annotated[int, "How many are free."]
    waiting: Annotated[int, "How many jobs wait for it."]
    paused: Annotated[bool, "Whether an operator has paused it, or what it belongs to: then nothing is granted."]
    pause: Annotated[ByHandView | None, "Who paused it; null while it is open, and if that is not known."] = None
    resized: Annotated[ByHandView | None, "Who set the limit; null if the site's configuration did."] = None
    warm: Annotated[int, "How many free slots have a unit, ready or being made."] = 0
    coming: Annotated[int, "How many of these units are still being made."] = 0
    setback: Annotated[SetbackView | None, "Why no warm units are made for a while; null if they are."] = None
    away: Annotated[int, "How many of its hosts are away."] = 0
    slots: Annotated[list[SlotView] | None, "Its slots. Lists leave them out, unless they are asked for."] = None
    queue: Annotated[
        list[QueuedView] | None, "The first 1,000 of its queue, in order. Lists leave it out likewise."
    ] = None


@dataclass(frozen=True)
class PoolPage:
    """All pools."""

    items: Annotated[list[PoolView], "The pools."]
    next: Annotated[str | None, "Always null: all pools fit into one page."]


@dataclass(frozen=True)
class PoolLimit:
    """The size of a numbered pool."""

    limit: Annotated[int, "How many slots it shall have."]
    reason: Reason = ""


@dataclass(frozen=True)
class PoolReason:
    """Why a pool, or what it belongs to, is paused or resumed."""

    reason: Reason = ""


NO_REASON = PoolReason()


@router.get("/v1/pools", "List the pools", READ)
def list_pools(on: System, user: Caller, *, whole: Wholes = "") -> PoolPage:
    wholes = frozenset(whole.split(","))
    return PoolPage([_pool(on, pool, whole=pool.name in wholes) for pool in apply.every_pool(on)], None)


@router.get("/v1/pools/{sort}/{name}", "Show a pool, its slots and its queue", READ)
def get_pool(on: System, user: Caller, sort: str, name: str) -> PoolView:
    return _pool(on, apply.find(on, f"{sort}/{name}"), whole=True)


@router.put("/v1/pools/{sort}/{name}/limit", "Set the limit of a pool", OPERATE_POOL)
def resize_pool(on: System, user: Operator, sort: str, name: str, ask: PoolLimit) -> PoolView:
    found = apply.resize(on, operated(user, f"{sort}/{name}"), ask.limit, user.name, ask.reason)
    return _pool(on, found, whole=True)


@router.post("/v1/pools/{sort}/{name}/pause", "Grant nothing from a pool until it is resumed", OPERATE_POOL)
def pause_pool(on: System, user: Operator, sort: str, name: str, ask: PoolReason = NO_REASON) -> PoolView:
    found = apply.pause(on, operated(user, f"{sort}/{name}"), paused=True, by=user.name, reason=ask.reason)
    return _pool(on, found, whole=True)


@router.post("/v1/pools/{sort}/{name}/resume", "Grant from a pool again", OPERATE_POOL)
def resume_pool(on: System, user: Operator, sort: str, name: str, ask: PoolReason = NO_REASON) -> PoolView:
    found = apply.pause(on, operated(user, f"{sort}/{name}"), paused=False, by=user.name, reason=ask.reason)
    return _pool(on, found, whole=True)


def show_listed(on: System, pool: Pool) -> PoolView:
    """A pool as lists have it: without its slots and its queue."""
    return _pool(on, pool, whole=False)


def _pool(on: System, pool: Pool, *, whole: bool) -> PoolView:
    pk = collection(pool.name)
    shown = (SlotState.FREE, SlotState.HELD, SlotState.IDLE, *((SlotState.AWAY,) if pool.hosts else ()))
    slots = [slot for state in shown for slot in on.store.find(pk, f"{state}#", Slot)]
    apart = forecast.quarantined_of(on, slots, SHOWN) if whole else []
    known = presence.hosts_of(on, pool) if whole else {}
    orders = presence.orders_of(on, pool) if whole else {}
    first = forecast.first_waiting(on, pool.name, QUEUED)[:QUEUED] if whole else ()
    names = names_of(on, (each.job for each in (*slots, *first))) if whole else {}
    expected = forecast.expected_grants(on, first) if first else {}
    waiting = Waiting(forecast.queue_length(on, pool.name), first, names, expected)
    kept = delays.delays_of(on, slots) if whole else {}
    return show(pool, slots, waiting, Details(apart, known, kept, orders), whole=whole)


def show(
    row: Pool,
    slots: Sequence[Slot],
    waiting: Waiting,
    details: Details = NO_DETAILS,
    *,
    whole: bool,
) -> PoolView:
    """A pool; `whole` with its slots and its queue."""
    shown = [slot for slot in slots if slot.state is not SlotState.OFF]
    return view(
        PoolView,
        row,
        pool=row.name,
        kind=row.sort,
        paused=row.is_paused,
        pause=row.paused_by,
        held=row.used if row.is_amount else sum(slot.state in (SlotState.HELD, SlotState.IDLE) for slot in shown),
        free=row.limit - row.used if row.is_amount else sum(slot.state is SlotState.FREE for slot in slots),
        waiting=waiting.count,
        warm=sum(slot.state is SlotState.FREE and slot.unit is not None for slot in slots),
        coming=sum(_is_coming(slot) for slot in slots),
        away=sum(slot.state is SlotState.AWAY for slot in slots),
        slots=_slots(row, shown, waiting.names, details) if whole else None,
        queue=_queue(row, waiting) if whole else None,
    )


def _queue(pool: Pool, waiting: Waiting) -> list[QueuedView]:
    return [_queued(pool, place, claim, waiting) for place, claim in enumerate(waiting.first, 1)]


def _queued(pool: Pool, place: int, row: Claim, waiting: Waiting) -> QueuedView:
    expected = waiting.expected.get(ClaimId.from_claim(row))
    turn = rows.born(row.turn) if row.turn else None
    choice = Chosen.of(pool, row).said
    named = name_of(waiting.names, row.job)
    return view(QueuedView, row, named, position=place, turn=turn, expected=expected, choice=choice)


def _is_coming(row: Slot) -> bool:
    return row.state is SlotState.FREE and row.unit is not None and row.since is None


def _slots(pool: Pool, rows: Sequence[Slot], names: Mapping[str | None, Named], details: Details) -> list[SlotView]:
    quarantines = {unit.id: show_quarantine(unit) for unit in details.apart}
    return [_slot(pool, row, name_of(names, row.job), quarantines.get(row.unit or ""), details) for row in rows]


def _slot(pool: Pool, row: Slot, named: Named, quarantine: QuarantineView | None, details: Details) -> SlotView:
    kept = details.kept.get(row.unit or "")
    return view(
        SlotView,
        row,
        named,
        slot=row.name,
        state=_state(row),
        quarantine=quarantine,
        kept=show_kept(row.name, kept) if kept else None,
        host=_host(details.known[row.thing], details.orders.get(row.thing)) if row.thing in details.known else None,
        until=named.ends if row.state is SlotState.HELD and named.run == row.attempt else None,
        labels=pool.labels.get(row.thing, {}),
    )


def show_kept(slot: str, row: Delay) -> KeptView:
    """What keeps the unit on a slot."""
    return view(KeptView, row, slot=slot, ends_when=row.act)


def _state(row: Slot) -> str:
    if row.withdrawn:
        return "withdrawn"
    if row.state is not SlotState.FREE or row.unit is None:
        return row.state.value
    return "coming" if _is_coming(row) else "warm"


def _host(row: Host | None, order: PowerOrder | None) -> HostView:
    said = power.describe(order) if order else None
    if row is None:
        return HostView(False, None, said)
    return view(HostView, row, is_there=row.away is None, since=row.away or row.since, power=said)
