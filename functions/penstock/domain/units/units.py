"""Units: the workers that factories make and the resources that wells make. Both have one life cycle.

    creating ──made──▶ ready ──its lease ends──▶ dirty ──cleaned and destroyed──▶ gone
     ▲  └──────────────────its lease ends──────────▲
     │                   │                         │ not clean in time, too many, too old
     │                   └─its lease ends─▶ cleaning
     │                                         │ clean
     └────────────granted again──────────── idle ──too long, or blocks a claim──▶ dirty

    dirty ──cannot be destroyed, or broken for good──▶ quarantined ──an operator──▶ dirty, or gone

A resource is ready when its well says so; a worker when its agent says hello. A unit that was never made becomes dirty
all the same: only the driver knows that there is nothing to clean. [UNIT-1] Where the site keeps units warm, a unit
whose lease ended well is cleaned and stays on its slot for the next lease; a unit that is made ahead of need is idle
from the start. A unit that an operator holds gets as far as cleaning, idle or dirty, and stays there while it is held.
[UNIT-3]

Other modules: `lifecycle` (who moves a unit on, and by when), `maintenance` (what operators do), `quarantine` (units
that cannot be put back), `visibility` (searching for a unit in its driver's list).

A unit's row has its journal, the latest decisions about it. The commit that makes a decision writes the entry, so an
entry costs no further write and exists exactly when the decision does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar

from penstock.kernel import limits
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Place, Row

JOURNAL_ENTRIES = 32
"""How many entries are kept. A worker that serves many jobs drops its oldest ones."""

JOURNAL_CHARS = 400
"""How many characters of an entry are kept: DynamoDB charges by the size of a row."""

HELLO = "its agent said hello"
"""The entry that says that a worker's agent came for its job."""

MADE = ("made", HELLO, "handed over to job ")
"""How the entries begin that say that a worker's machine exists for a lease."""

FREED = ("destroyed", "clean, and kept ", "quarantined: ")
"""How the entries begin that say that a unit was given back after a lease."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Entry:
    """A decision and its reason. `at`: milliseconds since 1970, which is shorter than a date."""

    at: int
    what: str

    @property
    def time(self) -> datetime:
        """When it was decided."""
        return _EPOCH + timedelta(milliseconds=self.at)


@dataclass(frozen=True)
class Journal:
    """The latest entries, and how many were dropped before them, so that entries keep their numbers, from 1."""

    entries: tuple[Entry, ...] = ()
    forgotten: int = 0

    def with_(self, now: datetime, what: str) -> Journal:
        """The journal with one more entry."""
        entry = Entry((now - _EPOCH) // timedelta(milliseconds=1), what[:JOURNAL_CHARS])
        kept = (*self.entries, entry)[-JOURNAL_ENTRIES:]
        return Journal(kept, self.forgotten + len(self.entries) + 1 - len(kept))

    def first(self, since: datetime, beginnings: tuple[str, ...]) -> datetime | None:
        """When the first entry since a time was written that begins with one of some words; None if there is none."""
        at = (since - _EPOCH) // timedelta(milliseconds=1)
        return next((each.time for each in self.entries if each.at >= at and each.what.startswith(beginnings)), None)

    def after(self, number: int) -> Sequence[tuple[int, Entry]]:
        """The entries after a number, each with its own number."""
        return [(seq, entry) for seq, entry in enumerate(self.entries, self.forgotten + 1) if seq > number]


HOLD_DEFAULT = 8 * 3600


HOLD_MOST = limits.HOLD_SECONDS
"""The default duration of a hold and the longest, in seconds. Hold again to have more."""

HOLD_REASON_CHARS = 300
"""How many characters a reason may have."""


@dataclass(frozen=True)
class Hold:
    """Until then nothing automatic touches the unit, whatever becomes of its job. [UNIT-3]"""

    by: str
    reason: str
    since: datetime
    until: datetime

    def __str__(self) -> str:
        return f"held by {self.by} until {format_time(self.until)}: {self.reason}"


@dataclass(frozen=True)
class Drain:
    """The unit is not leased again. It is destroyed after its lease; with `at_once` its lease is ended for that."""

    by: str
    reason: str
    since: datetime
    at_once: bool = False

    def __str__(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return f"{'recycled' if self.at_once else 'drained'} by {self.by}{why}"


def format_time(time: datetime) -> str:
    """A time as text in sentences."""
    return time.isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")


MAX_SEARCHES = 13
"""How often a unit is searched for in its driver's list: every 5 seconds for a minute."""


@dataclass(frozen=True)
class Search:
    """The search in a driver's list: when it succeeded, how often it failed, when it is repeated, and the last
    error.
    """

    found: datetime | None = None
    tries: int = 0
    again: datetime | None = None
    why: str | None = None

    @property
    def is_over(self) -> bool:
        """Whether the search succeeded or was given up."""
        return self.found is not None or self.tries >= MAX_SEARCHES


@dataclass(frozen=True)
class Visibility:
    """The two searches for a unit in its driver's list: present after it was made, absent after it was destroyed."""

    there: Search = field(default_factory=Search)
    gone: Search = field(default_factory=Search)


STEP_WITHIN = timedelta(seconds=45)
"""How long a message to a factory or well may take before the sweep sends it again."""

CLEAN_WITHIN = timedelta(minutes=3)
"""How long a worker's agent may take to report that it is clean, or a call of a well to clean. No function of ours
lives that long, so that two calls never overlap.
"""


LINGERS = timedelta(minutes=10)
"""How long after its lease nobody expects any more that a unit is put back any moment. Most take seconds; three calls
that clean may each take CLEAN_WITHIN.
"""


class UnitKind(StrEnum):
    """Who makes the unit: a factory makes workers, a well makes resources."""

    WORKER = "worker"
    RESOURCE = "resource"


class UnitState(StrEnum):
    """The state of a unit. Who moves it on, and by when, is in `lifecycle`."""

    CREATING = "creating"
    READY = "ready"
    CLEANING = "cleaning"
    IDLE = "idle"
    DIRTY = "dirty"
    QUARANTINED = "quarantined"
    GONE = "gone"


@dataclass(frozen=True)
class CleanProof:
    """The record that a unit was cleaned: who did it, when, and what was checked in data that is `lag` seconds old.
    [UNIT-2]
    """

    by: str
    time: datetime
    checked: str
    lag: int = 0


@dataclass(frozen=True)
class UnitLease:
    """The slots that a unit takes for as long as it exists, and the job of its present lease, or of its last.

    A new lease changes it. A unit that is made ahead of need has had no lease, and its job is "".
    `also` are the pools and names of the slots that it takes beside its own; `leases` counts the leases it has had.
    `is_over` says that the job's lease is released, although the unit is not gone.
    """

    job: str
    attempt: int
    order: int
    pool: str
    slot: str
    fence: int
    also: tuple[tuple[str, str], ...] = ()
    leases: int = 1
    is_over: bool = False


@dataclass(frozen=True)
class Creation:
    """How the unit is made. Its driver's answers move it, and a new lease does, since a well makes a resource anew.

    `born` is when the unit was ordered, `made` when its driver or its agent said that it exists. `is_making` says that
    the driver has begun and is not done; `bare` is when that found nothing of it, and is asked for none since.
    `is_probe` says that the unit was made to see whether its target boots again. `metadata` is what a factory says of
    its machine; `notes` are the driver's own, for its next call. `to_order` says that a worker is made as its job says.
    """

    born: datetime | None = None
    made: datetime | None = None
    is_making: bool = False
    bare: datetime | None = None
    is_probe: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)
    to_order: bool = False


@dataclass(frozen=True)
class DriverStep:
    """The step that the unit's driver has to take. Most changes of state begin a new one; `retries` counts its tries.

    `reason` is why the unit is in its state, or why the step failed. `next_look` is when the message comes that asks
    for the step again, None when none was sent for later; `busy` is until when the present call may be under
    way; it is set for calls that must not overlap, and for those of a step that comes late.
    """

    reason: str | None = None
    tries: int = 0
    next_look: datetime | None = None
    busy: datetime | None = None


@dataclass(frozen=True)
class AgentSession:
    """What is known of a worker's agent. Its hello and its heartbeats move it, and so does the end of a lease.

    `agent` is the agent's version and `heard` when it was last heard of during a lease. `token_hash` is that of its
    present token; `past_hash` knows it again by the token that it had before. `may_run` says that the lease ended, and
    nobody said that the script did.
    """

    agent: str = ""
    token_hash: str | None = None
    past_hash: str | None = None
    heard: datetime | None = None
    may_run: bool = False


@dataclass(frozen=True)
class Cleaning:
    """What becomes of the unit between two leases. The end of a lease moves it, and so does the next one.

    `is_kept` says that its pool keeps units for the next lease; `until` is how long it may be idle. `begun` is since
    when its driver cleans or destroys it, so that it is too late to hold it; `proof` is the record that it was cleaned.
    """

    begun: datetime | None = None
    proof: CleanProof | None = None
    is_kept: bool = False
    until: datetime | None = None


@dataclass(frozen=True)
class ResourceAccess:
    """What a job may know of a resource. The well's answers move it, and the end of the lease clears it.

    `sealed` is for the job alone. `renews` is when the well is asked anew, for what it said ends by itself.
    """

    sealed: str = ""
    renews: datetime | None = None


@dataclass(frozen=True)
class UnitHealth:
    """What is wrong with the unit: what its agent or a canary found, what did not come, and how destroying it fails.

    A unit that is `broken` is lent to nobody. `is_unheard` says that its agent never said hello in time. `stuck` counts
    the failures to destroy it that time does not mend, `reminders` those that it is in quarantine.
    """

    broken: str | None = None
    is_unheard: bool = False
    stuck: int = 0
    reminders: int = 0


@dataclass(frozen=True, kw_only=True)
class Unit(Row):
    """A worker or a resource, known by an id that was chosen before it was made.

    Each group of fields is a value of its own that changes as a whole: a write says which part of the unit it changes.
    `seen` is set for a unit that is looked for in its driver's list: see `visibility`.
    """

    kind: ClassVar[str] = "unit"
    shards: ClassVar[int] = 8
    id: str
    is_a: UnitKind
    maker: str
    type: str
    state: UnitState
    since: datetime
    due: datetime | None
    lease: UnitLease
    creation: Creation = Creation()
    step: DriverStep = DriverStep()
    session: AgentSession = AgentSession()
    cleaning: Cleaning = Cleaning()
    access: ResourceAccess = ResourceAccess()
    health: UnitHealth = UnitHealth()
    hold: Hold | None = None
    drain: Drain | None = None
    seen: Visibility | None = None
    journal: Journal = field(default_factory=Journal)

    @property
    def key(self) -> Key:
        return unit_key(self.id)

    @property
    def deadline(self) -> datetime | None:
        return self.due

    @property
    def place(self) -> Place | None:
        return None if self.state is UnitState.GONE or self.due else Place(listing(self.is_a), self.id)

    @property
    def is_leased(self) -> bool:
        """Whether an attempt leases the unit."""
        return self.state in (UnitState.CREATING, UnitState.READY)

    @property
    def is_recycled(self) -> bool:
        """Whether a recycle of the unit has to end the attempt that leases it."""
        return self.drain is not None and self.drain.at_once and self.is_leased

    @property
    def is_broken(self) -> bool:
        """Whether the unit is broken, or is a worker that never said hello."""
        return self.health.broken is not None or (self.is_a is UnitKind.WORKER and self.health.is_unheard)

    @property
    def expiry(self) -> datetime | None:
        return self.since + timedelta(days=30) if self.state is UnitState.GONE else None


PREFIXES = {UnitKind.WORKER: "w-", UnitKind.RESOURCE: "r-"}
"""How the ids of units begin."""


def listing(is_a: UnitKind) -> str:
    """The listing of the units of a kind that are not due. The others are in the due index."""
    return f"{is_a}s"


def unit_in(key: Key) -> str:
    """The id of the unit whose row has a key."""
    return key.pk.partition("#")[2]


def unit_key(unit: str) -> Key:
    """The key of a unit's row."""
    return Key(f"unit#{unit}", "unit")


def add_entry(unit: Unit, now: datetime, what: str) -> Unit:
    """A unit with one more journal entry."""
    return replace(unit, journal=unit.journal.with_(now, what))


def with_notes(unit: Unit, notes: Mapping[str, Any] | None) -> Unit:
    """A unit with its driver's notes for the next call; None leaves them as they are."""
    return unit if notes is None else replace(unit, creation=replace(unit.creation, notes=notes))


def is_held(unit: Unit, now: datetime) -> bool:
    """Whether a hold is in force: nothing automatic may touch the unit then. [UNIT-3]"""
    return unit.hold is not None and now < unit.hold.until


def is_lingering(unit: Unit, now: datetime) -> bool:
    """Whether a unit's lease ended so long ago that nobody can say when its slots come back: it is held, its driver
    fails, or it waits for another unit of its job.
    """
    return unit.state in (UnitState.CLEANING, UnitState.DIRTY) and now - unit.since >= LINGERS


def is_late(unit: Unit, now: datetime) -> bool:
    """Whether a step comes so late that its message was lost, or that a call before it left no answer.

    Only the calls of such a step are recorded before they begin; for all others that write would be in vain.
    """
    renews = unit.access.renews if unit.state is UnitState.READY else None
    expected = max(time for time in (unit.since, unit.step.next_look, renews) if time)
    return expected + STEP_WITHIN <= now


def is_due(unit: Unit, now: datetime) -> bool:
    """Whether a unit is due. A leased resource without expiring credentials never is."""
    return unit.due is not None and unit.due <= now


def is_prewarming(unit: Unit) -> bool:
    """Whether a prewarmed unit is still being made. Its idle time has not started."""
    return unit.state is UnitState.IDLE and unit.cleaning.until is None


def mark_made(unit: Unit, now: datetime, boot: timedelta, metadata: Mapping[str, Any] | None = None) -> Unit:
    """A worker whose machine was ordered: it has to say hello before the boot deadline."""
    unit = add_entry(unit, now, f"made after {unit.step.tries} failures" if unit.step.tries else "made")
    told, due = metadata or unit.creation.metadata, now + boot
    return replace(
        unit,
        creation=replace(unit.creation, made=now, metadata=told),
        step=replace(unit.step, tries=0, reason=None, next_look=None, busy=None),
        due=due,
    )


def hello(unit: Unit, token_hash: str, now: datetime, lease: timedelta, agent: str = "") -> Unit:
    """A worker whose agent said hello. It has to renew before its lease runs out.

    The hello proves that it was made, also if it comes before the factory's own answer.
    """
    made = unit.creation.made or now
    unit = add_entry(unit, now, HELLO)
    return replace(
        unit,
        state=UnitState.READY,
        creation=replace(unit.creation, made=made),
        session=replace(unit.session, token_hash=token_hash, past_hash=None, agent=agent, heard=now),
        step=replace(unit.step, busy=None),
        since=now,
        due=now + lease,
    )


def waited(unit: Unit, granted: datetime) -> timedelta:
    """How long a job waited for a worker's agent after it was granted the worker; nothing where that is not known."""
    heard = unit.journal.first(granted, (HELLO,))
    return max(heard - granted, timedelta(0)) if heard else timedelta(0)


def is_made_for(unit: Unit, granted: datetime) -> bool:
    """Whether a unit was made for the lease that was granted then. What was kept, or made ahead of need, is older."""
    return unit.creation.born is not None and unit.creation.born >= granted


RENEWAL_AGE = 0.75
"""From which part of a heartbeat on, counted from the last renewal, lines of the log renew a worker's lease."""


def is_renewal_near(unit: Unit, now: datetime, heartbeat: timedelta) -> bool:
    """Whether a worker's next heartbeat is so near that a call that brings something else takes its place."""
    return now - (unit.session.heard or unit.since) >= heartbeat * RENEWAL_AGE


def renew(unit: Unit, now: datetime, lease: timedelta) -> Unit:
    """A worker that was in contact. One that is recycled stays due: its attempt has to end in any case.

    The due index is written only once less than half a lease is left of the time that it has. So most heartbeats do not
    write it, and the sweep never looks at a worker that is in contact.
    """
    heard = replace(unit, session=replace(unit.session, heard=now))
    if unit.drain and unit.drain.at_once:
        return heard
    is_near = unit.indexed is None or unit.indexed.at < now + lease / 2
    return replace(heard, due=now + lease, indexed=None if is_near else unit.indexed)


def end_lease(unit: Unit, reason: str, now: datetime, *, ended_well: bool = False) -> Unit:
    """A unit whose lease has ended: from now on its credentials are invalid. [SEC-1]

    If it was ready and did not fail its job, and its pool keeps units, it is cleaned for the next lease. A worker's
    agent cleans it, or its factory destroys it, right after this; a resource may have to wait for its turn, which is
    another commit. A held unit waits for its operator. [UNIT-3]
    """
    if not unit.is_leased:
        return unit
    is_worker, is_ready = unit.is_a is UnitKind.WORKER, unit.state is UnitState.READY
    begun = now if is_worker and not is_held(unit, now) else None
    may_run = is_worker and is_ready and not ended_well and unit.health.broken is None
    unit = replace(unit, session=replace(unit.session, may_run=may_run))
    if unit.cleaning.is_kept and ended_well and is_ready and unit.drain is None and unit.health.broken is None:
        unit = add_entry(unit, now, f"{reason}; it is to be cleaned for the next")
        pause = CLEAN_WITHIN if is_worker else STEP_WITHIN
        return replace(
            unit,
            state=UnitState.CLEANING,
            step=replace(unit.step, reason=reason, tries=0, next_look=None),
            since=now,
            due=_rest(unit, now, pause),
            session=replace(unit.session, token_hash=None, past_hash=unit.session.token_hash),
            access=replace(unit.access, sealed=""),
            cleaning=replace(unit.cleaning, begun=begun),
        )
    return _dirty(unit, reason, now, begun)


def release_lease(unit: Unit) -> Unit:
    """A unit whose lease is released: the attempt's other units are put back, and its job goes on without it."""
    return replace(unit, lease=replace(unit.lease, is_over=True))


def ends_lease(unit: Unit) -> bool:
    """Whether a lease of this unit has ended and is not released yet."""
    has_ended = unit.state in (UnitState.CLEANING, UnitState.DIRTY, UnitState.QUARANTINED)
    return has_ended and bool(unit.lease.job) and not unit.lease.is_over


def _rest(unit: Unit, now: datetime, pause: timedelta) -> datetime:
    """When a unit without a lease goes on: after its hold, or after a pause."""
    return unit.hold.until if unit.hold and is_held(unit, now) else now + pause


def begin_end(unit: Unit, now: datetime) -> Unit:
    """A unit that its driver is about to clean or destroy. Raises ValueError for a held unit. [UNIT-3]"""
    if is_held(unit, now):
        raise ValueError(f"unit {unit.id} is {unit.hold}")
    return replace(unit, cleaning=replace(unit.cleaning, begun=unit.cleaning.begun or now))


def give_up(unit: Unit, reason: str, now: datetime) -> Unit:
    """A unit without a lease that is not kept: from now on it can only be destroyed. [UNIT-2]

    Raises ValueError for a unit that is leased or held. [UNIT-3]
    """
    if unit.state not in (UnitState.CLEANING, UnitState.IDLE):
        raise ValueError(f"unit {unit.id} is {unit.state}, not cleaning or idle")
    fresh = replace(unit, cleaning=replace(unit.cleaning, begun=None))
    return _dirty(unit, reason, now, begin_end(fresh, now).cleaning.begun)


def _dirty(unit: Unit, reason: str, now: datetime, begun: datetime | None) -> Unit:
    """The hash of the agent's token stays, so that the agent can still ask whether its machine is wanted."""
    unit = add_entry(unit, now, f"{reason}; it is to be destroyed")
    return replace(
        unit,
        state=UnitState.DIRTY,
        step=replace(unit.step, reason=reason, tries=0, next_look=None),
        since=now,
        due=_rest(unit, now, STEP_WITHIN),
        session=replace(unit.session, token_hash=None, past_hash=unit.session.token_hash or unit.session.past_hash),
        cleaning=replace(unit.cleaning, begun=begun),
    )


def mark_broken(unit: Unit, reason: str, now: datetime) -> Unit:
    """A broken unit: it is never leased again. The first reason stands."""
    if unit.health.broken:
        return unit
    return replace(add_entry(unit, now, f"broken: {reason}"), health=replace(unit.health, broken=reason))


def mark_gone(unit: Unit, proof: CleanProof, now: datetime) -> Unit:
    """A unit that is gone. It needs the record that it was cleaned up. [UNIT-2]"""
    unit = add_entry(unit, now, f"destroyed ({proof.by}: {proof.checked})")
    return replace(
        unit,
        state=UnitState.GONE,
        cleaning=replace(unit.cleaning, proof=proof),
        step=replace(unit.step, busy=None),
        since=now,
        due=None,
        access=replace(unit.access, sealed=""),
    )


MIN_RENEWAL = timedelta(minutes=1)
"""The shortest validity: what expires sooner is renewed as if it were valid for this long."""


def ready(unit: Unit, sealed: str, now: datetime, expires: datetime | None = None) -> Unit:
    """A resource that its well has made. From now on it is due only when its hold ends or its credentials have to
    be renewed; the job's row has the deadline.
    """
    unit = add_entry(unit, now, f"ready after {unit.step.tries} failures" if unit.step.tries else "ready")
    return with_credentials(
        replace(unit, state=UnitState.READY, creation=replace(unit.creation, made=now), since=now), sealed, now, expires
    )


def with_credentials(unit: Unit, sealed: str, now: datetime, expires: datetime | None) -> Unit:
    """A resource with the credentials of its well, renewed when half of their validity is over. [SEC-1]"""
    renews = now + max(expires - now, MIN_RENEWAL) / 2 if expires else None
    lent = replace(
        unit,
        access=replace(unit.access, sealed=sealed, renews=renews),
        step=replace(unit.step, reason=None, tries=0, next_look=None, busy=None),
    )
    return replace(lent, due=lease_due(lent))


def lease_due(unit: Unit) -> datetime | None:
    """When a leased resource is due: when its hold ends, or when its credentials have to be renewed."""
    return min((time for time in (unit.hold and unit.hold.until, unit.access.renews) if time), default=None)
