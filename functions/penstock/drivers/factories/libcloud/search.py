"""Trying one alternative after the other, until there is a machine or none is left. [JOB-2]"""

from __future__ import annotations

from collections.abc import Sequence

from aws_lambda_powertools import Logger

from penstock.drivers.factories import userdata
from penstock.drivers.factories.libcloud.alternatives import Alternative, alternatives
from penstock.drivers.factories.libcloud.codes import Failure, of_words, scrubbed
from penstock.drivers.factories.libcloud.dialects import dialect
from penstock.drivers.factories.libcloud.launch import request
from penstock.drivers.factories.libcloud.names import Names, tag
from penstock.drivers.factories.libcloud.nodes import CallFailed, Machine, Nodes
from penstock.drivers.factories.libcloud.settings import Settings
from penstock.drivers.factories.libcloud.told import noted
from penstock.kernel.errors import DriverError, Misconfigured, NoCapacity, QuotaReached, Shortage, Unknown
from penstock.ports import NotYet, Order, Ready

SOON = 10
"""Seconds after which a machine is looked at whose cloud accepts first and looks for a place after."""

log = Logger(child=True)


def launched(order: Order, nodes: Nodes, settings: Settings, names: Names) -> Ready | NotYet:
    """Make a worker's machine the first way that there is. Raises CallFailed or DriverError.

    A call of which it is not clear whether it made a machine ends the search: nobody here has a token that makes asking
    twice the same as asking once, so the lists are given time to show it before anything is asked for again.
    """
    script = userdata.script(order, settings.user_data, settings.python, settings.linger)
    failures: list[tuple[Shortage, Failure]] = []
    avoid = set(order.avoid)
    for way in alternatives(settings):
        if avoid & way.scopes:
            continue
        try:
            machine = nodes.create(request(order.id, way, settings, names, nodes, script))
        except CallFailed as failed:
            if failed.failure.is_unclear:
                noted(failed.failure)
                return NotYet(settings.lag, f"it is not clear whether a machine was made: {failed.failure}")
            shortage = _shortage(failed, way)
            failures.append((shortage, failed.failure))
            avoid.add(shortage.scope)
        else:
            if dialect(settings).fails_late and machine.state != "running":
                return NotYet(SOON, "its machine is looking for a place")
            return Ready(metadata(machine, settings), shortages=_shortages(failures))
    raise _verdict(failures)


def has_way(order: Order, settings: Settings) -> bool:
    """Whether there is a way that an order does not avoid."""
    return not all(way.scopes.intersection(order.avoid) for way in alternatives(settings))


def stillborn(machine: Machine, settings: Settings) -> DriverError:
    """Why a machine that was accepted came to nothing."""
    why = f"{machine.name} is in error: {scrubbed(machine.fault) or 'its cloud does not say why'}"
    meaning = of_words(machine.fault)
    if meaning is None or not meaning.is_shortage or meaning.reach is None:
        return Unknown(why, "error")
    way = next((each for each in alternatives(settings) if tag(str(each)) == machine.way), None)
    shortages = [Shortage(way.scope(meaning.reach), why, meaning.kind is QuotaReached)] if way else []
    return QuotaReached(why, shortages) if meaning.kind is QuotaReached else NoCapacity(why, shortages)


def metadata(machine: Machine, settings: Settings) -> dict[str, str]:
    """What is told of a machine."""
    return {"machine": machine.id, "name": machine.name, "provider": settings.provider}


def _shortage(failed: CallFailed, way: Alternative) -> Shortage:
    """What this way lacks. Raises CallFailed when all other ways would meet the same, or none can tell."""
    reach = failed.failure.meaning.reach
    if reach is None:
        raise failed
    log.warning("no machine this way", extra={"way": str(way), "code": failed.failure.code})
    is_quota = failed.failure.meaning.kind is QuotaReached
    return Shortage(way.scope(reach), f"{way}: {failed.failure.code}: {failed.failure.message}", is_quota)


def _verdict(failures: Sequence[tuple[Shortage, Failure]]) -> DriverError:
    """Why there is no machine. Only what passes by itself is a shortage; if nothing does, somebody must act."""
    if not failures:
        return NoCapacity("every alternative is too short of late to be tried")
    why = "; ".join(shortage.why for shortage, _ in failures)
    kinds = {failure.meaning.kind for _, failure in failures}
    if kinds == {Misconfigured}:
        return Misconfigured(why)
    shortages = _shortages(failures)
    return QuotaReached(why, shortages) if kinds == {QuotaReached} else NoCapacity(why, shortages)


def _shortages(failures: Sequence[tuple[Shortage, Failure]]) -> list[Shortage]:
    return [shortage for shortage, failure in failures if failure.meaning.is_shortage]
