"""One process: it submits jobs, takes messages as the handlers do, and ends when there is nothing left to do."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pynamodb.exceptions import PynamoDBException

from penstock.aws.clock import RealWorld
from penstock.domain.pools.pools import WORKER
from penstock.drivers import Registry
from penstock.kernel.errors import Moved
from penstock.kernel.rows import Create
from penstock.local.cloud import REGION
from penstock.system import System
from penstock.testing.twin import MemoryObjects, MemoryVault
from penstock.usecases.jobs import flow, settle, submit
from penstock.usecases.pools import resize, scheduler, serving
from penstock.usecases.site import apply
from penstock.usecases.units import advance
from tests.concurrency import faults, site
from tests.concurrency.cloud import TABLE
from tests.concurrency.ports import Messages, Steps
from tests.concurrency.record import RecordedTable

DELIVERIES = 20
"""How often a message is delivered before it is given up, which the audit then tells."""

QUIET_SECONDS = 5.0
"""With no message due anywhere for so long, nothing moves any more: there is no sweep. What only a driver's pause would
move on was not handed over, and that is to be told."""


STALL_SECONDS = 0.05
"""How long every commit of the control waits after its reads, so that others certainly come between."""


@dataclass(frozen=True)
class Orders:
    """What one process is to do. `dropped` is a condition that its store lacks, for control."""

    env: Mapping[str, str]
    folder: Path
    number: int
    seed: int
    rates: faults.Rates
    open_jobs: int
    dropped: str | None = None


@dataclass(frozen=True)
class Shared:
    """What the processes count together. Each is a value in shared memory."""

    claims_left: Any
    open_leases: Any
    inboxes: Any
    pending: Any
    over: Any
    moved: Any
    lost: Any
    redelivered: Any


def system(orders: Orders, shared: Shared) -> tuple[System, RecordedTable, Messages]:
    """The real use cases' ports: the real store and driver, and the queues and flows that all processes share."""
    os.environ.update(orders.env)
    dice = random.Random(f"{orders.seed} messages {orders.number}")
    messages = Messages(dice, shared.inboxes, orders.number, shared.pending)
    store = RecordedTable(TABLE, REGION, orders.folder / f"{orders.number}.jsonl")
    world, objects = RealWorld(), MemoryObjects()
    on = System(store, messages, Steps(messages), objects, Registry({}), world, MemoryVault(), "", lambda: "")
    return on, store, messages


def prepare(orders: Orders, shared: Shared) -> None:
    """Apply the site and bring its pools to their limits, alone."""
    on, _, messages = system(orders, shared)
    apply.apply(on, "root", site.SITE, "site.toml")
    while message := messages.take():
        resize.resize(on, message["pool"])
        messages.handled()


def work(orders: Orders, shared: Shared) -> None:
    """Everything that one process does."""
    on, store, messages = system(orders, shared)
    dice = random.Random(f"{orders.seed} work {orders.number}")
    faults.install(orders.rates, random.Random(f"{orders.seed} faults {orders.number}"))
    if orders.dropped:
        faults.drop(orders.dropped)
        store.stall = STALL_SECONDS
    while not _is_over(shared):
        if shared.open_leases.value < orders.open_jobs:
            _submit(on, shared, dice, messages)
        message = messages.take()
        if message is None:
            time.sleep(0.005)
            continue
        shared.moved.value = time.monotonic()
        again = _deliver(on, messages, message)
        for total, own in ((shared.open_leases, store.open), (shared.lost, store.lost), (shared.redelivered, again)):
            with total.get_lock():
                total.value += own
        store.open = store.lost = 0
        messages.handled()


def _is_over(shared: Shared) -> bool:
    """Whether all is done, or nothing moves any more. Once that was so, it is for every process: none sends to one that
    has ended, and waits for it.
    """
    if shared.claims_left.value <= 0 and shared.pending.value <= 0:
        is_quiet = time.monotonic() > shared.moved.value + QUIET_SECONDS
        shared.over.value |= shared.open_leases.value <= 0 or is_quiet
    return bool(shared.over.value)


def _submit(on: System, shared: Shared, dice: random.Random, messages: Messages) -> None:
    """Submit a job without a worker's step, if claims are left to be made."""
    with shared.claims_left.get_lock():
        if shared.claims_left.value <= 0:
            return
        messages.submitting()
        made = submit.prepare(on, site.USER, site.ask(dice)).job
        job = replace(
            made,
            request=replace(made.request, needs=tuple(need for need in made.request.needs if need.order != WORKER)),
        )
        steps = flow.steps(job.request.needs)
        shared.claims_left.value -= len(steps)
        with shared.open_leases.get_lock():
            shared.open_leases.value += len(job.request.needs)
        shared.moved.value = time.monotonic()
    while not on.store.commit([Create(job)]):
        if on.store.get(job.key, type(job)):
            break  # it is ours: the answer was lost
    on.flows.start(job.id, 1, steps)
    messages.handled()


def _deliver(on: System, messages: Messages, message: dict[str, Any]) -> bool:
    """Deliver a message as SQS does: one whose handler fails comes again. True when it does."""
    try:
        _take(on, message)
    except (Moved, PynamoDBException):
        tries = message.get("tries", 1)
        if tries < DELIVERIES:
            messages.put(message | {"tries": tries + 1})
        return True
    return False


def _take(on: System, message: dict[str, Any]) -> None:
    """Do what a handler does with a message."""
    do = message["do"]
    if do == "acquire":
        _, step, _ = message["token"].split("/")
        scheduler.acquire(on, message["job"], 1, int(step), message["token"])
    elif do == "advance":
        advance.advance(on, message["unit"])
    elif do == "settle":
        settle.settle(on, message["job"], 1, message["error"], message["cause"])
    elif do == "serve":
        serving.serve(on, message["pools"])
    elif do == "granted":
        serving.granted(on, message["units"], message["warm"])
    elif do == "start":
        raise AssertionError("no job has a second attempt")
