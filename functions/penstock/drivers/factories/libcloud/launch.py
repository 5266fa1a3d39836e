"""Creates a worker's machine: tries one alternative after the other with create_node. [JOB-2]"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aws_lambda_powertools import Logger

from penstock.drivers.factories import userdata
from penstock.drivers.factories.libcloud.alternatives import Alternative, alternatives
from penstock.drivers.factories.libcloud.errors import (
    CallFailed,
    meaning_of_words,
    report_if_unknown,
    scrubbed,
)
from penstock.drivers.factories.libcloud.names import Names, tag
from penstock.drivers.factories.libcloud.nodes import Machine, Nodes, named_object
from penstock.drivers.factories.libcloud.providers import ending_with_machine
from penstock.drivers.factories.libcloud.settings import Settings, boot_argument, provider_of, tags_argument
from penstock.drivers.factories.shortages import Met, final_error, shared
from penstock.kernel.errors import DriverError, NoCapacity, QuotaReached, Shortage, Unknown
from penstock.ports import NotYet, Order, Ready


def request(
    worker: str, way: Alternative, settings: Settings, names: Names, nodes: Nodes, script: str
) -> dict[str, Any]:
    """The arguments of create_node for one alternative. Looks up sizes, locations and images. Raises CallFailed."""
    provider = provider_of(settings)
    wanted: dict[str, Any] = {**provider.create, **settings.create, **provider.must, "name": names.of(worker)}
    if way.location is not None:
        wanted[provider.location] = nodes.location(way.location)
    wanted["size"] = nodes.size(way.size, way.location)
    wanted["image"] = nodes.image(settings.image, way.location) if settings.image else None
    for key in provider.named:
        if key in wanted:
            wanted[key] = [named_object(str(each)) for each in wanted[key]]
    if provider.mappings in wanted:
        wanted[provider.mappings] = ending_with_machine(wanted[provider.mappings])
    if settings.ssh_key:
        wanted["auth"] = _auth(settings.ssh_key)
    _put(wanted, boot_argument(settings), script.encode() if provider.boots_bytes else script)
    _put(wanted, tags_argument(settings), names.tags(worker, str(way)))
    return wanted


def _auth(key: str) -> Any:
    from libcloud.compute.base import NodeAuthSSHKey

    return NodeAuthSSHKey(key)


def _put(wanted: dict[str, Any], argument: str | None, value: Any) -> None:
    """Set an argument, or one entry of a table. Other entries that the site set stay."""
    if argument is None:
        return
    name, _, entry = argument.partition(".")
    new = {entry: value} if entry else value
    old = wanted.get(name)
    wanted[name] = {**old, **new} if isinstance(old, Mapping) and isinstance(new, Mapping) else new


PLACEMENT_SECONDS = 10
"""Seconds between checks of a machine whose cloud accepts the request before it has found a place."""

log = Logger(child=True)


def launch(order: Order, nodes: Nodes, settings: Settings, names: Names, is_late: Callable[[], bool]) -> Ready | NotYet:
    """Create a worker's machine by the first alternative that works. Raises CallFailed or DriverError.

    When it is late, those that are left are for the next `create`, which begins behind the shortages that were met.

    If it is not clear whether a call made a machine, the search ends. create_node has no client token, so the driver
    waits until a list would show that machine, before it calls again.
    """
    script = userdata.script(order, settings.user_data, settings.python, settings.linger)
    failures: list[Met] = []
    avoid = set(order.avoid)
    for way in alternatives(settings):
        if avoid & way.scopes:
            continue
        if failures and is_late():
            raise final_error(failures, untried=True)
        try:
            machine = nodes.create(request(order.id, way, settings, names, nodes, script))
        except CallFailed as failed:
            if failed.failure.is_unclear:
                report_if_unknown(failed.failure)
                return NotYet(settings.lag, f"the call failed, and may have made a machine: {failed.failure}")
            shortage = _shortage(failed, way)
            failures.append((shortage, failed.failure.meaning))
            avoid.add(shortage.scope)
        else:
            if provider_of(settings).fails_late and machine.state != "running":
                return NotYet(PLACEMENT_SECONDS, "its cloud is looking for a place for its machine")
            return Ready(metadata(machine, settings), shortages=shared(failures))
    raise final_error(failures)


def creation_error(machine: Machine, settings: Settings) -> DriverError:
    """The error for a machine that its cloud accepted, but failed to create."""
    why = f"{machine.name} failed to start: {scrubbed(machine.fault) or 'its cloud gives no reason'}"
    meaning = meaning_of_words(machine.fault)
    if meaning is None or not meaning.is_shortage or meaning.reach is None:
        return Unknown(why, "error")
    way = next((each for each in alternatives(settings) if tag(str(each)) == machine.way), None)
    shortages = [Shortage(way.scope(meaning.reach), why, meaning.kind is QuotaReached)] if way else []
    return QuotaReached(why, shortages) if meaning.kind is QuotaReached else NoCapacity(why, shortages)


def metadata(machine: Machine, settings: Settings) -> dict[str, str]:
    """The metadata of a machine that its worker's row shows."""
    return {"machine": machine.id, "name": machine.name, "provider": settings.provider}


def _shortage(failed: CallFailed, way: Alternative) -> Shortage:
    """The shortage that an alternative met. Raises CallFailed if all other alternatives would fail alike."""
    reach = failed.failure.meaning.reach
    if reach is None:
        raise failed
    extra = {"alternative": str(way), "code": failed.failure.code}
    log.warning("the cloud has no machine for this alternative", extra=extra)
    is_quota = failed.failure.meaning.kind is QuotaReached
    return Shortage(way.scope(reach), f"{way}: {failed.failure.code}: {failed.failure.message}", is_quota)
