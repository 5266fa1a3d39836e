"""Cool-downs: what a factory or well has just refused is not requested again for a while, by anybody.

    (no row) ──refused──▶ cooling ──its time is over──▶ probed by one unit ──available again──▶ (no row)
                             ▲                               └─ refused again: cools for longer
                             └───────────────────────────────┘

There is a row per maker and scope. A scope is the driver's own name for what is short. Where the driver has no name,
the scope is the type that was requested, with the options of its job, or the kind of call. Everybody else avoids the
scope until the one unit that may probe it has its answer, or its time is over.

A shortage is only of what is to be made. To renew the credentials of a unit makes nothing: no shortage stops that, and
it proves nothing of one. Only a maker that asks to be called less often stops it too.

`Budget` limits how many mutating calls per second a site makes to one factory or well: a token bucket.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from math import ceil
from typing import Any, ClassVar
from zlib import crc32

from penstock.domain.units import quarantine
from penstock.domain.units.units import UnitKind
from penstock.kernel.errors import DriverError, Misconfigured, QuotaReached, RateLimited, Short, Shortage
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Row

SCOPE_CHARS = 240
"""How much of a scope's name is in its key, which has 1024 bytes; a character takes up to four."""

WHY_CHARS = 500

NO_OPTIONS: Mapping[str, Any] = {}

_WITH_OPTIONS = "type/{} with its options "


PROBE_WITHIN = timedelta(minutes=3)
"""How long a unit may probe. Longer than a factory's function lives, so that two never probe at once."""

PROBED = timedelta(seconds=20)
"""When others check again while one probes: the calls of a create take seconds."""

SPREAD = 30
"""Seconds over which units that wait for the same moment are spread, so that they do not hit the next limit."""

MAX_WAIT = timedelta(minutes=10)
"""The longest time between two checks of a unit, whatever it waits for: SQS can delay a message by 15 minutes."""

FORGET = timedelta(days=1)
"""A cool-down that nobody probed for this long counts as nonexistent."""

_DOUBLINGS = 12


class Cause(StrEnum):
    """Why there is a cool-down."""

    RATE = "rate"  # the provider asks us to slow down; the scope is a kind of call
    CAPACITY = "capacity"  # the provider has none left
    QUOTA = "quota"  # our account may have no more
    WRONG = "misconfigured"  # only an operator can help
    BROKEN = "broken"  # what is made is broken, or does not boot, one after the other


PAUSES: Mapping[Cause, tuple[timedelta, timedelta]] = {
    # As long as the provider says; else what RateLimited has by itself. At most what units back off by: units.py.
    Cause.RATE: (timedelta(seconds=30), timedelta(minutes=10)),
    # Karpenter forgets an offering without capacity after 3 minutes; half an hour is ours: the price of a probe then is
    # one call, so that longer gains nothing.
    Cause.CAPACITY: (timedelta(minutes=3), timedelta(minutes=30)),
    # Ours. Quotas are raised by people, in hours; what our own units give back ends the cool-down at once.
    Cause.QUOTA: (timedelta(minutes=5), timedelta(hours=1)),
    # Ours. At most what units back off by, so that a corrected setting is noticed within ten minutes.
    Cause.WRONG: (timedelta(minutes=1), timedelta(minutes=10)),
    # Ours. Each probe is a machine that is paid for; half an hour is how long a corrected image may wait to be noticed.
    Cause.BROKEN: (timedelta(minutes=5), timedelta(minutes=30)),
}
"""The first pause, and the longest, up to which it doubles."""


@dataclass(frozen=True)
class Obstacle:
    """What a call was refused. `seconds`: the pause that the provider named."""

    scope: str
    cause: Cause
    why: str
    seconds: int | None = None


@dataclass(frozen=True, kw_only=True)
class CoolDown(Row):
    """Nobody requests `scope` from `maker` until then. Afterwards one unit probes, and the others wait for its
    answer.

    `count`: refusals without a success in between; `met_by`: the unit that was refused last.
    """

    kind: ClassVar[str] = "cooldown"
    is_recreated: ClassVar[bool] = True
    maker: str
    scope: str
    cause: Cause
    why: str
    since: datetime
    until: datetime
    met_by: str
    count: int = 1
    probe: str | None = None
    probe_until: datetime | None = None

    @property
    def key(self) -> Key:
        return cool_down_key(self.maker, self.scope)

    @property
    def expiry(self) -> datetime | None:
        return self.until + FORGET

    @property
    def stops(self) -> bool:
        """Whether it stops all calls of a kind, whatever they are for."""
        return self.cause is Cause.RATE

    def is_probed(self, now: datetime) -> bool:
        """Whether a unit is probing, and not overdue."""
        return self.probe is not None and self.probe_until is not None and now < self.probe_until

    def is_open_to(self, unit: str, now: datetime) -> bool:
        """Whether this unit may probe: the time is over, and nobody else probes."""
        return self.until <= now and (self.probe == unit or not self.is_probed(now))


@dataclass(frozen=True, kw_only=True)
class Failure(Row):
    """How often a maker's driver failed with one code, and its last message. For people."""

    kind: ClassVar[str] = "failure"
    maker: str
    code: str
    message: str
    count: int
    first: datetime
    last: datetime

    @property
    def key(self) -> Key:
        return failure_key(self.maker, self.code)

    @property
    def expiry(self) -> datetime | None:
        return self.last + timedelta(days=7)


def collection(maker: str) -> str:
    """The collection of a maker's rows, such as `factory/aws`."""
    return f"maker#{maker}"


def maker_of(is_a: UnitKind, name: str) -> str:
    """The name of a factory or well among all makers."""
    return f"{'factory' if is_a is UnitKind.WORKER else 'well'}/{name}"


def cool_down_key(maker: str, scope: str) -> Key:
    """The key of a scope's cool-down."""
    return Key(collection(maker), f"scope#{scope[:SCOPE_CHARS]}")


def failure_key(maker: str, code: str) -> Key:
    """The key of the count of a code's failures."""
    return Key(collection(maker), f"failure#{code[:SCOPE_CHARS]}")


def type_scope(unit_type: str, options: Mapping[str, Any] = NO_OPTIONS) -> str:
    """The scope of a shortage for which the driver has no name: the type, with the options that a job gave to it.

    So what one job's options meet stops nobody who asks for the type with others, or without any.
    """
    if not options:
        return f"type/{unit_type}"
    digest = sha256(json.dumps(options, sort_keys=True, default=str).encode()).hexdigest()
    return f"{_WITH_OPTIONS.format(unit_type)}{digest[:8]}"


def broken_scope(unit_type: str) -> str:
    """The scope of a target whose workers are broken."""
    return f"broken/{unit_type}"


def is_of_options(row: CoolDown, unit_type: str) -> bool:
    """Whether a cool-down is of this type with some options only."""
    return row.scope.startswith(_WITH_OPTIONS.format(unit_type))


def whole_scopes(unit_type: str, options: Mapping[str, Any] = NO_OPTIONS) -> frozenset[str]:
    """The scopes that stop a unit of a type with these options, whatever its driver could do."""
    return frozenset({type_scope(unit_type), type_scope(unit_type, options), broken_scope(unit_type)})


def concerns(row: CoolDown, whole: Collection[str]) -> bool:
    """Whether a call for a unit with these whole scopes can end a cool-down: one of a type, only a call for it can."""
    return row.scope in whole or not row.scope.startswith(("type/", "broken/"))


def stopping_all(rows: Iterable[CoolDown]) -> list[CoolDown]:
    """The cool-downs that also stop a call which makes nothing: the maker asked to be called less often."""
    return [row for row in rows if row.stops]


def obstacles(
    error: DriverError, unit_type: str, avoided: Iterable[str] = (), options: Mapping[str, Any] = NO_OPTIONS
) -> list[Obstacle]:
    """The scopes that a driver's error says are short. Nothing new if the driver could only avoid everything
    already.
    """
    why = str(error)[:WHY_CHARS]
    if isinstance(error, RateLimited):
        return [Obstacle(f"calls/{error.calls}" if error.calls else "calls", Cause.RATE, why, error.seconds)]
    if isinstance(error, Misconfigured):
        return [Obstacle(type_scope(unit_type, options), Cause.WRONG, why)]
    if not isinstance(error, Short):
        return []
    is_quota = isinstance(error, QuotaReached)
    found = from_shortages(error.shortages, is_quota=is_quota)
    nameless = Obstacle(type_scope(unit_type, options), Cause.QUOTA if is_quota else Cause.CAPACITY, why)
    return found or ([] if set(avoided) else [nameless])


def from_shortages(shortages: Sequence[Shortage], *, is_quota: bool = False) -> list[Obstacle]:
    """The scopes of the shortages that a driver met on its way."""
    return [
        Obstacle(each.scope, Cause.QUOTA if is_quota or each.is_quota else Cause.CAPACITY, each.why[:WHY_CHARS])
        for each in shortages
    ]


def record(row: CoolDown | None, what: Obstacle, maker: str, unit: str, now: datetime) -> CoolDown | None:
    """The cool-down after a unit was refused; None if it does not change.

    A refusal while it was cooling belongs to a request from before: it does not count as a further try.
    """
    before = row if row and now < row.until + FORGET else None
    is_cooling = before is not None and now < before.until
    if is_cooling and what.cause is not Cause.RATE:
        return None
    count = (before.count + (not is_cooling)) if before else 1
    until = now + pause(what, count)
    if before and until <= before.until:
        return None
    return CoolDown(
        maker=maker, scope=what.scope, cause=what.cause, why=what.why, since=before.since if before else now,
        until=until, met_by=unit, count=count, version=row.version if row else 0,
    )  # fmt: skip


def pause(what: Obstacle, count: int) -> timedelta:
    """How long the pause is, the first time and after each further refusal."""
    first, most = PAUSES[what.cause]
    told = timedelta(seconds=max(1, what.seconds)) if what.seconds is not None else first
    grown: timedelta = told * (1 << min(count - 1, _DOUBLINGS))
    return max(told, min(grown, most))


def probe(row: CoolDown, unit: str, now: datetime) -> CoolDown:
    """The cool-down with the one unit that may probe. A boot takes longer to try than a call."""
    within = quarantine.PROBE_WITHIN if row.cause is Cause.BROKEN else PROBE_WITHIN
    return replace(row, probe=unit, probe_until=now + within)


def end_probe(row: CoolDown) -> CoolDown:
    """The cool-down after its probe used something else in the end: the next unit may probe."""
    return replace(row, probe=None, probe_until=None)


def allow_now(row: CoolDown, now: datetime) -> CoolDown | None:
    """A quota's cool-down after a unit of ours was destroyed: it may be probed now. None if it already may."""
    return replace(row, until=now) if row.cause is Cause.QUOTA and now < row.until else None


def remembered(rows: Iterable[CoolDown], now: datetime) -> list[CoolDown]:
    """The cool-downs that are not forgotten."""
    return [row for row in rows if now < row.until + FORGET]


def wait(row: CoolDown, unit: str, now: datetime) -> int:
    """After how many seconds a unit that a cool-down stops checks again."""
    left = row.until - now if now < row.until else PROBED
    return int(min(left + timedelta(seconds=spread(unit)), MAX_WAIT).total_seconds())


def spread(unit: str, over: int = SPREAD) -> int:
    """Some seconds, always the same for the same unit."""
    return 1 + crc32(unit.encode()) % over


def describe(row: CoolDown, now: datetime) -> str:
    """A cool-down as a sentence."""
    what = {
        Cause.RATE: f"the provider asks to slow down ({row.scope})",
        Cause.CAPACITY: f"no capacity for {row.scope}",
        Cause.QUOTA: f"the quota of {row.scope} is used up",
        Cause.WRONG: f"misconfigured for {row.scope}",
        Cause.BROKEN: f"its workers are {row.scope}, one after the other",
    }[row.cause]
    times = "once" if row.count == 1 else f"{row.count} times"
    return f"{row.maker.replace('/', ' ', 1)}: {what}{_next_try(row, now)} (tried {times}): {row.why}"


def _next_try(row: CoolDown, now: datetime) -> str:
    """When it is tried again, or by which unit."""
    if row.is_probed(now):
        return f"; {row.probe} tries it now"
    if row.until <= now:
        return "; the next unit that needs it tries it"
    stops = {Cause.WRONG: "; nobody asks again", Cause.BROKEN: "; none is made"}
    return f"{stops.get(row.cause, '')} until {row.until:%H:%M} UTC"


def count_failure(row: Failure | None, maker: str, error: DriverError, now: datetime) -> Failure:
    """One more failure of its code."""
    code, message = code_of(error), str(error)[:WHY_CHARS]
    if row is None:
        return Failure(maker=maker, code=code, message=message, count=1, first=now, last=now)
    return replace(row, message=message, count=row.count + 1, last=now)


def code_of(error: DriverError) -> str:
    """The code under which an error is counted: the provider's own, if no table maps it yet."""
    kind = type(error).__name__
    code = getattr(error, "code", "")
    return f"{kind}:{code}" if code else kind


@dataclass(frozen=True, kw_only=True)
class Budget(Row):
    """The token bucket of one maker: how many tokens it had, and when."""

    kind: ClassVar[str] = "budget"
    maker: str
    tokens: float
    at: datetime

    @property
    def key(self) -> Key:
        return budget_key(self.maker)

    @property
    def expiry(self) -> datetime | None:
        return self.at + timedelta(days=1)  # it is full again long before


def budget_key(maker: str) -> Key:
    """The key of a maker's bucket."""
    return Key(collection(maker), "budget")


def take_token(row: Budget | None, maker: str, rate: float, now: datetime) -> Budget | None:
    """The bucket after taking a token; None if there is none. It holds one second's worth."""
    most = max(1.0, rate)
    tokens = _tokens(row, rate, now) if row else most
    if tokens < 1:
        return None
    return replace(row, tokens=tokens - 1, at=now) if row else Budget(maker=maker, tokens=tokens - 1, at=now)


def budget_wait(row: Budget, rate: float, unit: str, now: datetime) -> int:
    """After how many seconds a unit without a token tries again: when there is one, and not all at once."""
    until = max(0.0, 1 - _tokens(row, rate, now)) / rate
    return ceil(until) + spread(unit, 5) - 1


def _tokens(row: Budget, rate: float, now: datetime) -> float:
    passed = max(0.0, (now - row.at).total_seconds())
    return min(max(1.0, rate), row.tokens + passed * rate)
