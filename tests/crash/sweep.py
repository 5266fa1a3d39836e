"""The crash sweep: every scenario, once for each mode at each AWS call of each handler in it.

    PYTHONPATH=functions:. python -m tests.crash.sweep [--every] [--processes N] [SCENARIO ...]
    PYTHONPATH=functions:. python -m tests.crash.sweep --only CALL MODE SCENARIO

The second form makes one run, with one fault, and shows what it raises.
"""

from __future__ import annotations

import random
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from multiprocessing import get_context

import pytest

from penstock.domain.users import ADMIN
from penstock.usecases import users
from tests.crash import own
from tests.crash.faults import Call, Fault, Mode, points
from tests.crash.life import Life
from tests.crash.runtime import Runtime
from tests.crash.scenarios import SCENARIOS
from tests.crash.site import Site
from tests.crash.sitefile import SITE
from tests.twin.world import START

OPERATOR = "root"
MORE = (own,)
"""Modules whose scenarios are among SCENARIOS as soon as they are imported."""


@dataclass
class Found:
    """A fault after which a promise was broken."""

    scenario: str
    fault: Fault
    call: Call
    error: BaseException

    def __str__(self) -> str:
        where = f"{self.scenario}: {self.fault.mode} at call {self.fault.number}"
        return f"{where}, {self.call.operation} of {self.call.handler}: {type(self.error).__name__}: {self.error}"


@dataclass
class Tally:
    """What was tried, and what was found."""

    tried: Counter[Mode] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    late: int = 0
    found: list[Found] = field(default_factory=list)

    @property
    def points(self) -> int:
        """How many runs with a fault there were."""
        return self.tried.total()


class Sweep:
    """A site with its first rows, and runs on it, each of which begins with the same."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.site = Site(patch)
        users.create(self.site.on, OPERATOR, [ADMIN])
        self.token, _ = users.issue(self.site.on, OPERATOR, None)
        runtime = Runtime(self.site, None)
        reply = runtime.ask("user", "PUT", "/v1/config", self.token, {"toml": SITE})
        assert reply.status == 200, reply
        while runtime.deliver():
            pass
        self._rows = self.site.rows()

    def close(self) -> None:
        """End the threads of flows that are parked: a normal exit would wait for them."""
        self.site.flows.forget()

    def run(self, scenario: str, fault: Fault | None = None) -> Life:
        """One run of a scenario. Raises AssertionError for a promise that was not kept."""
        self.site.restore(self._rows)
        self.site.world.time, self.site.world.dice = START, random.Random(1)
        life = Life(self.site, SCENARIOS[scenario].script, self.token, fault)
        life.live()
        if fault:
            assert life.runtime.seam.happened, "the run never came to the call"
        return life

    def sweep(self, scenario: str, modes: Iterable[Mode] = Mode, *, every: bool = False, first: bool = False) -> Tally:
        """Every mode at every call of a scenario; unless `every`, without those that are the same as others.

        With `first`, only until something is found.
        """
        tally, wanted = Tally(), SCENARIOS[scenario].minutes
        calm = self.run(scenario)
        assert calm.minutes == wanted, f"{scenario} took {calm.minutes} minutes, not {wanted}: a hint is not sent"
        calls = list(calm.runtime.seam.calls)
        tally.calls.update(call.handler for call in calls)
        for fault in points(calls, modes, every=every):
            tally.tried[fault.mode] += 1
            try:
                life = self.run(scenario, fault)
                tally.late = max(tally.late, life.minutes - wanted)
                ended = _outcomes(life), _outcomes(calm)
                assert ended[0] == ended[1], f"the jobs ended {ended[0]}, and {ended[1]} when nothing goes wrong"
            except Exception as error:
                tally.found.append(Found(scenario, fault, calls[fault.number], error))
            if first and tally.found:
                break
        return tally


def _outcomes(life: Life) -> list[str]:
    return [str(job.outcome) for job in sorted(life.jobs(), key=lambda job: job.id)]


def report(scenario: str, tally: Tally) -> str:
    """One line on what was tried."""
    handlers = ", ".join(f"{name} {count}" for name, count in sorted(tally.calls.items()))
    return (
        f"crash sweep: {scenario}: {tally.calls.total()} calls ({handlers}), {tally.points} points, "
        f"{len(tally.found)} broken, at most {tally.late} minutes later"
    )


def one(scenario: str, fault: Fault | None) -> None:
    """One run in an emulated account of its own. Raises AssertionError for a promise that was not kept."""
    with pytest.MonkeyPatch.context() as patch, closing(Sweep(patch)) as sweep:
        sweep.run(scenario, fault)


def part(what: tuple[str, Mode, bool]) -> tuple[str, int, list[str]]:
    """One mode of one scenario, in a process of its own: a line on it, its points, and what is broken."""
    scenario, mode, every = what
    with pytest.MonkeyPatch.context() as patch, closing(Sweep(patch)) as sweep:
        tally = sweep.sweep(scenario, [mode], every=every)
    return report(f"{scenario}, {mode}", tally), tally.points, [str(found) for found in tally.found]


def main() -> None:
    """Sweep, and end with status 1 if a promise was broken."""
    words = ArgumentParser(description="Try every fault at every AWS call of every handler.")
    words.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(SCENARIOS)}; default: all")
    words.add_argument("--every", action="store_true", help="also points that are the same as others")
    words.add_argument("--processes", type=int, default=1, help="how many at once; default: 1")
    words.add_argument("--only", nargs=2, metavar=("CALL", "MODE"), help="one run with one fault")
    given = words.parse_args()
    if given.only:
        one(given.scenarios[0], Fault(int(given.only[0]), Mode(given.only[1])))
        return
    tried, broken = 0, 0
    chosen = given.scenarios or list(SCENARIOS)
    parts = [(scenario, mode, given.every) for scenario in chosen for mode in Mode]
    with get_context("spawn").Pool(given.processes, maxtasksperchild=1) as pool:
        for line, points_, found in pool.imap_unordered(part, parts):
            tried, broken = tried + points_, broken + len(found)
            print("\n  ".join([line, *found]), flush=True)
    print(f"crash sweep: {tried} points tried, {broken} broken")
    sys.exit(broken > 0)


if __name__ == "__main__":
    main()
