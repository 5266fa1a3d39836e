"""Which slots of a pool no job's end brings back. [QUEUE-2]

They are of hosts that are away, of units in quarantine, and of those that somebody holds or that are not put back for
long. Nothing is reserved for a claim that waits for one of them: others would wait for an operator too.
docs/decisions/0111-what-comes-back-only-by-an-operator-is-not-waited-for.md
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import cast

from penstock.domain.pools import pools
from penstock.domain.pools.pools import Pool, Slot, SlotState
from penstock.domain.site.site import Site
from penstock.domain.units import hosts, power, units
from penstock.domain.units.hosts import Host, host_key
from penstock.domain.units.power import PowerOrder, power_key
from penstock.domain.units.units import LINGERS, Unit, unit_key
from penstock.kernel import limits
from penstock.listings import every_of, rows_at
from penstock.system import System, current_site


def read(on: System, pool: Pool) -> list[Slot]:
    """The slots of a pool that are aside."""
    held = list(every_of(on, pools.collection(pool.name), f"{SlotState.HELD}#", Slot))
    return [*among(on, held), *(_lost(on, pool) if pool.hosts else ())]


def among(on: System, held: Sequence[Slot]) -> list[Slot]:
    """Those of some held slots that are aside: of no job, or of one that ended long ago. Of more than a hundred that
    were handed over long ago, none is looked at.
    """
    now = on.world.now()
    late = now - LINGERS
    keys = dict.fromkeys(unit_key(str(slot.unit)) for slot in held if (slot.since or late) <= late)
    rows = rows_at(on, keys) if len(keys) <= limits.BATCH_KEYS else {}
    lingering = {unit.id for unit in cast("Iterable[Unit]", rows.values()) if units.is_lingering(unit, now)}
    return [slot for slot in held if pools.is_aside(slot) or slot.unit in lingering]


def _lost(on: System, pool: Pool) -> list[Slot]:
    """The slots of hosts that are away for longer than one takes to boot, but for those that are switched on."""
    away = list(every_of(on, pools.collection(pool.name), f"{SlotState.AWAY}#", Slot))
    names = dict.fromkeys(slot.thing for slot in away)
    rows = rows_at(on, [key for name in names for key in (host_key(name), power_key(name))])
    site, now = current_site(on), on.world.now()
    patience = timedelta(seconds=site.limits.boot)
    here = {row.name for row in rows.values() if isinstance(row, Host) and not hosts.is_lost(row, now, patience)}
    orders = {row.host: row for row in rows.values() if isinstance(row, PowerOrder)}
    return [slot for slot in away if slot.thing not in here and not _may_come(site, slot.thing, orders, now)]


def _may_come(site: Site, host: str, orders: dict[str, PowerOrder], now: datetime) -> bool:
    """Whether a host is switched on for who waits for it: its site has a controller, and it did not fail to come."""
    target = site.of_host(host)
    is_switched = target is not None and power.power_of(site.maker(target)) is not None
    return is_switched and not power.is_given_up(orders.get(host), now)
