"""Deliveries that never came, or were not taken: GitHub lists all that it sent, and is asked for what we lack."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from penstock.domain.github import deliveries
from penstock.domain.github.deliveries import LOOK_KEY, Delivery, Look, delivery_key, is_id, matters
from penstock.kernel.errors import RateLimited, Refused
from penstock.kernel.rows import Create, Replace
from penstock.ports import Ask
from penstock.system import System
from penstock.usecases.github import calls, receiving

PATH = "/app/hook/deliveries"
PAGES = 100
"""How many pages of a hundred one look goes through. An outage that lost more is made good by several."""


def look(on: System) -> int:
    """Compare what GitHub sent with what came, and take what did not. How many that were. Done twice, it is done once.

    How far it was looked is noted only when all of it was seen: who dies between looks again at the same.
    """
    with suppress(RateLimited):  # it is looked again in a few minutes
        return _look(on)
    return 0


def _look(on: System) -> int:
    last, now = on.store.get(LOOK_KEY, Look), on.world.now()
    since = deliveries.since(last, now)
    first = calls.call(on, Ask("GET", PATH, query={"per_page": "100"}, etag=last.etag if last else ""))
    if first.status != 200:
        return 0
    found, told = 0, first
    for _ in range(PAGES):
        found += sum(_take(on, item) for item in told.body if matters(item["event"], item["action"] or ""))
        if told.next is None or not told.body or _time(told.body[-1]) < since:
            break
        told = calls.call(on, Ask("GET", PATH, query=told.next))
        if told.status != 200:
            return found
    else:
        return found
    seen = Look(at=now, etag=first.etag, found=found)
    on.store.commit([Replace(last, replace(seen, version=last.version)) if last else Create(seen)])
    return found


def _take(on: System, item: Mapping[str, Any]) -> int:
    """Take one that was sent; 1 if it was not here yet."""
    guid = str(item["guid"])
    if not is_id(guid) or on.store.get(delivery_key(guid), Delivery):
        return 0
    told = calls.call(on, Ask("GET", f"{PATH}/{int(item['id'])}"))
    if told.status != 200:
        return 0
    with suppress(Refused):  # it is stored, and says what is wrong with it
        receiving.store(on, guid, str(item["event"]), told.body["request"]["payload"], missed=True)
    return 1


def _time(item: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(str(item["delivered_at"]))
