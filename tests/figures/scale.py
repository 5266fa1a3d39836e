"""Jobs by the hundred thousand through the whole use cases: `python -m tests.figures.scale --jobs 1000000`.

Everything is real but the ports: submit, claims, up to two resources and a worker, its agent's hello and finish,
settling, and all put back. Nothing goes wrong, and there is no sweep. When a job is settled and has everything put back
its rows are dropped, as a table's time to live would later; what is left is what grows.
"""

from __future__ import annotations

import argparse
import gc
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from penstock.aws import dynamodb
from penstock.domain.commands import Hello, SubmitJob
from penstock.domain.jobs.jobs import Job, Result, job_key
from penstock.domain.pools.pools import Claim, Lease, LeaseState, Slot, SlotState
from penstock.domain.units.units import Unit, unit_key
from penstock.domain.users.users import User
from penstock.kernel.rows import Change, Check, Delete, Key
from penstock.ports import Order
from penstock.testing.site import site_toml
from penstock.testing.store import MemoryStore, as_stored, lease_now
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import submit
from penstock.usecases.site import apply
from penstock.usecases.workers import agents

SITE = site_toml(
    targets={"default": {"limit": 40}},
    wells={"locks": "lock"},
    resources={
        "bench": {"well": "locks", "limit": 20},
        "licence": {"well": "locks", "limit": 20, "uses": {"seats": 2}},
    },
    quotas={"seats": 30},
)

OPEN = 60
"""How many jobs are under way at once: more than there are slots for."""

SAMPLED = 1000
"""Of one in so many jobs it is counted what its rows would take in the table."""

TOKEN = "t" * 43
USER = User(name="ada", created=START, version=1)


class PlainStore(MemoryStore):
    """The twin's store without the codec, which the contracts of stores are about."""

    def _write(self, change: Change) -> None:
        if isinstance(change, Delete):
            del self.rows[change.was.key]
        elif not isinstance(change, Check):
            self.rows[change.row.key] = as_stored(change)


@dataclass(frozen=True)
class Tenth:
    """A tenth of a run: how many jobs were done at its end, its seconds of one core, and the bytes of memory then."""

    done: int
    seconds: float
    resident: int


@dataclass(frozen=True)
class Scaled:
    """What so many jobs took. `bytes_stored` is what one job's rows would take in the table."""

    jobs: int
    seconds: float
    outcomes: dict[str, int]
    rows_left: int
    resident: int
    bytes_stored: float
    tenths: Sequence[Tenth] = ()


class Works(Twin):
    """The twin with agents that do their work at once, and jobs that are forgotten when they are over."""

    def __init__(self) -> None:
        super().__init__()
        self.store = PlainStore()
        self.on = replace(self.on, store=self.store)
        self.open: dict[str, list[str]] = {}
        self.outcomes: Counter[str] = Counter()
        self.done = 0
        self.sizes: list[int] = []
        apply.apply(self.on, "root", SITE, "site.toml")
        self.run()

    def submit(self, number: int) -> None:
        """Submit a job: a third wants two resources, a third one, a third none but its worker."""
        wanted = (["bench", "licence"], ["licence"], [])[number % 3]
        job = submit.submit(self.on, USER, SubmitJob("#!/bin/sh\n", resources=wanted), None)
        self.open[job] = []

    def act(self) -> None:
        """Let every machine's agent say hello, run its script and finish."""
        for order in list(self.drivers.hand.made.values()):
            if self._is_new(order):
                agents.hello(self.on, Hello(order.id, order.key, TOKEN))
                self.run()
                unit = self.store.rows[unit_key(order.id)]
                assert isinstance(unit, Unit)
                caller = agents.authenticate(self.on, unit.lease.job, TOKEN)
                agents.report_finished(self.on, caller, Result.SUCCEEDED, "the script ended", 0)
                self.run()

    def _is_new(self, order: Order) -> bool:
        unit = self.store.rows.get(unit_key(order.id))
        return isinstance(unit, Unit) and unit.session.token_hash is None and unit.cleaning.proof is None

    def forget(self) -> None:
        """Drop what belongs to jobs that are over: settled, and everything put back."""
        for job in list(self.open):
            row = self.store.rows.get(job_key(job))
            if isinstance(row, Job) and row.is_settled:
                mine = list(self._rows_of(job))
                leases = [each for each in map(self.store.rows.get, mine) if isinstance(each, Lease)]
                if all(lease_now(self.store.rows, lease).state is LeaseState.RELEASED for lease in leases):
                    self._drop(row, [*mine, *(unit_key(lease.unit) for lease in leases if lease.unit)])

    def _rows_of(self, job: str) -> Iterator[Key]:
        return self.store.rows.irange(Key(f"job#{job}", ""), Key(f"job#{job}", "~"))  # type: ignore[attr-defined]

    def _drop(self, job: Job, keys: Sequence[Key]) -> None:
        if self.done % SAMPLED == 0:
            self.sizes.append(sum(len(dynamodb.dump(self.store.rows[key])) for key in keys))
        for key in keys:
            del self.store.rows[key]
        flow = self.flows.executions.pop((job.id, job.attempt), None)  # none if all was free at once
        self.flows.tokens = {token: each for token, each in self.flows.tokens.items() if each is not flow}
        del self.open[job.id]
        self.outcomes[str(job.end.outcome)] += 1
        self.done += 1


def run(jobs: int, told: Callable[[Tenth], object] = lambda _: None) -> Scaled:
    """That many jobs, one after the other as places fall free, until nothing is left of them. Tells each tenth."""
    works, submitted, began = Works(), 0, time.process_time()
    tenths: list[Tenth] = []
    while works.done < jobs:
        before = works.done
        while submitted < jobs and len(works.open) < OPEN:
            works.submit(submitted)
            submitted += 1
        works.run()
        works.act()
        works.forget()
        works.pass_time(timedelta(minutes=1).total_seconds())
        assert works.done > before, "nothing moves any more, and there is no sweep"
        if works.done * 10 // jobs > len(tenths):
            gone = sum(each.seconds for each in tenths)
            tenths.append(Tenth(works.done, time.process_time() - began - gone, resident()))
            told(tenths[-1])
    seconds = time.process_time() - began
    left = [row for row in works.store.rows.values() if isinstance(row, Claim) or _is_held(row)]
    assert not left, f"{len(left)} claims and held slots are left"
    gc.collect()
    size = sum(works.sizes) / len(works.sizes)
    return Scaled(jobs, seconds, dict(works.outcomes), len(works.store.rows), resident(), size, tenths)


def _is_held(row: object) -> bool:
    return isinstance(row, Slot) and row.state is SlotState.HELD


def resident() -> int:
    """The most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def tell(done: Scaled) -> list[object]:
    """A row of the table."""
    kib, mib = 1024, 1024**2
    each = 1000 * done.seconds / done.jobs
    return [done.jobs, str(done.outcomes), done.rows_left, each, done.resident // mib, done.bytes_stored / kib]


HEADS = ("jobs", "outcomes", "rows left", "ms of one core per job", "most MiB", "KiB of a job's rows in the table")


def _show(tenth: Tenth) -> None:
    print(f"{tenth.done:>9} jobs: {tenth.seconds:8.1f} s for this tenth, {tenth.resident // 1024**2} MiB", flush=True)


def main() -> int:
    """Run so many jobs; 1 when one of them did not succeed."""
    parser = argparse.ArgumentParser(prog="python -m tests.figures.scale", description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    done = run(parser.parse_args().jobs, _show)
    for head, value in zip(HEADS, tell(done), strict=True):
        print(f"{head}: {value}")
    return 0 if done.outcomes == {"succeeded": done.jobs} else 1


if __name__ == "__main__":
    sys.exit(main())
