"""What a grant costs when many serve one pool at once: real handlers at one moment, on the emulator, counted there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from penstock.domain.commands import SubmitJob
from penstock.domain.jobs.jobs import Job
from penstock.domain.pools import grants
from penstock.domain.pools.pools import Lease, LeaseState, Slot, SlotName, SlotState
from penstock.kernel.rows import Create
from penstock.system import System
from penstock.usecases.jobs import submit
from penstock.usecases.pools import serving
from tests.concurrency import cloud, crew, site
from tests.concurrency.crew import Orders
from tests.concurrency.faults import Rates
from tests.concurrency.run import SPAWN, together

POOL = "resource/licence"
CLAIMS = 48
"""How many wait, for as many free slots."""

PROCESSES = 4
"""Over how many processes the servers are spread, as threads."""

READS = ("GetItem", "Query")


@dataclass(frozen=True)
class Served:
    """What it took to grant CLAIMS claims: requests of the emulator that read, that wrote, and those of lost races."""

    servers: int
    reads: float
    writes: float
    lost: float


def measure(servers: int) -> Served:
    """Let so many serve one pool at once, again until nobody waits, and count per grant."""
    with TemporaryDirectory() as folder, cloud.emulator() as env:
        orders = Orders(env, Path(folder), 0, 0, Rates(0, 0, 0), 0)
        together([(crew.prepare, (orders,))])
        together([(_fill, (orders,))])
        processes = min(servers, PROCESSES)
        barrier, lost = SPAWN.Barrier(servers), SPAWN.Value("i", 0)
        cloud.meter(env, reset=True)
        threads = servers // processes
        together([(_serve, (replace(orders, number=each), threads, barrier, lost)) for each in range(processes)])
        counted = cloud.meter(env)["operations"]
        granted = sum(isinstance(row, Lease) and row.state is LeaseState.GRANTED for row in cloud.rows(env))
    if granted != CLAIMS:
        raise RuntimeError(f"{granted} of {CLAIMS} claims were granted")
    reads = sum(counted.get(f"dynamodb:{name}", 0) for name in READS)
    writes = sum(count for name, count in counted.items() if name.startswith("dynamodb:")) - reads
    return Served(servers, reads / CLAIMS, writes / CLAIMS, lost.value / CLAIMS)


def _fill(orders: Orders) -> None:
    """Slots that are free and claims that wait, as rows: nobody is served."""
    on, _, _ = crew.system(orders)
    like = submit.prepare(on, site.USER, SubmitJob("#!/bin/sh\n", resources=["licence"])).job
    for number in range(CLAIMS):
        name = f"more-{number}"
        slot = Slot(pool=POOL, name=name, state=SlotState.FREE)
        on.store.commit([Create(SlotName(pool=POOL, name=name)), Create(slot)])
        on.store.commit([Create(row) for row in _waiting(on, replace(like, id=on.world.ulid()))])


def _waiting(on: System, job: Job) -> Iterator[Job | Lease]:
    need = next(need for need in job.request.needs if need.step == 1)
    now = on.world.now()
    yield job
    yield Lease(
        job=job.id, attempt=1, order=need.order, step=1, name=need.name, type=need.type, pool=need.pool,
        state=LeaseState.WAITING, token="token", since=now,
    )  # fmt: skip
    yield from grants.claims(job, 1, now)  # type: ignore[misc]


def _serve(orders: Orders, threads: int, barrier: threading.Barrier, lost: object) -> None:
    """So many servers in this process, each with a store of its own, that all begin at one moment."""
    numbers = [1000 * (orders.number + 1) + each for each in range(threads)]  # each keeps a record of its own
    given = [(replace(orders, number=number), barrier, lost) for number in numbers]
    servers = [threading.Thread(target=_serve_until_none_waits, args=each) for each in given]
    for server in servers:
        server.start()
    for server in servers:
        server.join()


def _serve_until_none_waits(orders: Orders, barrier: threading.Barrier, lost: object) -> None:
    on, store, messages = crew.system(orders)
    barrier.wait()
    serving.serve(on, [POOL])
    while message := messages.take():
        if message["do"] == "serve":
            serving.serve(on, [POOL])
    with lost.get_lock():  # type: ignore[attr-defined]
        lost.value += store.lost  # type: ignore[attr-defined]
