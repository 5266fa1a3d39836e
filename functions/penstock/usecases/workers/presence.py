"""Whether hosts are present: their rows say so, and their pools' slots follow, as after a resize.

A host that comes or goes is written together with its pool's row, which is due from then on. So a resize that read the
host before cannot call the pool done, and the sweep makes up for a lost message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from penstock.domain.pools import pools
from penstock.domain.pools.pools import Pool, Slot, SlotName, SlotState, pool_key, thing_of
from penstock.domain.pools.why import AwayHost
from penstock.domain.units import hosts, power
from penstock.domain.units.hosts import Host, host_key
from penstock.domain.units.power import PowerOrder, power_key
from penstock.domain.units.units import STEP_WITHIN, Unit, UnitState, unit_key
from penstock.kernel.errors import Refused, not_found
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Change, Create, Replace
from penstock.system import System, transact


@dataclass(frozen=True)
class HostSession:
    """A host's agent, as it introduces itself. `pool` is that of the target which the site says it serves, if any;
    `is_leaving`: it takes no jobs, so a host that is away stays away.
    """

    name: str
    pool: str | None
    session: str
    machine: str = ""
    is_leaving: bool = False


def check_in(on: System, session: HostSession, lease: timedelta) -> Host:
    """Record that a host is present; one write in half a lease while it stays.

    Raises Refused 404 for a host that the site does not know, 409 for a host's second agent.
    """
    host, touched = transact(on, lambda: _check_in_changes(on, session, lease))
    _schedule_resize(on, touched)
    return host


def last_pool(on: System, name: str) -> str | None:
    """The pool of a host that the site no longer names; None if the host never came."""
    host = on.store.get(host_key(name), Host)
    return host.pool if host else None


def pool_in_use(on: System, name: str) -> str | None:
    """The pool in which somebody has something of a host; None if nobody has."""
    host = on.store.get(host_key(name), Host)
    return host.pool if host and _slots(on, host, SlotState.HELD) else None


def _check_in_changes(
    on: System, session: HostSession, lease: timedelta
) -> tuple[Sequence[Change], tuple[Host, list[str]]]:
    was, now = on.store.get(host_key(session.name), Host), on.world.now()
    if was is None:
        if session.pool is None:
            raise not_found("host", session.name)
        new = Host(name=session.name, pool=session.pool, session=session.session, machine=session.machine, since=now)
        order = on.store.get(power_key(session.name), PowerOrder)
        is_out = session.is_leaving or _is_shut(order)
        came = hosts.disconnect(new, now) if is_out else hosts.connect(None, new, now, lease)
        arrived = [] if is_out else _arrival(on, order)
        return [Create(came), *arrived, *_make_due(on, [session.pool])], (came, [session.pool])
    is_known = hosts.is_known(was, session.session)
    if not is_known:
        _refuse_second_agent(on, was, now, lease)
    if session.is_leaving:
        return [], (was, [])
    pool, last, moved = _served_pool(on, was, session.pool)
    if is_known and was.away is None and pool == was.pool:
        heard = hosts.renew(was, now, lease)
        return ([Replace(was, heard)] if heard != was else []), (heard, [])
    order = on.store.get(power_key(session.name), PowerOrder)
    if _is_shut(order):
        return [], (was, [])
    there = hosts.connect(was, replace(was, pool=pool, session=session.session, machine=session.machine), now, lease)
    touched = list(dict.fromkeys((was.pool, pool)))
    return [Replace(was, there), *moved, *_arrival(on, order), *_make_due(on, touched, last)], (there, touched)


def _is_shut(order: PowerOrder | None) -> bool:
    """Whether a host may not come yet, because it may still lose its power. [JOB-2]"""
    return order is not None and order.is_shut


def _arrival(on: System, order: PowerOrder | None) -> Sequence[Change]:
    """The changes by which a host that comes is on."""
    return [Replace(order, power.arrive(order, on.world.now()))] if order else []


def _make_due(on: System, names: Sequence[str], last: Pool | None = None) -> list[Change]:
    """The changes that make pools due for a resize: it withdraws the slots of a host that is away, and gives back those
    of one that came. `last` was read earlier.
    """
    found = [last if last and name == last.name else on.store.get(pool_key(name), Pool) for name in names]
    return [Replace(pool, replace(pool, due=on.world.now() + STEP_WITHIN)) for pool in found if pool]


def _refuse_second_agent(on: System, host: Host, now: datetime, lease: timedelta) -> None:
    """Raises Refused 409 while the host's agent, or the worker on it, is heard from. [JOB-2]

    Two machines of one name are told apart by their sessions. The second is admitted when the first fell silent; the
    first is refused from then on, and neither gets a worker before it has cleaned up after its own last.
    """
    if not hosts.is_silent(host, now) or any(_may_be_working(unit, now, lease) for unit in _workers_on(on, host)):
        text = f"host {host.name} is served by another agent" + (f", on {host.machine}" if host.machine else "")
        raise Refused(409, "host-taken", f"{text}; this one is let in when nothing was heard of that for a lease")


def _may_be_working(unit: Unit, now: datetime, lease: timedelta) -> bool:
    """Whether the agent of a host's worker may be at work there, or about to say hello. [JOB-2]

    That it is recycled, or that its job is lost, does not end its script: it hears of it, or its lease runs out.
    """
    if unit.state is UnitState.CREATING:
        return True
    ends = [unit.due or now] if unit.state is UnitState.READY else []
    ends += [unit.session.heard + lease] if unit.session.heard and (ends or unit.session.may_run) else []
    return any(end > now for end in ends)


def _served_pool(on: System, host: Host, wanted: str | None) -> tuple[str, Pool | None, list[Change]]:
    """The pool that a host serves: the site's choice, once all its slots in the last pool are free. [SLOT-1]

    A move needs the last pool's row, read before its slots, and their changes: who makes more slots writes the row.
    """
    if wanted is None or wanted == host.pool:
        return host.pool, None, []
    last = on.store.get(pool_key(host.pool), Pool)
    states = (SlotState.FREE, SlotState.AWAY, SlotState.OFF)
    free = {slot.name: slot for state in states for slot in _slots(on, host, state)}  # one may move between two reads
    if len(free) < _count_names(on, host):
        return host.pool, None, []
    moved = [change for slot in free.values() for change in pools.move(slot, replace(slot, state=SlotState.OFF))]
    return wanted, last, moved


def _slots(on: System, host: Host, state: SlotState) -> list[Slot]:
    """All slots of a host that are in a state: its own, and those of its parts if jobs share it."""
    whole = _slot(on, host, state, 0)
    rank = "cold#" if state is SlotState.FREE else ""
    parts = on.store.find(pools.collection(host.pool), f"{state}#{rank}{host.name}/", Slot)
    return [whole, *parts] if whole else parts


def _count_names(on: System, host: Host) -> int:
    """How many slots of a host its pool has, whatever their states."""
    whole = on.store.get(SlotName(pool=host.pool, name=host.name).key, SlotName)
    return bool(whole) + len(on.store.find(pools.collection(host.pool), f"name#{host.name}/", SlotName))


def _slot(on: System, host: Host, state: SlotState, part: int) -> Slot | None:
    name = hosts.slot_name(host.name, part)
    return on.store.get(Slot(pool=host.pool, name=name, state=state).key, Slot)


def _schedule_resize(on: System, names: Sequence[str]) -> None:
    """Have the slots of pools follow, and the pools served. [QUEUE-1]"""
    for name in names:
        on.queues.schedule({"do": "resize", "pool": name})


def sign_off(on: System, host: Host) -> None:
    """Mark a host absent whose agent leaves: nothing more is granted on it."""
    _mark_absent(on, host.name, lambda fresh: hosts.is_known(fresh, host.session))


def _mark_absent(on: System, name: str, is_to_go: Callable[[Host], bool]) -> None:
    def decide() -> tuple[Sequence[Change], list[str]]:
        host = on.store.get(host_key(name), Host)
        if host is None or host.away is not None or not is_to_go(host):
            return [], []
        return [Replace(host, hosts.disconnect(host, on.world.now())), *_make_due(on, [host.pool])], [host.pool]

    _schedule_resize(on, transact(on, decide))


def mark_silent(on: System, name: str) -> None:
    """Mark a host absent that was silent for a lease."""
    _mark_absent(on, name, lambda host: hosts.is_silent(host, on.world.now()))


def mark_cleaned(on: System, name: str) -> None:
    """Mark a host absent that a controller cleaned from outside: another agent may come, which need not wait."""
    _mark_absent(on, name, lambda host: True)


def present_hosts(on: System, pool: Pool) -> frozenset[str]:
    """The hosts of a pool that are present and serve it."""
    found = hosts_of(on, pool)
    return frozenset(name for name, host in found.items() if hosts.is_available(host, pool.name))


def absent_hosts(on: System, pool: Pool) -> list[AwayHost]:
    """The hosts of a pool that are absent, and since when."""
    gone = {name: host for name, host in hosts_of(on, pool).items() if host is None or host.away is not None}
    orders = orders_of(on, pool)
    said = {name: power.describe(order) for name, order in orders.items()}
    return [AwayHost(name, host.away if host else None, said.get(name)) for name, host in gone.items()]


def hosts_of(on: System, pool: Pool) -> dict[str, Host | None]:
    """The hosts of a pool by name; None for those that never checked in."""
    return {name: on.store.get(host_key(name), Host) for name in _names(pool)}


def _names(pool: Pool) -> Sequence[str]:
    return list(dict.fromkeys(map(thing_of, pool.names or ()))) if pool.hosts else ()


def orders_of(on: System, pool: Pool) -> dict[str, PowerOrder]:
    """The last order for the power of each of a pool's hosts, if there was one."""
    found = {name: on.store.get(power_key(name), PowerOrder) for name in _names(pool)}
    return {name: order for name, order in found.items() if order}


def free_slot(on: System, host: Host, part: int) -> Slot | None:
    """A host's slot, or that of one of its parts, if nobody holds it and it can be granted. Of a host that jobs share,
    the first that can, which is that which the next worker gets.
    """
    if part:
        return _slot(on, host, SlotState.FREE, part)
    return next(iter(_slots(on, host, SlotState.FREE)), None)


def worker_on(on: System, host: Host, part: int) -> Unit | None:
    """The worker that holds a host's slot, or that of one of its parts. One that holds several is on the first."""
    slot = _slot(on, host, SlotState.HELD, part)
    if slot is None:
        return None
    unit = on.store.get(unit_key(slot.unit or ""), Unit)
    return unit if unit and unit.lease.slot == slot.name else None


def busy_parts(on: System, host: Host) -> tuple[int, ...]:
    """The parts of a host that have a worker; of one that has several, the first. Its agent asks for these, even if it
    knows nothing of them any more, and the site divides the host otherwise by now. [UNIT-2]
    """
    first: dict[str | None, Slot] = {}
    for slot in _slots(on, host, SlotState.HELD):
        first.setdefault(slot.unit, slot)
    parts = (slot.name.partition("/")[2] for slot in first.values())
    return tuple(int(part) for part in parts if part)


def _workers_on(on: System, host: Host) -> list[Unit]:
    """The workers that hold slots of a host."""
    ids = dict.fromkeys(str(slot.unit) for slot in _slots(on, host, SlotState.HELD))
    found = (on.store.get(unit_key(each), Unit) for each in ids)  # one by one: what cannot be read is not gone
    return [unit for unit in found if unit]
