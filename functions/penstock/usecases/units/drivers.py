"""Calls of drivers: whatever a driver does, its caller gets an answer of the right type, or a DriverError.

A driver may come from anybody. It may raise anything, return nothing or something else, or not return: each of these is
a failure of its maker like any other. It is counted, its reason reaches the unit's row, and only that unit waits. What
a driver says reaches rows, logs and people, so the key that it was given is removed. [SEC-1]

Its answers are checked here: what is no proof, no order's answer, or too large for a unit's row, is a failure too.

A driver that ends the process of its function, or cannot be broken off, leaves no answer: `retries.unanswered` sees it.

The secrets that pass here: the keys that units are made with, and a resource's metadata. It is sealed when its driver
answers, for the lease it was made for, and opened when an agent asks for its job's resources. [SEC-1]
"""

from __future__ import annotations

import hashlib
import hmac
import json
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from typing import Any, TypeVar

from aws_lambda_powertools import Logger

from penstock.domain import metrics
from penstock.domain.account import Thing
from penstock.domain.cooldowns import maker_of
from penstock.domain.jobs import jobs
from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.pools.pools import thing_of
from penstock.domain.site.site import Maker, NamedThing, Site
from penstock.domain.units import prewarm, units
from penstock.domain.units.units import CleanProof, Unit, UnitKind
from penstock.kernel.errors import DriverError, Misconfigured, RateLimited, Short, Shortage, TimeLimit, Unknown
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Change, Replace
from penstock.ports import (
    CleaningDriver,
    ContextDriver,
    Driver,
    EventDriver,
    EvidenceDriver,
    IdentityDriver,
    MachineNotice,
    NotYet,
    Order,
    PlacementDriver,
    PowerDriver,
    Ready,
    Switching,
    ThingsDriver,
    UnitContext,
)
from penstock.system import System, current_site, transact

T = TypeVar("T")

CALL_SECONDS = 60
"""How long one call of a driver may take. Drivers do not wait, and no call of ours to a provider may take longer."""

NO_ANSWER = "NoAnswer"
"""The code under which it is counted that a driver did not answer in time, or not at all."""

WRONG_ANSWER = "WrongAnswer"
"""The code under which it is counted that a driver answered something else than it should."""

NOTES_BYTES = 16 * 1024
"""Bytes of a driver's notes, or of what it says of a machine, as JSON. A unit's row has room for them."""

LONGEST_PAUSE = 7 * 24 * 3600
"""The longest pause that a provider may ask for, in seconds."""

REDACTED = "(its key)"

_RAISED = (Exception, SystemExit, KeyboardInterrupt, GeneratorExit)

log = Logger(child=True)


def driver_named(on: System, site: Site, is_a: UnitKind, maker: str) -> Driver:
    """The driver of a factory or well. Raises DriverError."""
    return ask(on, maker_of(is_a, maker), lambda: _driver(on, site, is_a, maker))


def driver_of(on: System, site: Site, unit: Unit) -> Driver:
    """The driver of a unit, for one call. Raises DriverError."""
    return ask(on, maker_of(unit.is_a, unit.maker), lambda: _driver_in_context(on, site, unit))


def _driver(on: System, site: Site, is_a: UnitKind, maker: str) -> Driver:
    """The driver of a factory or well. Raises Misconfigured if the site has none of that name."""
    makers = site.factories if is_a is UnitKind.WORKER else site.wells
    found = makers.get(maker) or Maker(maker, "")
    if not found.driver:
        kind = "factory" if is_a is UnitKind.WORKER else "well"
        raise Misconfigured(f"the site has no {kind} {maker!r} any more")
    plug = on.drivers.factory if is_a is UnitKind.WORKER else on.drivers.well
    return plug(found.driver, found.settings, maker)


def _driver_in_context(on: System, site: Site, unit: Unit) -> Driver:
    """The driver of a unit, for one call. Raises Misconfigured."""
    found = _driver(on, site, unit.is_a, unit.maker)
    return (
        found.with_context(UnitContext(unit.lease.slot, unit.lease.fence, unit.creation.notes))
        if isinstance(found, ContextDriver)
        else found
    )


def quarantines(on: System, site: Site, unit: Unit) -> bool:
    """Whether a broken unit is quarantined, since its maker cannot make it anew: it stands for a thing that exists."""
    is_worker = unit.is_a is UnitKind.WORKER
    found = (site.factories if is_worker else site.wells).get(unit.maker)
    return found is not None and on.drivers.quarantines("factory" if is_worker else "well", found.driver)


def makes_nothing(on: System, site: Site | None, unit: Unit) -> bool:
    """Whether a unit is only a slot."""
    well = site.wells.get(unit.maker) if site and unit.is_a is UnitKind.RESOURCE else None
    return well is not None and on.drivers.makes_nothing(well.driver)


def create(on: System, unit: Unit, driver: Driver, order: Order) -> Ready | NotYet:
    """Have a unit made. Raises DriverError."""
    maker = maker_of(unit.is_a, unit.maker)
    done = call(on, maker, metrics.CREATE, lambda: creation(driver.create(order)), order.key)
    return replace(done, reason=_redact(done.reason, order.key)) if isinstance(done, NotYet) and done.reason else done


def resource_order(on: System, site: Site, unit: Unit, job: Job | None) -> Order:
    """What a well needs to make a resource for a job, None if that is gone; a slot needs no signing key. [SEC-1]"""
    kind, now = site.resources.get(unit.type), on.world.now()
    return Order(
        unit.id,
        unit.type,
        unit.lease.slot,
        kind.settings if kind else {},
        _said_of(unit, job),
        key="" if makes_nothing(on, site, unit) else lease_secret(on.signing_key(), unit),
        job=unit.lease.job,
        lasts=int((jobs.latest_end(job, now) - now).total_seconds()) if job else None,
    )


def options_of(on: System, unit: Unit) -> Mapping[str, Any]:
    """What a unit's job says of how it is made. Of a worker nothing is read, unless it is made to order."""
    has_options = unit.is_a is UnitKind.RESOURCE or unit.creation.to_order
    job = on.store.get(job_key(unit.lease.job), Job) if has_options else None
    return _said_of(unit, job)


def _said_of(unit: Unit, job: Job | None) -> Mapping[str, Any]:
    needs = job.request.needs if job else ()
    return next((need.options for need in needs if need.order == unit.lease.order), {})


def ready_at_once(on: System, job: Job, unit: Unit) -> Unit:
    """A resource that is only a slot is ready at once; a worker is as it was. Raises DriverError."""
    if unit.is_a is UnitKind.WORKER:
        return unit
    site = current_site(on)
    done = create(on, unit, driver_of(on, site, unit), resource_order(on, site, unit, job))
    if isinstance(done, NotYet):
        raise Unknown(f"{unit.maker} says that it makes nothing, and is not done")
    return units.ready(unit, seal_answer(on, site, unit, done), on.world.now(), done.expires)


def destroy(on: System, maker: str, driver: Driver, unit: str) -> CleanProof | NotYet:
    """Have a unit destroyed. Raises DriverError."""
    return call(on, maker, metrics.DESTROY, lambda: ending(driver.destroy(unit, on.world.now())))


def clean(on: System, unit: Unit, driver: CleaningDriver) -> CleanProof | NotYet:
    """Have a unit cleaned. Raises DriverError."""
    maker = maker_of(unit.is_a, unit.maker)
    return call(on, maker, metrics.CLEAN, lambda: ending(driver.clean(unit.id, on.world.now())))


def switch(on: System, maker: str, driver: Driver, host: str, to: Switching) -> Ready | NotYet:
    """Have a host switched on or off. Raises DriverError."""
    if not isinstance(driver, PowerDriver):
        raise Misconfigured(f"the driver of {maker} cannot switch hosts on and off")
    return call(on, maker, metrics.POWER, lambda: creation(driver.switch(host, to)))


def list_ids(on: System, maker: str, driver: Driver) -> frozenset[str]:
    """The ids that a driver lists. Raises DriverError."""
    return call(on, maker, metrics.LIST, lambda: ids(driver.list()))


def things(on: System, is_a: UnitKind, maker: str, driver: Driver) -> Sequence[Thing]:
    """Everything outside that a driver made and lists. Raises DriverError.

    One that makes one kind of thing need not say more than its ids.
    """
    if isinstance(driver, ThingsDriver):
        return call(on, maker, metrics.LIST, lambda: listed_things(driver.things()))
    return [Thing(is_a, id, id) for id in sorted(list_ids(on, maker, driver))]


def is_blind(on: System, unit: Unit, driver: Driver, order: Order) -> bool:
    """Whether a driver has no alternative left to try. Raises DriverError."""
    if not isinstance(driver, PlacementDriver):
        return False
    return not ask(on, maker_of(unit.is_a, unit.maker), lambda: driver.has_alternative(order), order.key)


def is_shared(on: System, unit: Unit, driver: PlacementDriver, scope: str) -> bool:
    """Whether the units of a driver count towards a scope. Raises DriverError."""
    return bool(ask(on, maker_of(unit.is_a, unit.maker), lambda: driver.shares_scope(scope)))


def evidence(on: System, unit: Unit, driver: Driver) -> str | None:
    """What a driver knows of a unit's machine, if it can tell. Raises DriverError."""
    if not isinstance(driver, EvidenceDriver):
        return None
    return ask(on, maker_of(unit.is_a, unit.maker), lambda: text(driver.evidence(unit.id)))


def identity_mismatch(on: System, unit: Unit, driver: IdentityDriver, shown: Mapping[str, str]) -> str | None:
    """Why an identity document is not that of a unit's machine; None if it is. Raises DriverError. [SEC-2]"""
    made = unit.creation.metadata
    return ask(on, maker_of(unit.is_a, unit.maker), lambda: text(driver.identity_mismatch(shown, made)))


def read_event(on: System, factory: str, driver: Driver, event: Mapping[str, Any]) -> MachineNotice | None:
    """What a factory makes of an event. Raises DriverError."""
    if not isinstance(driver, EventDriver):
        return None
    return ask(on, maker_of(UnitKind.WORKER, factory), lambda: notice(driver.read_event(event)))


def call(on: System, maker: str, operation: str, do: Callable[[], T], hide: str = "") -> T:
    """One call of a driver, counted with its result. Raises DriverError."""
    return _count_call(on, maker, operation, lambda: ask(on, maker, do, hide))


def _count_call(on: System, maker: str, operation: str, call: Callable[[], T]) -> T:
    """Call a driver, and count the result. Raises what the call raises."""

    def count(result: str) -> None:
        on.metrics.add(metrics.DRIVER_CALLS, maker=maker, operation=operation, result=result)

    try:
        done = call()
    except Exception as error:
        count(metrics.result_of(error))
        raise
    count(metrics.YIELD if isinstance(done, NotYet) else metrics.OK)
    return done


def ask(on: System, maker: str, do: Callable[[], T], hide: str = "") -> T:
    """Ask a driver anything. Raises DriverError, whatever the driver raises, and if it does not answer in time."""
    try:
        with on.world.limit(CALL_SECONDS):
            return do()
    except DriverError as error:
        raise _sound(error, hide) from None
    except TimeLimit:
        log.error("a driver did not answer in time", extra={"maker": maker, "seconds": CALL_SECONDS})
        raise Unknown(f"the driver did not answer within {CALL_SECONDS} s", NO_ANSWER) from None
    except _RAISED as error:
        trace = _redact("".join(traceback.format_exception(error)), hide)
        log.error("a driver raised what is no DriverError", extra={"maker": maker, "trace": trace})
        raise Unknown(f"the driver raised {_redact(_describe(error), hide)}", type(error).__name__) from None


def _describe(error: BaseException) -> str:
    """An error as text. Even that its driver may get wrong."""
    try:
        return f"{type(error).__name__}: {error}".removesuffix(": ")
    except Exception:
        return type(error).__name__


def _redact(text: str, hide: str) -> str:
    return text.replace(hide, REDACTED) if hide else text


def _sound(error: DriverError, hide: str) -> DriverError:
    """A driver's error without the text to hide; a WrongAnswer for one whose fields are not what they should be."""
    wrong = wrong_fields(error)
    if wrong:
        return wrong
    error.args = tuple(_redact(str(part), hide) for part in error.args)
    if isinstance(error, Short):
        error.shortages = tuple(replace(each, why=_redact(each.why, hide)) for each in error.shortages)
    return error


def wrong_fields(error: DriverError) -> DriverError | None:
    """The failure to count instead of an error whose fields are not what they should be; None for a sound one."""
    wrong = _wrong_field(error)
    return _wrong(f"raised {type(error).__name__} with {wrong}") if wrong else None


def _wrong_field(error: DriverError) -> str | None:
    if isinstance(error, RateLimited) and not _is_pause(error.seconds, LONGEST_PAUSE):
        return f"seconds that are no number from 0 to {LONGEST_PAUSE}"
    if isinstance(error, RateLimited) and not isinstance(error.calls, str):
        return "calls that are no text"
    if isinstance(error, Short) and not _are_shortages(error.shortages):
        return "shortages that are none"
    if isinstance(error, Short) and not isinstance(error.untried, bool):
        return "an `untried` that is no truth value"
    if isinstance(error, Unknown) and not isinstance(error.code, str):
        return "a code that is no text"
    return _wrong_notes(error.notes)


def creation(done: object) -> Ready | NotYet:
    """The answer of `create`. Raises Unknown for any other."""
    if isinstance(done, NotYet):
        return _not_yet(done)
    if not isinstance(done, Ready):
        raise _wrong(f"returned {type(done).__name__} instead of Ready or NotYet")
    wrong = _wrong_ready(done)
    if wrong:
        raise _wrong(f"returned Ready with {wrong}")
    return done


def _wrong_ready(done: Ready) -> str | None:
    """What is wrong with what a driver made. Whether its metadata has room is said by `seal_answer`."""
    if not isinstance(done.metadata, Mapping):
        return "metadata that is no mapping"
    if not _are_texts(done.public) or not (done.proves is None or _are_texts(done.proves)):
        return "names that are no texts"
    if not _are_shortages(done.shortages):
        return "shortages that are none"
    if done.expires is not None and not _is_time(done.expires):
        return "a time that has no time zone, or is none"
    return _wrong_notes(done.notes)


def ending(done: object) -> CleanProof | NotYet:
    """The answer of `destroy` or `clean`. Raises Unknown for any other. [UNIT-2]"""
    if isinstance(done, NotYet):
        return _not_yet(done)
    if not isinstance(done, CleanProof):
        raise _wrong(f"returned {type(done).__name__} instead of CleanProof or NotYet")
    if not (isinstance(done.by, str) and isinstance(done.checked, str) and _is_time(done.time)):
        raise _wrong("returned CleanProof without who checked what, and when")
    if not _is_pause(done.lag, LONGEST_PAUSE):
        raise _wrong(f"returned CleanProof with a lag that is no number from 0 to {LONGEST_PAUSE}")
    return done


def _not_yet(done: NotYet) -> NotYet:
    if not _is_pause(done.after, LONGEST_PAUSE):
        raise _wrong(f"returned NotYet after {_describe_value(done.after)}, which is no number of seconds")
    if not (done.reason is None or isinstance(done.reason, str)):
        raise _wrong("returned NotYet with a reason that is no text")
    wrong = _wrong_notes(done.notes)
    if wrong:
        raise _wrong(f"returned NotYet with {wrong}")
    return done


def ids(found: object) -> frozenset[str]:
    """The answer of `list`. Raises Unknown for any other: a wrong list would destroy what is needed. [UNIT-1]"""
    if isinstance(found, str | bytes | Mapping) or not isinstance(found, Iterable):
        raise _wrong(f"returned {type(found).__name__} instead of a list of ids")
    ids = frozenset(found)
    if not all(isinstance(id, str) for id in ids):
        raise _wrong("listed an id that is no text")
    return ids


def listed_things(found: object) -> Sequence[Thing]:
    """The answer of `things`. Raises Unknown for any other: it would be counted as none."""
    if isinstance(found, str | bytes | Mapping) or not isinstance(found, Iterable):
        raise _wrong(f"returned {type(found).__name__} instead of a list of things")
    things = tuple(found)
    if not all(isinstance(each, Thing) and _is_sound(each) for each in things):
        raise _wrong("listed something that is no Thing, or has a field of another type")
    return things


def _is_sound(thing: Thing) -> bool:
    texts = (thing.kind, thing.id, thing.unit, thing.maker)
    times = (thing.made, thing.until)
    return all(isinstance(each, str) for each in texts) and all(each is None or _is_time(each) for each in times)


def text(found: object) -> str | None:
    """A text or None. Raises Unknown for anything else."""
    if not (found is None or isinstance(found, str)):
        raise _wrong(f"returned {type(found).__name__} instead of a text")
    return found


def notice(found: object) -> MachineNotice | None:
    """The answer of `read_event`. Raises Unknown for any other."""
    if not (found is None or isinstance(found, MachineNotice)):
        raise _wrong(f"returned {type(found).__name__} instead of MachineNotice")
    return found


def _wrong_notes(notes: object) -> str | None:
    if notes is None:
        return None
    try:
        size = len(json.dumps(dict(notes))) if isinstance(notes, Mapping) else None
    except (TypeError, ValueError, RecursionError):
        size = None
    return None if size is not None and size <= NOTES_BYTES else f"notes that are no JSON object of {NOTES_BYTES} bytes"


def _is_pause(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _is_time(value: object) -> bool:
    return isinstance(value, datetime) and value.tzinfo is not None


def _are_texts(found: object) -> bool:
    return isinstance(found, Collection) and not isinstance(found, str) and all(isinstance(one, str) for one in found)


def _are_shortages(found: object) -> bool:
    return isinstance(found, Sequence) and all(
        isinstance(one, Shortage) and isinstance(one.scope, str) and isinstance(one.why, str) for one in found
    )


def _describe_value(value: object) -> str:
    return repr(value)[:50] if isinstance(value, int | float | str) else type(value).__name__


def _wrong(what: str) -> Unknown:
    return Unknown(f"the driver {what}", WRONG_ANSWER)


def unlock(on: System, begun: Unit) -> None:
    """A call is over. If its unit was locked and another process wrote it meanwhile, ask for the next call.

    Nobody makes another call before, because this one could come late and undo it.
    """
    if begun.step.busy is None:
        return

    def decide() -> tuple[Sequence[Change], Unit | None]:
        fresh = on.store.get(begun.key, Unit)
        if fresh is None or fresh.step.busy != begun.step.busy:
            return [], None
        return [Replace(fresh, prewarm.end_call(fresh))], fresh

    unit = transact(on, decide)
    if unit:
        on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER)


METADATA_BYTES = 16 * 1024
"""Bytes of one unit's metadata, as JSON. A row has room for it, and an agent for all metadata of a job."""


@dataclass(frozen=True)
class ResourceMetadata:
    """What a job may know of a resource, and the keys whose values need not be masked in its log."""

    metadata: Mapping[str, Any] = field(default_factory=dict)
    public: Sequence[str] = ()


def bootstrap_key(signing_key: str, unit: str) -> str:
    """The key with which a worker's agent says hello, once."""
    return hmac.new(signing_key.encode(), unit.encode(), hashlib.sha256).hexdigest()


def seal_answer(on: System, site: Site, unit: Unit, done: Ready | NotYet) -> str:
    """The sealed metadata of a driver's answer, and of what the site says of the thing that the unit stands for.

    "" for a worker, whose machine is none of its job's business: what its factory says of it is kept with the worker.
    Public are labels, and the keys that the driver or the site declares public. Raises Misconfigured as `seal` does.
    """
    if isinstance(done, NotYet):
        return ""
    if unit.is_a is UnitKind.WORKER:
        _as_json(unit, done.metadata)
        return ""
    kind = site.resources.get(unit.type)
    thing = kind.things.get(thing_of(unit.lease.slot), NamedThing()) if kind else NamedThing()
    public = {*thing.labels, *done.public, *(kind.public if kind else ())}
    return seal(on, unit, {**thing.labels, **thing.metadata, **done.metadata}, public)


def seal(on: System, unit: Unit, metadata: Mapping[str, Any], public: Collection[str] = ()) -> str:
    """The sealed metadata of a resource. Raises Misconfigured if it is too big, or not JSON."""
    text = _as_json(unit, metadata)
    keys = json.dumps(sorted(set(metadata).intersection(public)), separators=(",", ":")).encode()
    return on.vault.seal(b"[%s,%s]" % (text, keys), _sealed_for(unit))


def _as_json(unit: Unit, metadata: Mapping[str, Any]) -> bytes:
    """A unit's metadata as JSON. Raises Misconfigured if it is none, or too big for the unit's row."""
    try:
        text = json.dumps(dict(metadata), separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Misconfigured(f"the metadata of {unit.type} is not JSON: {error}") from error
    if len(text) > METADATA_BYTES:
        raise Misconfigured(f"the metadata of {unit.type} has {len(text)} bytes; {METADATA_BYTES} at most")
    return text


def _sealed_for(unit: Unit) -> dict[str, str]:
    """What a seal is bound to: one unit and one fence are one lease."""
    return {"unit": unit.id, "fence": str(unit.lease.fence)}


def metadata_of(on: System, unit: Unit) -> ResourceMetadata:
    """The metadata of a resource, for the lease that it was sealed for."""
    if not unit.access.sealed:
        return ResourceMetadata()
    found = json.loads(on.vault.open(unit.access.sealed, _sealed_for(unit)))
    return (
        ResourceMetadata(*found) if isinstance(found, list) else ResourceMetadata(found)
    )  # sealed by a version without public keys


def unseal(on: System, unit: Unit) -> dict[str, Any]:
    """The same, without the public keys."""
    return dict(metadata_of(on, unit).metadata)


def lease_secret(signing_key: str, unit: Unit) -> str:
    """The secret a well derives passwords from: the same for each call for one lease, and different for the next."""
    return hmac.new(signing_key.encode(), f"{unit.id}/{unit.lease.fence}".encode(), hashlib.sha256).hexdigest()
