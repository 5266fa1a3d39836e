"""What must hold after every commit of hosts, whose slots are of machines that come and go."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.domain.pools.pools import Pool, Slot, SlotState, pool_key, thing_of
from penstock.domain.units.hosts import Host, host_key
from simulation.commits import Broke, Moment
from simulation.ports import slots_of

LENT = (SlotState.FREE, SlotState.HELD)


def free_hosts_are_there(moment: Moment) -> Iterator[Broke]:
    """SLOT-1: a host's slot becomes free only while the host is there, and serves that pool; and of no host slots of
    two pools are lent.
    """
    for was, now in moment.of(Slot):
        if (
            now is None
            or now.state not in LENT
            or (was and was.state is now.state)
            or not _is_of_hosts(moment, now.pool)
        ):
            continue
        host = moment.store.rows.get(host_key(thing_of(now.name)))
        is_there = isinstance(host, Host) and host.away is None and host.pool == now.pool
        if now.state is SlotState.FREE and not is_there:
            yield "SLOT-1", f"{now.name} of {now.pool} is free, and its host is not there: {host}"
        for pool in _pools_of_hosts(moment):
            lent = [slot.name for slot in slots_of(moment.store, pool) if slot.state in LENT]
            if pool != now.pool and thing_of(now.name) in map(thing_of, lent):
                yield "SLOT-1", f"{now.name} is {now.state} in {now.pool}, and lent in {pool}"


def _is_of_hosts(moment: Moment, pool: str) -> bool:
    row = moment.store.rows.get(pool_key(pool))
    return isinstance(row, Pool) and row.hosts


def _pools_of_hosts(moment: Moment) -> list[str]:
    return [row.name for row in moment.store.rows.values() if isinstance(row, Pool) and row.hosts]
