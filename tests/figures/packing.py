"""What it saves that small jobs share a machine: `python -m tests.figures.packing`. All times are virtual.

Everything is real but the ports, the machines and the time. All jobs come at once, of several owners; each needs a few
cpus of a machine of eight. A machine is paid for while it has a job, as one that is switched off when it is idle.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from penstock.domain.commands import SubmitJob
from penstock.domain.jobs.jobs import Job, Outcome
from penstock.domain.pools.pools import Slot, SlotState, collection
from penstock.domain.units.units import Unit, UnitState, unit_key
from penstock.domain.users.users import User
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import submit
from penstock.usecases.site import apply
from tests.figures.report import Budgets, table
from tests.figures.scale import PlainStore
from tests.usecases.lab_hosts import Bench

JOBS = 400
HOSTS, CPUS, OWNERS = 4, 8, 4

NEEDS = (1, 1, 1, 2, 2, 4)
"""How many cpus jobs need, each as likely as the other."""

LEAST, MOST = 30, 300
"""How long scripts take, in seconds."""

CLEANING = 5
"""How long a machine takes between two jobs, and a container to be removed, in seconds."""

STEP = 5
"""In steps of so many seconds the time goes on."""

LEASE = 24 * 3600
"""Nobody falls silent here, so nobody has to renew anything."""

IMAGE = f"registry.example.com/python@sha256:{'a' * 64}"

WAYS: Mapping[str, Mapping[str, Any]] = {
    "one job on a machine": {},
    "jobs of one owner share a machine": {"share": {"parts": CPUS}},
    "anybody's jobs share a machine": {"share": {"parts": CPUS, "serves": "site"}},
}

BETTER = 1.5
"""How many times as many jobs a minute there are at least, and how much less is paid, where owners are kept apart."""


@dataclass(frozen=True)
class Found:
    """How many jobs were done in how many seconds, for how many seconds machines had a job, and scripts ran."""

    jobs: int
    seconds: int
    paid: int
    worked: int

    @property
    def per_minute(self) -> float:
        """Jobs a minute."""
        return self.jobs * 60 / self.seconds

    @property
    def paid_for_work(self) -> float:
        """Machine seconds for each second of a script."""
        return self.paid / self.worked


class Desk(Bench):
    """A host, or a part of it. `busy_until` is when its script ends, and then when it is clean."""

    def __init__(self, twin: Twin, host: str, part: int) -> None:
        super().__init__(twin, host)
        self.part, self.job, self.busy_until = part, "", 0

    def ask(self, **more: Any) -> Any:
        """Say where it is."""
        return super().ask(part=self.part, **more)

    def step(self, now: int, lengths: Mapping[str, int]) -> None:
        """Begin the job that it was given, or end it, or be clean."""
        if not self.worker and self.do() == "work":
            self.job = self.hello()
            self.busy_until = now + lengths[self.job]
        elif self.worker and now >= self.busy_until and self.job:
            self.report(self.job)
            self.job, self.busy_until = "", now + CLEANING
        elif self.worker and now >= self.busy_until:
            self.clean()


class Lab(Twin):
    """The twin with hosts that are all there."""

    def __init__(self, share: Mapping[str, Any]) -> None:
        super().__init__()
        self.store = PlainStore()
        self.on = replace(self.on, store=self.store)
        names = [f"bench-{number}" for number in range(1, HOSTS + 1)]
        machine = {"cpus": CPUS, "memory": "32GiB"}
        target = {"factory": "lab", "names": names, "machine": machine, **share}
        site = site_toml(
            factories={"lab": {"driver": "hosts", "image": IMAGE}},
            targets={"lab": target},
            limits={"lease": LEASE, "boot": LEASE, "jobs": 1_000_000, "submits": 1_000_000},
        )
        apply.apply(self.on, "root", site, "site.toml")
        self.run()
        parts = range(1, CPUS + 1) if share else [0]
        self.desks = {(name, part): Desk(self, name, part) for name in names for part in parts}
        for name in names:
            Bench(self, name).ask()
        self.run()

    def submit(self, number: int, cpus: int) -> str:
        """Submit a job of one of the owners."""
        user = User(name=f"owner-{number % OWNERS}", created=START, version=1)
        ask = SubmitJob("#!/bin/sh\n", target="lab", machine={"cpus": cpus})
        job = submit.submit(self.on, user, ask, None)
        self.run()
        return job

    def step(self, now: int, lengths: Mapping[str, int]) -> int:
        """Have all who have something to do take a step. How many hosts have a job after that."""
        given = {self._place(slot) for slot in self._held() if self._is_new(slot)}
        for place, desk in self.desks.items():
            if desk.worker or place in given:
                desk.step(now, lengths)
        return len({slot.thing for slot in self._held()})

    def _held(self) -> Sequence[Slot]:
        return self.store.find(collection("target/lab"), f"{SlotState.HELD}#", Slot)

    def _place(self, slot: Slot) -> tuple[str, int]:
        host, _, part = slot.name.partition("/")
        return host, int(part or 0)

    def _is_new(self, slot: Slot) -> bool:
        unit = self.store.rows.get(unit_key(slot.unit or ""))
        return isinstance(unit, Unit) and unit.state is UnitState.CREATING and unit.lease.slot == slot.name


def run(jobs: int, share: Mapping[str, Any]) -> Found:
    """So many jobs, until all are done and all machines are clean."""
    lab, dice, lengths = Lab(share), Random(7), dict[str, int]()
    for number in range(jobs):
        lengths[lab.submit(number, dice.choice(NEEDS))] = dice.randint(LEAST, MOST)
    now = paid = 0
    while (busy := lab.step(now, lengths)) or not now:
        paid, now = paid + busy * STEP, now + STEP
        lab.pass_time(STEP)
    done = [row for row in lab.store.rows.values() if isinstance(row, Job) and row.end.outcome is Outcome.SUCCEEDED]
    return Found(len(done), now, paid, sum(lengths.values()))


def tell(budgets: Budgets, jobs: int) -> None:
    """Print a table, and whether sharing is worth it."""
    found = {name: run(jobs, share) for name, share in WAYS.items()}
    heads = (
        f"{HOSTS} machines of {CPUS} cpus",
        "minutes",
        "jobs a minute",
        "machine seconds paid per second of script",
    )
    rows = [(name, each.seconds / 60, each.per_minute, f"{each.paid_for_work:.2f}") for name, each in found.items()]
    table(f"{jobs} small jobs of {OWNERS} owners, which come at once", heads, rows)
    plain, apart, mixed = found.values()
    print(budgets.verdict(all(each.jobs == jobs for each in found.values()), "every job succeeds"))
    print(budgets.verdict(is_better(plain, apart) and is_better(plain, mixed), f"{BETTER} times as good at least"))


def is_better(plain: Found, shared: Found) -> bool:
    """Whether there are more jobs a minute, and less is paid for them."""
    faster, cheaper = shared.per_minute / plain.per_minute, plain.paid_for_work / shared.paid_for_work
    return min(faster, cheaper) >= BETTER


def main() -> int:
    """Measure and print; 1 if sharing is not worth it."""
    parser = argparse.ArgumentParser(prog="python -m tests.figures.packing", description=__doc__)
    parser.add_argument("--jobs", type=int, default=JOBS)
    given, budgets = parser.parse_args(), Budgets()
    tell(budgets, given.jobs)
    return 0 if budgets.kept else 1


if __name__ == "__main__":
    sys.exit(main())
