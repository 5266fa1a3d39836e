"""Grants a second when many claim or give back at once: `python -m tests.figures.contention`.

The use cases are the real ones, time is virtual, and tests/figures/virtual.py says what is assumed of AWS.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.domain.commands import SubmitJob
from penstock.domain.jobs.jobs import Job
from penstock.domain.logs import logs
from penstock.domain.logs.logs import CONTROL, Line
from penstock.domain.pools.pools import WORKER
from penstock.domain.units import units
from penstock.domain.units.units import CleanProof, Unit, UnitState, unit_key
from penstock.domain.users.users import User
from penstock.kernel.rows import Row, next_look
from penstock.testing.site import site_toml
from penstock.testing.store import with_version
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import submit
from penstock.usecases.site import apply
from penstock.usecases.units import release
from tests.figures.report import Budgets, table
from tests.figures.virtual import (
    CPU_MS,
    MESSAGE_MS,
    WRITE_UNITS,
    Engine,
    VirtualGroups,
    VirtualQueue,
    VirtualStore,
    VirtualWorld,
)

USER = User(name="ada", created=START, version=1)
LONGEST = 1800.0
"""When a run ends at the latest, in virtual seconds."""


@dataclass(frozen=True)
class Case:
    """What is measured: so many claims on targets with so many slots each; `functions` None is Lambda's ramp.

    `quota` is how much of it each claim takes of one quota over all targets. `hold` is for how many seconds a granted
    slot is kept; None keeps it for good.
    """

    claims: int
    slots: int
    functions: int | None
    is_throttled: bool = False
    targets: int = 1
    quota: int = 0
    hold: float | None = None


@dataclass(frozen=True)
class Figures:
    """What a case came to; figures per grant, but `granted`, `seconds` and `failed`."""

    case: Case
    granted: int
    seconds: float
    reads: float
    commits: float
    lost: float
    write_units: float
    read_units: float
    failed: int

    @property
    def rate(self) -> float:
        """Grants a second."""
        return self.granted / self.seconds if self.seconds else 0.0


class Messages:
    """The queues' port, in virtual time."""

    def __init__(self, storm: Storm) -> None:
        self._storm = storm

    def schedule(self, message: Mapping[str, Any]) -> None:
        """A step for the scheduler."""
        self._sent()
        self._storm.schedule.send(dict(message))

    def serve(self, names: Sequence[str], group: str) -> None:
        """Pools to serve."""
        self._sent()
        self._storm.serving.send({"do": "serve", "pools": list(names), "group": group}, group)

    def advance(self, unit: str, is_worker: bool, after: int = 0, maker: str = "") -> None:
        """A unit was granted: it is given back when its time is over."""
        del is_worker, after, maker
        self._sent()
        self._storm.unit_ordered(unit)

    def _sent(self) -> None:
        self._storm.engine.sleep(CPU_MS / 1000)
        self._storm.engine.between(MESSAGE_MS)


class Storm(Twin):
    """The twin in virtual time."""

    def __init__(self, case: Case, seed: int = 0) -> None:
        super().__init__()
        self.case = case
        self.engine = Engine(seed)
        self.world = VirtualWorld(self.engine)
        self.store = self.table = VirtualStore(self.engine, is_throttled=False)
        self.on = replace(self.on, store=self.table, world=self.world)
        self.schedule = VirtualQueue(self.engine, lambda message: self.take("schedule", message), case.functions)
        self.serving = VirtualGroups(self.engine, lambda message: self.take("schedule", message))
        self.factory = VirtualQueue(self.engine, self._give_back, case.functions)
        self.granted: dict[str, float] = {}
        apply.apply(self.on, "root", _site(case), "site.toml")
        self.run()
        self.on = replace(self.on, queues=Messages(self))

    def claim(self) -> Figures:
        """All claims at once; ends when everything has come to rest."""
        for job in _jobs(self):
            self._put(job, 0)
            self._put(_accepted(job), 0)
            self.schedule.send({"do": "acquire", "job": job.id, "attempt": 1, "step": WORKER, "token": job.id})
        return self._measured()

    def give_back(self) -> Figures:
        """All that is held at once, after everything was granted."""
        self.claim()
        self.granted.clear()
        held = [row.id for row in self.table.rows.values() if isinstance(row, Unit)]
        for unit in held:
            self.factory.send(unit)
        return self._measured()

    def _measured(self) -> Figures:
        begun = self.engine.time
        self.table.counts.clear()
        self.table.is_throttled = self.case.is_throttled
        self.engine.run(begun + LONGEST)
        gone = sum(isinstance(row, Unit) and row.state is UnitState.GONE for row in self.table.rows.values())
        done, counts = len(self.granted) or gone, self.table.counts
        last = max(self.granted.values(), default=self.engine.time) - begun
        per = {name: counts[name] / max(1, done) for name in ("reads", "commits", "lost", "write units", "read units")}
        return Figures(
            self.case,
            done,
            last,
            *per.values(),
            failed=self.schedule.failed + self.serving.failed + self.factory.failed,
        )

    def unit_ordered(self, unit: str) -> None:
        """A unit's maker is to take a step."""
        row = self.table.rows[unit_key(unit)]
        if isinstance(row, Unit) and row.state is UnitState.CREATING and unit not in self.granted:
            self.granted[unit] = self.engine.time
            if self.case.hold is not None:
                self.factory.send(unit, self.case.hold)

    def _give_back(self, unit_id: str) -> None:
        """A job has ended, which is not measured; its unit is gone, and its slot is given back."""
        unit = self.table.rows[unit_key(unit_id)]
        assert isinstance(unit, Unit)
        if unit.state is UnitState.CREATING:
            unit = units.end_lease(unit, "its job has ended", self.world.now())
            self._put(unit, unit.version)
        release.unit_destroyed(self.on, unit, CleanProof("hand", self.world.now(), unit.id))

    def _put(self, row: Row, version: int) -> None:
        self.table.rows[row.key] = with_version(row, version + 1, next_look(row))


def _site(case: Case) -> str:
    uses = {"uses": {"vcpus": case.quota}} if case.quota else {}
    targets: dict[str, Any] = {f"t{number}": {"limit": case.slots, **uses} for number in range(case.targets)}
    quotas = {"quotas": {"vcpus": 1_000_000}} if case.quota else {}
    return site_toml(targets={**targets, "default": "t0"}, **quotas)


def _jobs(storm: Storm) -> list[Job]:
    names = [f"t{number}" for number in range(storm.case.targets)]
    likes = [submit.prepare(storm.on, USER, SubmitJob("#!/bin/sh\n", target=name)).job for name in names]
    return [replace(likes[n % len(likes)], id=storm.world.ulid()) for n in range(storm.case.claims)]


def _accepted(job: Job) -> Row:
    """The line that the log of every job begins with."""
    batch = logs.append_service_lines(None, job.id, 1, [Line(START, CONTROL, f"job {job.id} is accepted")])
    assert batch
    return batch


CLAIMS = 1000
FUNCTIONS = 32
"""With how many functions the budgets are."""
HEADS = (
    "claims", "slots", "functions", "partition", "granted", "seconds", "grants/s", "reads", "commits", "lost races",
    "write units", "failed",
)  # fmt: skip


def cases(claims: int) -> dict[str, list[Case]]:
    """What is measured, by title."""
    functions = (1, 5, 32, None)
    return {
        f"{claims:,} claims at once, as many slots": [
            Case(claims, claims, each, throttled) for throttled in (False, True) for each in functions
        ],
        f"{claims:,} claims at once, 10 slots, each kept for 0.1 s": [
            Case(claims, 10, each, throttled, hold=0.1) for throttled in (False, True) for each in functions
        ],
        f"{claims:,} claims at once on ten targets, one quota": [
            Case(claims, claims // 10, each, throttled, targets=10, quota=1)
            for throttled in (False, True)
            for each in functions
        ],
    }


STORM = "200 claims at once on as many slots, 32 functions"
"""The case that `make test` counts anew."""


def counts(found: Figures) -> dict[str, float]:
    """What a grant takes, as tests/figures/counts.toml has it."""
    return {"reads": found.reads, "commits": found.commits, "lost_races": found.lost, "write_units": found.write_units}


GRANTS, OF_QUOTA, LOST, OF_PARTITION = 400, 100, 0.5, 0.6
"""At least so many grants a second with 32 functions on as many slots, and of one quota over ten targets; with at most
so many lost races each, also where many claim few slots; and where a partition throttles, at least this part of what
its write units allow.
"""


def check(budgets: Budgets, found: Figures) -> None:
    """Say whether a storm keeps its budgets."""
    case = found.case
    if case.functions != FUNCTIONS:
        return
    least, lost = _least(found), found.case.claims if case.is_throttled else LOST
    kept = found.granted == case.claims and not found.failed and found.rate >= least and found.lost <= lost
    where = f"{case.targets} targets, {case.slots:,} slots each" + ", throttled" * case.is_throttled
    races = "" if case.is_throttled else f", at most {lost} lost races each"
    print(budgets.verdict(kept, f"{where}: every claim granted, at least {least:.0f} a second{races}"))


def _least(found: Figures) -> float:
    """How many grants a second there are to be at least. Where few slots are kept for a while, that is the limit."""
    case = found.case
    if case.targets > 1:
        return 0 if case.is_throttled else OF_QUOTA
    if case.claims > case.slots:
        return 0
    return OF_PARTITION * WRITE_UNITS / found.write_units if case.is_throttled else GRANTS


def row(found: Figures) -> tuple[object, ...]:
    """A row of the table."""
    case = found.case
    ran = "ramp" if case.functions is None else case.functions
    kind = "throttled" if case.is_throttled else "unlimited"
    return (
        case.claims, case.slots, ran, kind, found.granted, found.seconds, found.rate, found.reads, found.commits,
        f"{found.lost:.2f}", found.write_units, found.failed,
    )  # fmt: skip


def main() -> int:
    """0 when every budget was kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.figures.contention", description=__doc__)
    parser.add_argument("--claims", type=int, default=CLAIMS)
    parser.add_argument("--only", default="", help="only tables whose title has this text")
    parser.add_argument("--functions", type=int, help="only with so many functions, on a partition without limits")
    given = parser.parse_args()
    budgets = Budgets()
    for title, each in cases(given.claims).items():
        if given.only in title:
            chosen = [case for case in each if given.functions in (None, not case.is_throttled and case.functions)]
            found = [Storm(case).claim() for case in chosen]
            table(title, HEADS, [row(figures) for figures in found])
            for figures in found:
                check(budgets, figures)
    return 0 if budgets.kept else 1


if __name__ == "__main__":
    sys.exit(main())
