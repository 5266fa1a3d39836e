"""Runs a worker's task: tries one alternative after the other with RunTask. [JOB-2]

A client token makes a repeated call harmless: ECS then returns what the first call came to, also if that was a failure.
So after a failure that ECS told, the next try has another token. How often that was is in the driver's notes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from aws_lambda_powertools import Logger

from penstock import agentfile
from penstock.domain.money import PRICE
from penstock.drivers.factories.aws.errors import CallFailed
from penstock.drivers.factories.aws.settings import Market
from penstock.drivers.factories.aws.tags import Tags
from penstock.drivers.factories.fargate.alternatives import Alternative, alternatives
from penstock.drivers.factories.fargate.boot import GIVEN
from penstock.drivers.factories.fargate.definition import CONTAINER, Families, definition, pairs
from penstock.drivers.factories.fargate.errors import CODES
from penstock.drivers.factories.fargate.settings import Settings, image_of
from penstock.drivers.factories.fargate.tasks import Refused, Task, Tasks
from penstock.drivers.factories.shortages import Met, final_error, shared
from penstock.kernel.errors import DriverError, Misconfigured, QuotaReached, Shortage
from penstock.ports import Order, Ready

OVERRIDES = 8192
"""Characters that ECS takes for what is of one task only, as JSON."""

PROVIDERS: Mapping[Market, Mapping[str, Any]] = {
    Market.ON_DEMAND: {"launchType": "FARGATE"},
    Market.SPOT: {"capacityProviderStrategy": [{"capacityProvider": "FARGATE_SPOT", "weight": 1}]},
}
"""How a market is asked for. That of spot tasks must be associated with the cluster."""

PRUNED = 5
"""How many other families are looked at when one is registered. As only then their number grows, it does not."""

TASKS, TRIES = "tasks", "tries"
"""The notes: the ids of the worker's tasks, and how many creates ECS refused."""

log = Logger(child=True)


def request(order: Order, way: Alternative, family: str, settings: Settings, tags: Tags, tries: int) -> dict[str, Any]:
    """The parameters of RunTask for one alternative. Raises Misconfigured if they are too long.

    The family stands for its newest revision, so that the request is the same whichever there is. [JOB-2]
    """
    card = {
        "subnets": [way.subnet.id],
        "assignPublicIp": "ENABLED" if settings.public_ip else "DISABLED",
        **({"securityGroups": list(settings.security_groups)} if settings.security_groups else {}),
    }
    wanted: dict[str, Any] = {
        "cluster": settings.cluster,
        "taskDefinition": family,
        "count": 1,
        "startedBy": order.id,
        "platformVersion": "LATEST",
        "enableExecuteCommand": False,
        "networkConfiguration": {"awsvpcConfiguration": card},
        "overrides": _overrides(order),
        "tags": pairs(tags.of(order.id, settings.tags)),
        **PROVIDERS[way.market],
    }
    return {**wanted, "clientToken": token(order.id, way, wanted, tries)}


def token(worker: str, way: Alternative, wanted: Mapping[str, Any], tries: int) -> str:
    """The client token: the same for the same worker, alternative, parameters and tries. ECS takes 64 characters."""
    text = json.dumps([worker, str(way), wanted, tries], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _overrides(order: Order) -> dict[str, Any]:
    """What is of one task only. The key is not in the definition, which is kept, and shown to more people. [SEC-1]"""
    config = {"url": order.url, "worker": order.id, "key": order.key, "alone": True}
    given = json.dumps({"config": config, "sha256": agentfile.digest()})
    found = {"containerOverrides": [{"name": CONTAINER, "environment": [{"name": GIVEN, "value": given}]}]}
    if len(json.dumps(found)) > OVERRIDES:
        raise Misconfigured(f"the service's URL is too long: ECS takes {OVERRIDES} characters of what is of one task")
    return found


def launch(
    order: Order, tasks: Tasks, settings: Settings, tags: Tags, tries: int, is_late: Callable[[], bool]
) -> tuple[Task, Ready]:
    """Run a worker's task by the first alternative that works. Raises CallFailed or DriverError.

    When it is late, those that are left are for the next `create`, which begins behind the shortages that were met.

    If it is not clear whether a call made a task, the error ends the search. The next `create` begins with the same
    calls, and the same tokens.
    """
    family = _definition(image_of(settings, order.options), tasks, settings, tags)
    failures: list[Met] = []
    avoid = set(order.avoid)
    for way in alternatives(settings):
        if avoid & way.scopes:
            continue
        if failures and is_late():
            raise _with(final_error(failures, untried=True), noted((), tries + 1))
        try:
            task = tasks.run(request(order, way, family, settings, tags, tries))
        except CallFailed as failed:
            shortage = _shortage(failed, way, tries)
            failures.append((shortage, failed.failure.meaning))
            avoid.add(shortage.scope)
        else:
            shown = {**metadata(task), "market": str(way.market), **_price(way, settings)}
            proves = () if task.is_gone else way.scopes
            return task, Ready(shown, shortages=shared(failures), proves=proves, notes=noted([task], tries))
    raise _with(final_error(failures), noted((), tries + 1) if failures else None)


def _definition(image: str, tasks: Tasks, settings: Settings, tags: Tags) -> str:
    """The family of the definition for an image, which is registered unless it is there."""
    families = Families.by(tags)
    wanted = definition(image, settings, families, tags)
    if not tasks.has_definition(wanted["family"]):
        tasks.register(wanted)
        own = definition(settings.image, settings, families, tags)
        _prune(wanted["family"], own["family"], tasks, families)
    return str(wanted["family"])


def _prune(new: str, own: str, tasks: Tasks, families: Families) -> None:
    """Deregister some of this factory's families that no task uses, except for that of the site's own image.

    Names are digests, so those that follow the new one are as good as drawn at random. A create that just found one of
    them is told so by RunTask, and registers it again. No job waits for this, or fails by it.
    """
    try:
        others = sorted(each for each in tasks.families(families.prefix) if each not in (new, own))
        at = next((place for place, each in enumerate(others) if each > new), 0)
        for family in (others[at:] + others[:at])[:PRUNED]:
            if not tasks.is_used(family):
                tasks.deregister(family)
    except CallFailed as failed:
        log.warning("task definitions that nothing uses are left", extra={"why": str(failed)})


def _shortage(failed: CallFailed, way: Alternative, tries: int) -> Shortage:
    """The shortage that an alternative met. Raises CallFailed or DriverError if all others would fail alike."""
    failure = failed.failure
    if failure.meaning.reach is None and isinstance(failed, Refused):
        raise _with(CODES.error(failure), noted((), tries + 1)) from failed
    if failure.meaning.reach is None:
        raise failed
    log.warning("ECS has no task for this alternative", extra={"alternative": str(way), "code": failure.code})
    is_quota = failure.meaning.kind is QuotaReached
    return Shortage(way.scope(failure.meaning.reach), f"{way}: {failure.code}: {failure.message}", is_quota)


def _with(error: DriverError, notes: Mapping[str, Any] | None) -> DriverError:
    error.notes = notes
    return error


def noted(tasks: Sequence[Task], tries: int) -> dict[str, Any]:
    """The notes for later calls."""
    return {TASKS: [each.id for each in tasks], **({TRIES: tries} if tries else {})}


def _price(way: Alternative, settings: Settings) -> dict[str, str]:
    """The price per hour of a task, if the settings say it."""
    price = settings.spot_price if way.market is Market.SPOT else settings.price
    return {PRICE: f"{Decimal(str(price)):.6f}"} if price is not None else {}


def metadata(task: Task) -> dict[str, str]:
    """The metadata of a task that its worker's row shows."""
    return {"task": task.id, "zone": task.zone}
