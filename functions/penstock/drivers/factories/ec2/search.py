"""Trying one alternative after the other, until there is a machine or none is left. [JOB-2]"""

from __future__ import annotations

from collections.abc import Sequence

from aws_lambda_powertools import Logger

from penstock.drivers.factories.ec2.alternatives import Alternative, alternatives
from penstock.drivers.factories.ec2.codes import Failure
from penstock.drivers.factories.ec2.launch import request
from penstock.drivers.factories.ec2.machines import CallFailed, Machine, Machines
from penstock.drivers.factories.ec2.settings import Settings
from penstock.drivers.factories.ec2.tags import Tags
from penstock.drivers.factories.ec2.userdata import script
from penstock.kernel.errors import DriverError, Misconfigured, NoCapacity, QuotaReached, Shortage
from penstock.ports import Order, Ready

ENDED = "IdempotentInstanceTerminated"
"""EC2's word for: the machine that this very request made is gone."""

log = Logger(child=True)


def launched(order: Order, machines: Machines, settings: Settings, tags: Tags) -> Ready:
    """Launch a worker's machine the first way that there is. Raises CallFailed or DriverError.

    A call of which it is not clear whether it made a machine ends the search: the next try begins with the same call.
    """
    user_data = script(order, settings)
    failures: list[tuple[Shortage, Failure]] = []
    avoid = set(order.avoid)
    for way in alternatives(settings):
        if avoid & way.scopes:
            continue
        try:
            machine = machines.run(request(order, way, settings, tags, user_data))
        except CallFailed as failed:
            if failed.failure.code == ENDED:
                return Ready(shortages=_shortages(failures), proves=())
            shortage = _shortage(failed, way)
            failures.append((shortage, failed.failure))
            avoid.add(shortage.scope)
        else:
            found = metadata(machine) | {"market": str(way.market)}
            return Ready(found, shortages=_shortages(failures), proves=way.scopes)
    raise _verdict(failures)


def has_way(order: Order, settings: Settings) -> bool:
    """Whether there is a way that an order does not avoid."""
    return not all(way.scopes.intersection(order.avoid) for way in alternatives(settings))


def _shortage(failed: CallFailed, way: Alternative) -> Shortage:
    """What this way lacks. Raises CallFailed when all other ways would meet the same, or none can tell."""
    reach = failed.failure.meaning.reach
    if reach is None:
        raise failed
    log.warning("no machine this way", extra={"way": str(way), "code": failed.failure.code})
    is_quota = failed.failure.meaning.kind is QuotaReached
    return Shortage(way.scope(reach), f"{way}: {failed.failure.code}", is_quota)


def _verdict(failures: Sequence[tuple[Shortage, Failure]]) -> DriverError:
    """Why there is no machine. Only what passes by itself is a shortage; if nothing does, somebody must act."""
    if not failures:
        return NoCapacity("every alternative is too short of late to be tried")
    ways = "; ".join(shortage.why for shortage, _ in failures)
    why = f"{ways}. EC2 says: {failures[-1][1].message}"
    kinds = {failure.meaning.kind for _, failure in failures}
    shortages = _shortages(failures)
    if kinds == {Misconfigured}:
        return Misconfigured(why)
    return QuotaReached(why, shortages) if kinds == {QuotaReached} else NoCapacity(why, shortages)


def _shortages(failures: Sequence[tuple[Shortage, Failure]]) -> list[Shortage]:
    return [shortage for shortage, failure in failures if failure.meaning.is_shortage]


def metadata(machine: Machine) -> dict[str, str]:
    """What is told of a machine."""
    return {"instance": machine.id, "type": machine.type, "zone": machine.zone, "account": machine.account}
