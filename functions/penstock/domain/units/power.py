"""Switching hosts on and off: what a host's controller was asked for last, and what came of it.

    (none) ──a job waits──▶ on, asked ──its agent connects──▶ on, at rest ──idle──▶ off, asked ──done──▶ off, at rest
                             ▲     └──nothing came of it──▶ on, at rest, asked again after a pause          │
                             └──────────────────────────────a job waits─────────────────────────────────────┘

A host that is on and stays away is switched off too: nobody knows what it does, and it costs.

Each order has a serial number, which only grows, so the row is never deleted. A controller refuses an older number than
it has seen: a late request changes nothing. While an order may still take a host's power, the host is shut: its
agent is not let in, so nothing is granted on a machine that is about to go off. [JOB-2]
docs/decisions/0100-hosts-are-switched-on-for-jobs.md
docs/decisions/0108-a-host-that-is-on-and-away-is-switched-off.md
docs/decisions/0109-a-host-is-switched-on-to-be-cleaned.md
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import ClassVar

from penstock.domain.pools.grants import Stock
from penstock.domain.pools.matching import Matching, Sorting, choosing, wishes
from penstock.domain.pools.packing import Packing, occupants
from penstock.domain.pools.pools import Claim
from penstock.domain.site.site import Maker
from penstock.domain.units.retries import EARLY
from penstock.domain.units.units import CLEAN_WITHIN, STEP_WITHIN, format_time
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Row
from penstock.toml.checks import parse_duration

PAUSE, PAUSE_MOST = timedelta(minutes=1), timedelta(hours=1)
"""After an order for a host came to nothing, it is not asked for again for this long; doubled each time."""

_DOUBLINGS = 6

WHY_CHARS = 300


@dataclass(frozen=True)
class Power:
    """That a factory's controller switches hosts: on for jobs, and off once they were `idle` for so long, if set."""

    idle: timedelta | None = None


def power_of(maker: Maker) -> Power | None:
    """What a factory's settings say of power; None if it switches nothing. They were checked when they were applied."""
    said = maker.settings.get("power", False)
    if not maker.has_controller or said is False:
        return None
    idle = parse_duration(said["idle"]) if isinstance(said, Mapping) and "idle" in said else None
    return Power(timedelta(seconds=idle) if isinstance(idle, int) else None)


@dataclass(frozen=True, kw_only=True)
class PowerOrder(Row):
    """The last order for a host's power.

    `since`: when it was given; `due`: when its next step is, None at rest. `asked`: when the controller was asked last;
    `done`: when it said that it is done, or the host came before. `until`: by when the host is to come. `is_shut`: it
    may still lose its power. `missed`: how often in a row it did not come in time; `tries`: how often in a row the
    controller failed; `why`: what came of the last; `again`: before when nobody has it switched on again.
    `idle` is since when a host that is on is free, which it was all along if its slot has the same `fence`.
    """

    kind: ClassVar[str] = "power"
    host: str
    is_on: bool
    serial: int = 0
    since: datetime
    due: datetime | None = None
    asked: datetime | None = None
    done: datetime | None = None
    until: datetime | None = None
    is_shut: bool = False
    missed: int = 0
    tries: int = 0
    why: str | None = None
    again: datetime | None = None
    idle: datetime | None = None
    fence: int = 0

    @property
    def key(self) -> Key:
        return power_key(self.host)

    @property
    def deadline(self) -> datetime | None:
        return self.due

    @property
    def is_coming(self) -> bool:
        """Whether the host is being switched on, and nothing has failed yet."""
        return self.is_on and self.due is not None and self.again is None


def power_key(host: str) -> Key:
    """The key of the last order for a host's power."""
    return Key(f"host#{host}", "power")


def switch_on(was: PowerOrder | None, host: str, now: datetime, boot: timedelta) -> PowerOrder:
    """An order to switch a host on, which is to come within `boot`.

    One that did not come before is shut too: its controller may switch it off first. [JOB-2]
    """
    base = was or PowerOrder(host=host, is_on=True, since=now)
    tries = base.tries if base.is_on else 0
    is_shut = base.is_shut or base.missed > 0
    return replace(_ordered(base, now), is_on=True, until=now + boot, is_shut=is_shut, tries=tries)


def switch_off(was: PowerOrder, now: datetime) -> PowerOrder:
    """An order to switch a host off. From now on it is shut. [JOB-2]

    How often in a row it did not come is kept until its agent comes: others are tried before it.
    """
    return replace(_ordered(was, now), is_on=False, is_shut=True, until=None, tries=0)


def _ordered(base: PowerOrder, now: datetime) -> PowerOrder:
    return replace(
        base, serial=base.serial + 1, since=now, due=now + STEP_WITHIN, asked=None, done=None, why=None, again=None,
        idle=None,
    )  # fmt: skip


def chosen(
    claims: Sequence[Claim],
    stock: Stock,
    there: Iterable[str],
    away: Sequence[str],
    orders: Mapping[str, PowerOrder],
    now: datetime,
) -> list[str]:
    """Which of a pool's hosts that are away to switch on for these claims: those first that failed least.

    Those that are `there`, free, count, each as often as it has free slots, and those that are being switched on. One
    that did not come is left for a while, and another takes its place. Who chooses among hosts gets those that fit.
    """
    parts = stock.pool.share.parts if stock.pool.share else 1
    have = [*there, *(host for host, order in orders.items() if order.is_coming for _ in range(parts))]
    open_ = [host for host in away if may_be_switched_on(orders.get(host), now)]
    left = sorted(open_, key=lambda host: (_failures(orders.get(host)), host))
    found: list[str] = []
    while host := _next(claims, stock, [*have, *found * parts], [host for host in left if host not in found]):
        found.append(host)
    return found


def _next(claims: Sequence[Claim], stock: Stock, have: Sequence[str], left: Sequence[str]) -> str | None:
    """A host more for the first claim that lacks one: it fits, or somebody can take it instead of one that fits."""
    pool = stock.pool
    if pool.share:
        return _next_shared(claims, stock, Counter(have), left)
    sorting = Sorting(pool, choosing(claims, pool.name))
    matching, kinds = Matching(Counter(map(sorting.kind, have))), set(map(sorting.kind, (*have, *left)))
    for wish in (wish for claim in claims for wish in wishes(claim, pool.name)):
        number = matching.size
        if matching.add(sorting.fit(wish.choice, kinds), wish.count) < wish.count:
            reached = matching.reached(number)
            host = next((host for host in left if sorting.kind(host) in reached), None)
            if host:
                return host
    return None


def _next_shared(claims: Sequence[Claim], stock: Stock, have: Mapping[str, int], left: Sequence[str]) -> str | None:
    """A host more for the first claim that has no parts of one: it fits. No host does if it wants more than one has."""
    pool = stock.pool
    assert pool.share, "jobs share its hosts"
    packing = Packing(pool, have, occupants(pool, stock.had))
    for claim in claims:
        places = zip(wishes(claim, pool.name), packing.add(claim), strict=True)
        wanted = [wish.choice for wish, place in places if not place.has_it and wish.count <= pool.share.parts]
        fits = (host for host in left if any(each.fits(host, pool.labels.get(host, {})) for each in wanted))
        host = next(fits, None)
        if host:
            return host
    return None


def may_be_switched_on(order: PowerOrder | None, now: datetime) -> bool:
    """Whether a host may be ordered to be switched on: one that is being switched off at once."""
    if order is None or not order.is_on:
        return True
    return order.due is None and (order.again is None or order.again <= now)


def is_given_up(order: PowerOrder | None, now: datetime) -> bool:
    """Whether a host did not come when it was switched on, or is not asked for at the moment since that failed."""
    return order is not None and (order.missed > 0 or (order.again is not None and order.again > now))


def _failures(order: PowerOrder | None) -> int:
    return order.missed + order.tries if order else 0


def is_next(order: PowerOrder, now: datetime) -> bool:
    """Whether the next step may be taken: at once for a new order, and then when it is due."""
    return order.due is not None and (order.asked is None or order.due <= now + EARLY)


def is_missed(order: PowerOrder, now: datetime) -> bool:
    """Whether a host that was to be switched on is overdue. One that is shut is asked for until that is confirmed."""
    is_over = order.until is not None and order.until <= now + EARLY
    return is_over and order.asked is not None and not order.is_shut


def begin(order: PowerOrder, now: datetime) -> PowerOrder:
    """An order with which the controller is about to be asked. Nobody else asks before the call is certainly over."""
    return replace(order, asked=now, due=now + CLEAN_WITHIN)


def confirm(order: PowerOrder, now: datetime, boot: timedelta) -> PowerOrder:
    """An order that the controller carried out: no earlier one takes effect any more. A host that is on is awaited."""
    until = now + boot if order.is_on else None
    return replace(order, done=now, due=until, until=until, is_shut=False, tries=0, why=None, again=None)


def wait(order: PowerOrder, why: str | None, seconds: int, now: datetime) -> PowerOrder:
    """An order that takes a while: the controller is asked again in some seconds.

    A host that was to come by now counts as coming no longer, so that others take its place. [QUEUE-1]
    """
    due = now + timedelta(seconds=seconds)
    is_late = order.until is not None and order.until <= now
    return replace(order, due=due, why=_short(why), again=due if is_late else None)


def fail(order: PowerOrder, why: str, now: datetime, after: timedelta | None = None) -> PowerOrder:
    """An order for which the controller failed. `after` is the pause that it named, if it is longer than ours.

    A shut host is asked for again by itself, until one of its orders is confirmed. Any other only if a job still waits.
    """
    tries = order.tries + 1
    again = now + max(pause(tries), after or pause(tries))
    due = again if order.is_shut else None
    return replace(order, tries=tries, why=_short(why), due=due, again=again)


def miss(order: PowerOrder, now: datetime) -> PowerOrder:
    """An order to switch on a host that did not come in time."""
    missed = order.missed + 1
    since = f"it was switched on at {format_time(order.done)}" if order.done else "it was not switched on in time"
    why = f"{since}, and no agent came{f': {order.why}' if order.why else ''}"
    return replace(order, missed=missed, why=_short(why), due=None, again=now + pause(missed))


def arrive(order: PowerOrder, now: datetime) -> PowerOrder:
    """The order of a host whose agent connects: it is on. If it was to be off, somebody else switched it on.

    One that comes before its controller has confirmed that confirms it itself.
    """
    if order.is_shut:
        raise ValueError(f"{order.host} may still lose its power")
    done = order.done or (now if order.due else None)
    base = replace(order, done=done) if order.is_on else replace(order, is_on=True, since=now, asked=None, done=None)
    return replace(base, due=None, until=None, missed=0, tries=0, why=None, again=None, idle=None)


def settle(order: PowerOrder) -> PowerOrder:
    """An order that nobody carries out any more, since the site says nothing of power now. A host that was to be off,
    and of which nobody confirmed that, counts as one that was switched on.
    """
    on = order if order.is_on or order.done else replace(order, is_on=True, asked=order.since)
    return replace(on, due=None, until=None, is_shut=False, why=None, again=None)


def rest(was: PowerOrder | None, host: str, fence: int, idle: timedelta, now: datetime) -> PowerOrder | None:
    """The row of a host that is there and free: it is noted since when, or the host is to be switched off.

    None if neither is due yet. `fence` tells whether its slot was granted meanwhile.
    """
    if was is None or was.idle is None or was.fence != fence:
        base = was or PowerOrder(host=host, is_on=True, since=now)
        return replace(base, idle=now, fence=fence)
    return switch_off(was, now) if now - was.idle >= idle else None


def is_left_on(order: PowerOrder, away: datetime | None, idle: timedelta, now: datetime) -> bool:
    """Whether a host was switched on, and nothing of it was heard for so long that it is to be switched off again.

    Its controller may have done so, even if it never said that it is done. `away` is since when the host is, None if it
    never came.
    """
    asked = order.done or order.asked
    if not order.is_on or asked is None or order.due is not None:
        return False
    return now - max(asked, away or asked) >= idle


def pause(failures: int) -> timedelta:
    """How long nothing is asked of a host after so many failures in a row."""
    grown: timedelta = PAUSE * (1 << min(failures - 1, _DOUBLINGS))
    return min(grown, PAUSE_MOST)


def describe(order: PowerOrder) -> str | None:
    """An order for people; None if there is nothing to say: the host is on, or nobody asked."""
    why = f": {order.why}" if order.why else ""
    since = format_time(order.since)
    if not order.is_on:
        return (
            f"switched off since {format_time(order.done)}" if order.done else f"being switched off since {since}{why}"
        )
    if order.done and order.due:
        return f"switched on at {format_time(order.done)}, and expected by {format_time(order.due)}"
    if order.due:
        return f"being switched on since {since}{why}"
    if not order.again:
        return None
    return f"to be switched on since {since}, which failed{why}; asked again from {format_time(order.again)}"


def _short(why: str | None) -> str | None:
    return why[:WHY_CHARS] if why else why
