"""Cool-downs: what all functions together remember of each factory and well: what it is short of, and how often it may
be called.

Read before a unit is made, after one was destroyed, and by people; one short query each. What is remembered only helps:
a lost write must not delay anybody, nor must a row that cannot be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from penstock.domain import cooldowns
from penstock.domain.cooldowns import Budget, Cause, CoolDown, Failure, Obstacle, budget_key, collection, maker_of
from penstock.domain.site.site import Site
from penstock.domain.units.units import Unit, UnitKind, UnitState
from penstock.kernel.errors import DriverError, RateLimited, Short
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Create, Delete, Key, Replace, Row
from penstock.ports import NotYet, PlacementDriver, Ready
from penstock.system import System
from penstock.usecases.units import drivers

R = TypeVar("R", bound=Row)

TRIES = 4
"""How often a lost race is repeated."""

CALL_TRIES = 4
"""How often a lost race is repeated before the unit waits as if no call were left."""

GO_ON = 1
"""Seconds until a unit whose driver had no time for all alternatives tries the others."""


@dataclass(frozen=True)
class Permission:
    """Whether a unit may be asked for now, and how: the scopes that its call avoids, and those that it probes.

    With `wait` it may not, because of `why`.
    """

    avoid: frozenset[str] = frozenset()
    probes: frozenset[str] = frozenset()
    wait: int | None = None
    why: str | None = None


def request_create(on: System, site: Site, unit: Unit) -> Permission:
    """Whether a unit may be made now. At most one unit gets permission to probe what has cooled down."""
    found = cooldowns_of(on, maker_of(unit.is_a, unit.maker))
    kinds = _whole_scopes(on, unit, found)
    whole = [row for row in found if row.stops or (row.scope in kinds and not unit.creation.is_making)]
    given = _request(on, site, unit, whole, [row for row in found if cooldowns.concerns(row, kinds)])
    short = {row.scope for row in found if row.cause is not Cause.BROKEN}
    return given if given.wait is not None else replace(given, avoid=frozenset(short - given.probes))


def request_renewal(on: System, site: Site, unit: Unit) -> Permission:
    """Whether a well may be asked again for what expires: it makes nothing for that, so no shortage is in its way."""
    stops = cooldowns.stopping_all(cooldowns_of(on, maker_of(unit.is_a, unit.maker)))
    return _request(on, site, unit, stops, stops)


def _request(
    on: System, site: Site, unit: Unit, whole: Sequence[CoolDown], concerning: Sequence[CoolDown]
) -> Permission:
    """Whether a call may be made now that all of `whole` stop, and whose answer may end those that concern it."""
    now = on.world.now()
    shut = [row for row in whole if not row.is_open_to(unit.id, now)]
    if shut:
        return _denied(on, shut, unit)
    wait = take_call(on, site, unit)
    if wait is not None:
        return Permission(wait=wait, why=f"no more calls a second are made to {unit.maker} than its `rate` says")
    probed = {row.scope for row in concerning if _probe(on, row, unit)}
    lost = [row for row in whole if row.scope not in probed]
    if lost:
        for row in concerning:
            if row.scope in probed:
                _release_probe(on, row.key, unit)
        return _denied(on, lost, unit)
    return Permission(probes=frozenset(probed))


def _denied(on: System, by: Sequence[CoolDown], unit: Unit) -> Permission:
    now = on.world.now()
    last = max(by, key=lambda row: cooldowns.wait(row, unit.id, now))
    return Permission(wait=cooldowns.wait(last, unit.id, now), why=cooldowns.describe(last, now))


def _whole_scopes(on: System, unit: Unit, found: Sequence[CoolDown]) -> frozenset[str]:
    """The scopes that stop a unit. Its job is read only where options make a difference."""
    is_split = any(cooldowns.is_of_options(row, unit.type) for row in found)
    return cooldowns.whole_scopes(unit.type, drivers.options_of(on, unit) if is_split else {})


def _concerning(on: System, unit: Unit) -> list[CoolDown]:
    """The cool-downs that a call for a unit may end."""
    found = cooldowns_of(on, maker_of(unit.is_a, unit.maker))
    whole = _whole_scopes(on, unit, found)
    return [row for row in found if cooldowns.concerns(row, whole)]


def _probe(on: System, row: CoolDown, unit: Unit) -> bool:
    """Become the one that probes: one conditional write, which only one can win."""
    now = on.world.now()
    return row.is_open_to(unit.id, now) and on.store.commit([Replace(row, cooldowns.probe(row, unit.id, now))])


def _release_probe(on: System, key: Key, unit: Unit) -> None:
    """This unit did not need the scope in the end: let the next one probe it."""
    _change_own(on, key, unit, lambda row: Replace(row, cooldowns.end_probe(row)))


def _change_own(on: System, key: Key, unit: Unit, change: Callable[[CoolDown], Delete | Replace]) -> None:
    """Change a cool-down, if this unit probes it."""
    row = on.store.get(key, CoolDown)
    if row and row.probe == unit.id:
        on.store.commit([change(row)])


def create_answered(on: System, unit: Unit, given: Permission, done: Ready | NotYet) -> None:
    """Record what a create's answer says of the scopes that it probed, and of shortages on its way.

    A driver that has begun has shown only that it may be called.
    """
    maker = maker_of(unit.is_a, unit.maker)
    if isinstance(done, NotYet):
        for row in cooldowns_of(on, maker) if given.probes else ():
            if row.probe == unit.id and row.stops:
                lift(on, row.key, unit)
        return
    short = cooldowns.from_shortages(done.shortages)
    for what in short:
        start(on, maker, what, unit)
    for row in cooldowns_of(on, maker) if given.probes else ():
        if row.probe == unit.id and row.cause is not Cause.BROKEN:  # an ordered machine may still fail to boot
            is_proved = row.stops or done.proves is None or row.scope in done.proves
            (lift if is_proved else _release_probe)(on, row.key, unit)


def create_failed(on: System, unit: Unit, given: Permission, error: DriverError) -> tuple[str, int | None]:
    """Record what a create met. Returns the reason for people, and when to retry if that is known."""
    maker, now = maker_of(unit.is_a, unit.maker), on.world.now()
    count_failure(on, maker, error)
    shortages = cooldowns.obstacles(error, unit.type, given.avoid, drivers.options_of(on, unit))
    for what in shortages:
        start(on, maker, what, unit)
    for row in cooldowns_of(on, maker) if given.probes else ():
        if row.probe == unit.id:
            (lift if row.stops and shortages else _release_probe)(on, row.key, unit)
    reason = f"{type(error).__name__}: {error}"
    if isinstance(error, Short) and error.untried and {each.scope for each in error.shortages} - given.avoid:
        return reason, GO_ON  # behind what it met: when the pauses end, it would begin with the same ones again
    found = _ending_first(on, unit) if shortages or isinstance(error, Short) else None
    if found is None:
        return reason, None
    return (reason if shortages else cooldowns.describe(found, now)), cooldowns.wait(found, unit.id, now)


def _ending_first(on: System, unit: Unit) -> CoolDown | None:
    """The cool-down that the unit waits for least."""
    now = on.world.now()
    return min(_concerning(on, unit), key=lambda row: cooldowns.wait(row, unit.id, now), default=None)


def create_skipped(on: System, unit: Unit, given: Permission) -> tuple[str, int | None]:
    """A create could meet nothing new, and is skipped. Returns the reason for people, and when to retry."""
    for row in cooldowns_of(on, maker_of(unit.is_a, unit.maker)) if given.probes else ():
        if row.probe == unit.id:
            _release_probe(on, row.key, unit)
    found, now = _ending_first(on, unit), on.world.now()
    return (
        (cooldowns.describe(found, now), cooldowns.wait(found, unit.id, now))
        if found
        else ("all was too short of late", None)
    )


def renewal_answered(on: System, unit: Unit, given: Permission) -> None:
    """Record that a well answered a renewal: it may be called. Of what is short, that shows nothing."""
    for row in cooldowns_of(on, maker_of(unit.is_a, unit.maker)) if given.probes else ():
        if row.scope in given.probes:
            lift(on, row.key, unit)


def renewal_failed(on: System, unit: Unit, given: Permission, error: DriverError) -> tuple[str, int | None]:
    """Record what a renewal met. Returns the reason for people, and when to retry if all must wait."""
    _slow_down(on, unit, error)
    is_answered = bool(cooldowns.obstacles(error, unit.type))
    maker = maker_of(unit.is_a, unit.maker)
    for row in cooldowns_of(on, maker) if given.probes else ():
        if row.scope in given.probes:
            (lift if is_answered else _release_probe)(on, row.key, unit)
    found = stopping(on, maker)
    wait = cooldowns.wait(found[0], unit.id, on.world.now()) if found else None
    return f"{type(error).__name__}: {error}", wait


def destroy_failed(on: System, unit: Unit, error: DriverError) -> None:
    """Record what a destroy met."""
    _slow_down(on, unit, error)


def _slow_down(on: System, unit: Unit, error: DriverError) -> None:
    """Record what a call met that makes nothing: that the maker is to be called less often is true of creates too."""
    maker = maker_of(unit.is_a, unit.maker)
    count_failure(on, maker, error)
    if isinstance(error, RateLimited):
        for what in cooldowns.obstacles(error, unit.type):
            start(on, maker, what, unit)


def unit_destroyed(on: System, unit: Unit, site: Site | None = None) -> None:
    """A unit was destroyed: capacity may be free again, so whoever met its shortage tries again sooner.

    With the site, also those of other makers that share a quota with this one, as its driver says.
    """
    own = cooldowns_of(on, maker_of(unit.is_a, unit.maker))
    for row in [*own, *(_shared(on, site, unit) if site else ())]:
        sooner = cooldowns.allow_now(row, on.world.now())
        if sooner and on.store.commit([Replace(row, sooner)]):
            on.queues.advance(row.met_by, unit.is_a is UnitKind.WORKER)


def _shared(on: System, site: Site, unit: Unit) -> Iterator[CoolDown]:
    """The cool-downs of makers with the same driver, of scopes that the unit counted towards."""
    makers = site.factories if unit.is_a is UnitKind.WORKER else site.wells
    own = makers.get(unit.maker)
    others = [each.name for each in makers.values() if own and each.driver == own.driver and each.name != own.name]
    try:
        driver = drivers.driver_of(on, site, unit) if others else None
        if isinstance(driver, PlacementDriver):
            for row in (row for other in others for row in cooldowns_of(on, maker_of(unit.is_a, other))):
                if drivers.is_shared(on, unit, driver, row.scope):
                    yield row
    except DriverError:
        return


def take_call(on: System, site: Site, unit: Unit) -> int | None:
    """Take one of the calls per second that a maker may get; if none is left, in how many seconds to retry."""
    makers = site.factories if unit.is_a is UnitKind.WORKER else site.wells
    found = makers.get(unit.maker)
    return take_call_for(on, maker_of(unit.is_a, unit.maker), found.rate if found else None, unit.id)


def take_call_for(on: System, maker: str, rate: float | None, whom: str) -> int | None:
    """The same for a unit or a host, by its maker's full name, and the calls per second that it may get."""
    if rate is None:
        return None
    for tries in range(CALL_TRIES):
        now = on.world.now()
        row = _remembered(on, budget_key(maker), Budget)
        left = cooldowns.take_token(row, maker, rate, now)
        if left is None and row:
            return cooldowns.budget_wait(row, rate, whom, now)
        if left and on.store.commit([Replace(row, left) if row else Create(left)]):
            return None
        on.world.pause(tries)
    return None if row is None else cooldowns.spread(whom, 5)  # none, and none can be made: it cannot be read


def _remembered(on: System, key: Key, kind: type[R]) -> R | None:
    """What is remembered at a key; None also if it cannot be read. Then nothing can be written there either."""
    row = on.store.rows_at([key]).get(key)
    return row if isinstance(row, kind) else None


def cooldowns_of(on: System, maker: str) -> list[CoolDown]:
    """The cool-downs of a maker that still count: all of them, since jobs may ask for a type with many options."""
    found = on.store.find(collection(maker), "scope#", CoolDown, limit=None, readable=True)
    return cooldowns.remembered(found, on.world.now())


def failures(on: System, maker: str) -> list[Failure]:
    """A maker's recent failures, by code, of which there are a dozen."""
    return on.store.find(collection(maker), "failure#", Failure, readable=True)


def blocking(on: System, unit: Unit) -> list[CoolDown]:
    """The cool-downs that may keep a unit from being made, the first to end first; none when it is made."""
    if unit.state is not UnitState.CREATING or unit.creation.made:
        return []
    return sorted(_concerning(on, unit), key=lambda row: row.until)


def stopping(on: System, maker: str) -> list[CoolDown]:
    """The cool-downs that stop all calls of a maker at the moment, the last to end first."""
    now = on.world.now()
    found = [row for row in cooldowns.stopping_all(cooldowns_of(on, maker)) if now < row.until]
    return sorted(found, key=lambda row: row.until, reverse=True)


def count_failure(on: System, maker: str, error: DriverError) -> None:
    """Count a failure by its code."""
    key = cooldowns.failure_key(maker, cooldowns.code_of(error))
    for tries in range(TRIES):
        row = _remembered(on, key, Failure)
        counted = cooldowns.count_failure(row, maker, error, on.world.now())
        if on.store.commit([Replace(row, counted) if row else Create(counted)]):
            return
        on.world.pause(tries)


def start(on: System, maker: str, what: Obstacle, unit: Unit) -> None:
    """Start a cool-down, or lengthen one."""
    start_for(on, maker, what, unit.id)


def start_for(on: System, maker: str, what: Obstacle, whom: str) -> None:
    """The same for a unit or a host that was refused."""
    for tries in range(TRIES):
        row = _remembered(on, cooldowns.cool_down_key(maker, what.scope), CoolDown)
        longer = cooldowns.record(row, what, maker, whom, on.world.now())
        if longer is None or on.store.commit([Replace(row, longer) if row else Create(longer)]):
            return
        on.world.pause(tries)


def lift(on: System, key: Key, unit: Unit) -> None:
    """End a cool-down that this unit probed: capacity is there again."""
    _change_own(on, key, unit, lambda row: Delete(row))
