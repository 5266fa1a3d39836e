"""The crash sweep: every scenario, once for each mode at each AWS call of each handler in it.

    export PYTHONPATH=functions:.
    python -m tests.crash.sweep [--every] [--mode MODE] [--of HANDLER] [--processes N] [SCENARIO ...]
    python -m tests.crash.sweep --only CALL MODE SCENARIO

The second form makes one run, with one fault, and shows what it raises.
"""

from __future__ import annotations

import random
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context

import pytest

from penstock.domain.jobs.jobs import Job
from penstock.domain.logs import logs
from penstock.domain.users.users import ADMIN
from penstock.testing.twin import START
from penstock.usecases.users import tokens, users
from tests.crash import dependencies, front, own, warm
from tests.crash.branches import Branches, End, Trail
from tests.crash.faults import Call, Fault, Mode, Plan, calm, points
from tests.crash.life import Life, Rests, ignored
from tests.crash.runtime import Runtime
from tests.crash.scenarios import SCENARIOS as SCENARIOS  # all of them, as soon as MORE is imported
from tests.crash.site import Site
from tests.crash.sitefile import SITE

OPERATOR = "root"
MORE = (warm, dependencies, own, front)
"""Modules whose scenarios are among SCENARIOS as soon as they are imported."""


@dataclass
class Found:
    """A fault after which a promise was broken."""

    scenario: str
    fault: Fault
    call: Call
    broken: str

    def __str__(self) -> str:
        where = f"{self.scenario}: {self.fault.mode} at call {self.fault.number}"
        return f"{where}, {self.call.operation} of {self.call.handler}: {self.broken}"


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
    """A site with its first rows, and runs on it, each of which begins with the same. No log is too short for S3."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(logs, "SHORT_BYTES", 0)
        self.site = Site(patch)
        users.create(self.site.on, OPERATOR, [ADMIN])
        self.token, _ = tokens.mint_first(self.site.on, OPERATOR, "never", "")
        runtime = Runtime(self.site)
        reply = runtime.ask("user", "PUT", "/v1/config", self.token, {"toml": SITE})
        assert reply.status == 200, reply
        while runtime.deliver():
            pass
        self._rows = self.site.rows()

    def close(self) -> None:
        """End the threads of flows that are parked: a normal exit would wait for them. Another account may follow."""
        self.site.close()

    def run(self, scenario: str, plan: Plan = calm, rests: Rests = ignored) -> Life:
        """One run of a scenario. Raises AssertionError for a promise that was not kept."""
        self.site.restore(self._rows)
        self.site.world.time, self.site.world.dice = START, random.Random(1)
        life = Life(self.site, SCENARIOS[scenario].script, self.token, plan, rests)
        life.live()
        return life

    def sweep(
        self,
        scenario: str,
        modes: Iterable[Mode] = Mode,
        of: Collection[str] = (),
        *,
        every: bool = False,
        first: bool = False,
    ) -> Tally:
        """Every mode at every call of a scenario; unless `every`, without those that are the same as others.

        With `of`, only at calls of these handlers; with `first`, only until something is found.
        """
        wanted, trail = SCENARIOS[scenario].minutes, Trail()
        before = self.run(scenario, rests=trail.rests)
        assert before.minutes == wanted, f"{scenario} took {before.minutes} minutes, not {wanted}: a hint is not sent"
        calls = list(before.runtime.seam.calls)
        well = End(before.minutes, states=trail.states)
        faults = points(calls, modes, of, every=every)
        assert faults, f"{scenario} has no call of {', '.join(of) or 'anybody'} that can go wrong so"
        branches = Branches(faults, well, first=first)
        self._part(scenario, branches, before)
        assert not branches.missed(), (
            f"{branches.missed()} calls were not made the second time: a run is not repeatable"
        )
        tally = Tally(Counter(fault.mode for fault in branches.ends), Counter(call.handler for call in calls))
        tally.late = max(end.minutes for end in branches.ends.values()) - wanted
        for fault, end in branches.ends.items():
            if end.broken:
                tally.found.append(Found(scenario, fault, calls[fault.number], end.broken))
        return tally

    def _part(self, scenario: str, branches: Branches, well: Life) -> None:
        """A run with all of its branches. Only the run itself comes back from here."""
        try:
            life = self.run(scenario, branches.at, branches.rests)
            _check_outcomes(life, well)
        except BaseException as error:
            if not branches.is_one:
                raise
            branches.end(0, f"{type(error).__name__}: {error}")
        if branches.is_one:
            branches.end(life.minutes)


def _check_outcomes(life: Life, well: Life) -> None:
    """Raises AssertionError if jobs ended otherwise than when nothing goes wrong."""
    mode = life.runtime.seam.mode
    ended, wanted = _outcomes(life, mode), _outcomes(well, mode)
    assert ended == wanted, f"the jobs ended {ended}, and {wanted} when nothing goes wrong"


def _outcomes(life: Life, mode: Mode | None) -> list[str]:
    """How each job ended, and with which attempt: no retry is to be used up for what is made good.

    Attempts that were given back are none. Where a message is lost for good, neither is an attempt whose flow waits for
    that message: the sweep replaces it (decision 0043). No other fault may cost even that.
    """

    def attempt(job: Job) -> int:
        spared = job.history.spared if mode is Mode.LOST else 0
        return job.attempt - job.history.given_back - spared

    return [f"{job.end.outcome}, {attempt(job)}" for job in sorted(life.jobs(), key=lambda job: job.id)]


def report(scenario: str, tally: Tally) -> str:
    """One line on what was tried."""
    handlers = ", ".join(f"{name} {count}" for name, count in sorted(tally.calls.items()))
    return (
        f"crash sweep: {scenario}: {tally.calls.total()} calls ({handlers}), {tally.points} points, "
        f"{len(tally.found)} broken, at most {tally.late} minutes later"
    )


def one(scenario: str, fault: Fault) -> None:
    """One run in an emulated account of its own. Raises AssertionError for a promise that was not kept."""
    with pytest.MonkeyPatch.context() as patch, closing(Sweep(patch)) as sweep:
        well = sweep.run(scenario)
        life = sweep.run(scenario, fault.at)
        assert life.runtime.seam.mode, "the run never came to the call"
        _check_outcomes(life, well)


def whole(scenario: str, *, modes: Collection[Mode], of: Collection[str], every: bool) -> tuple[str, int, list[str]]:
    """One scenario, in a process of its own: a line on it, its points, and what is broken."""
    with pytest.MonkeyPatch.context() as patch, closing(Sweep(patch)) as sweep:
        tally = sweep.sweep(scenario, modes or Mode, of, every=every)
    return report(scenario, tally), tally.points, [str(found) for found in tally.found]


def main() -> None:
    """Sweep, and end with status 1 if a promise was broken."""
    words = ArgumentParser(description="Try every fault at every AWS call of every handler.")
    words.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(SCENARIOS)}; default: all")
    words.add_argument("--every", action="store_true", help="also points that are the same as others")
    words.add_argument(
        "--of", action="append", default=[], metavar="HANDLER", help="only at calls of this; default: all"
    )
    words.add_argument("--mode", action="append", default=[], type=Mode, help="only this fault; default: all")
    words.add_argument("--processes", type=int, default=1, help="how many at once; default: 1")
    words.add_argument("--only", nargs=2, metavar=("CALL", "MODE"), help="one run with one fault")
    given = words.parse_args()
    if given.only:
        one(given.scenarios[0], Fault(int(given.only[0]), Mode(given.only[1])))
        return
    tried, broken = 0, 0
    chosen = given.scenarios or list(SCENARIOS)
    each = partial(whole, modes=given.mode, of=given.of, every=given.every)
    with get_context("spawn").Pool(given.processes, maxtasksperchild=1) as pool:
        for line, points_, found in pool.imap_unordered(each, chosen):
            tried, broken = tried + points_, broken + len(found)
            print("\n  ".join([line, *found]), flush=True)
    print(f"crash sweep: {tried} points tried, {broken} broken")
    sys.exit(broken > 0)


if __name__ == "__main__":
    main()
