"""A cloud, a crew, and what they leave."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.context import SpawnProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from penstock.kernel.rows import Row
from tests.concurrency import cloud, crew, record
from tests.concurrency.crew import Orders, Shared
from tests.concurrency.faults import Rates

SPAWN = multiprocessing.get_context("spawn")
"""A fresh interpreter each: nothing that one process knows is known to another."""

SOME = Rates()


@dataclass(frozen=True)
class Size:
    """How much: claims, processes, and how many leases jobs may ask for at once."""

    claims: int
    processes: int
    open_leases: int = 40


@dataclass(frozen=True)
class Left:
    """What there is when all is over: what the processes recorded, the rows, and what the emulator counted."""

    lines: list[dict[str, Any]]
    rows: list[Row]
    meter: Mapping[str, Any]
    seconds: float
    lost: int
    redelivered: int


def run(size: Size, seed: int, *, rates: Rates = SOME, dropped: str | None = None) -> Left:
    """Run a crew on a cloud of its own until there is nothing left to do."""
    with TemporaryDirectory(prefix="penstock-records-") as text, cloud.emulator() as env:
        folder = Path(text)
        orders = [
            Orders(env, folder, number, seed, rates, size.open_leases, dropped) for number in range(size.processes)
        ]
        together([(crew.prepare, (orders[0], _shared(size.claims, processes=1)))])
        cloud.meter(env, reset=True)
        shared = _shared(size.claims, size.processes)
        began = time.monotonic()
        together([(crew.work, (each, shared)) for each in orders], lambda: _tell(shared))
        seconds = time.monotonic() - began
        counted = cloud.meter(env)
        lines, rows = record.read(folder), cloud.rows(env)
        return Left(lines, rows, counted, seconds, shared.lost.value, shared.redelivered.value)


def _shared(claims: int, processes: int) -> Shared:
    return Shared(
        claims_left=SPAWN.Value("i", claims),
        open_leases=SPAWN.Value("i", 0),
        inboxes=[SPAWN.SimpleQueue() for _ in range(processes)],
        pending=SPAWN.Value("i", 0),
        over=SPAWN.Value("i", 0),
        moved=SPAWN.Value("d", time.monotonic()),
        lost=SPAWN.Value("i", 0),
        redelivered=SPAWN.Value("i", 0),
    )


def _tell(shared: Shared) -> None:
    """How far it is, on a terminal's other channel."""
    line = f"{max(0, shared.claims_left.value)} claims to be made, {shared.open_leases.value} leases open"
    print(f"- {line}, {shared.pending.value} messages", file=sys.stderr, flush=True)


def together(
    work: list[tuple[Callable[..., None], tuple[Any, ...]]], progress: Callable[[], None] = lambda: None
) -> None:
    """Run each in a process of its own. Raises RuntimeError when one of them does not end well."""
    started: list[SpawnProcess] = [SPAWN.Process(target=what, args=given) for what, given in work]
    for process in started:
        process.start()
    try:
        while any(process.is_alive() for process in started) and not any(process.exitcode for process in started):
            if not multiprocessing.connection.wait([each.sentinel for each in started if each.is_alive()], 10):
                progress()
    finally:
        for process in started:
            process.kill()
            process.join()
    ended = [process.exitcode for process in started]
    if any(ended):
        raise RuntimeError(f"processes ended with {ended}")
