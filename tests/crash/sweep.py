"""The crash sweep: every scenario, once for each mode at each AWS call of each handler in it.

PYTHONPATH=functions python -m tests.crash.sweep [SCENARIO [CALL MODE]]
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pytest

from penstock.domain.users import ADMIN
from penstock.usecases import users
from tests.crash.faults import Call, Fault, Mode, points
from tests.crash.life import Life
from tests.crash.runtime import Runtime
from tests.crash.scenarios import SCENARIOS, SITE
from tests.crash.site import Site
from tests.twin.world import START

OPERATOR = "root"

WANTED = os.environ.get("CRASH_SWEEP", "")
"""Empty for a part, `all` for every scenario, `every` for that and also the points that are the same as others."""


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


def _outcomes(life: Life) -> list[Any]:
    return [str(job.outcome) for job in sorted(life.jobs(), key=lambda job: job.id)]


def report(scenario: str, tally: Tally) -> str:
    """One line on what was tried."""
    handlers = ", ".join(f"{name} {count}" for name, count in sorted(tally.calls.items()))
    return (
        f"crash sweep: {scenario}: {tally.calls.total()} calls ({handlers}), {tally.points} points, "
        f"{len(tally.found)} broken, at most {tally.late} minutes later"
    )


def main(words: Sequence[str]) -> None:
    """Sweep, and end with status 1 if a promise was broken."""
    with pytest.MonkeyPatch.context() as patch, closing(Sweep(patch)) as sweep:
        if len(words) == 3:
            sweep.run(words[0], Fault(int(words[1]), Mode(words[2])))
            return
        tried, broken = 0, 0
        for scenario in words[:1] or SCENARIOS:
            tally = sweep.sweep(scenario, every=WANTED == "every")
            tried, broken = tried + tally.points, broken + len(tally.found)
            print(report(scenario, tally), flush=True)
            for found in tally.found:
                print(f"  {found}", flush=True)
    print(f"crash sweep: {tried} points tried, {broken} broken")
    sys.exit(broken > 0)


if __name__ == "__main__":
    main(sys.argv[1:])
