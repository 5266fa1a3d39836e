"""How long small projects wait beside a greedy one: `python -m tests.figures.shares --jobs 10000`.

Everything is real but the ports and the time: submit, claims, grants, agents, releases. One user submits all its jobs
at once. Then ten others submit one every two hours each: a twelfth of what ten machines do, at ten minutes a job.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.domain.commands import Hello, SubmitJob
from penstock.domain.jobs.jobs import Result
from penstock.domain.units.units import Unit, unit_key
from penstock.domain.users.users import User
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import submit
from penstock.usecases.site import apply
from penstock.usecases.workers import agents
from tests.figures.report import Budgets, table
from tests.figures.scale import PlainStore

SLOTS, SMALL = 10, 10
ROUND = 600
"""How long each job takes, in seconds. The machines begin and end together."""

EVERY = 12
"""In how many rounds each small project submits one job."""

MOST = 2
"""The most rounds that a small project's job may wait with shares: that of who has the machines, and one more."""

TOKEN = "t" * 43
GREEDY = User(name="greedy", created=START, version=1)


@dataclass(frozen=True)
class Found:
    """How long small projects' jobs waited, in rounds, those that began; how many did not; and what greedy got."""

    waits: Sequence[int]
    left: int
    greedy: int


class Farm(Twin):
    """The twin with machines that do every job in a round."""

    def __init__(self, shares: str) -> None:
        super().__init__()
        self.store = PlainStore()
        self.on = replace(self.on, store=self.store)
        site = site_toml(targets={"default": {"limit": SLOTS}}, limits={"jobs": 1_000_000, "submits": 1_000_000})
        apply.apply(self.on, "root", f"{site}\n{shares}", "site.toml")
        self.run()

    def submit(self, user: User) -> str:
        """Submit a job of a user's."""
        job = submit.submit(self.on, user, SubmitJob("#!/bin/sh\n"), None)
        self.run()
        return job

    def begin(self) -> list[str]:
        """Have the new machines begin their jobs."""
        begun = []
        for order in list(self.drivers.hand.made.values()):
            unit = self.store.rows[unit_key(order.id)]
            assert isinstance(unit, Unit)
            if unit.session.token_hash is None and unit.cleaning.proof is None:
                agents.hello(self.on, Hello(order.id, order.key, TOKEN))
                begun.append(unit.lease.job)
        self.run()
        return begun

    def end(self, jobs: Sequence[str]) -> None:
        """Have jobs end, and their machines be replaced."""
        for job in jobs:
            caller = agents.authenticate(self.on, job, TOKEN)
            agents.report_finished(self.on, caller, Result.SUCCEEDED, "the script ended", 0)
        self.run()


def run(jobs: int, rounds: int, shares: str) -> Found:
    """So many jobs of a greedy user's, and so many rounds."""
    farm, came, waits, greedy = Farm(shares), dict[str, int](), list[int](), 0
    for _ in range(jobs):
        farm.submit(GREEDY)
    for number in range(rounds):
        running = farm.begin()
        waits += [number - came[job] for job in running if job in came]
        greedy += sum(job not in came for job in running)
        for project in range(SMALL):
            if (number + project) % EVERY == 0:
                came[farm.submit(User(name=f"small-{project}", created=START, version=1))] = number
        farm.pass_time(ROUND)
        farm.end(running)
    return Found(sorted(waits), len(came) - len(waits), greedy)


def tell(budgets: Budgets, jobs: int, rounds: int) -> None:
    """Print a table, and whether small projects wait for no longer than they may."""
    found = {"first come, first served": run(jobs, rounds, ""), "[shares]": run(jobs, rounds, "[shares]")}
    heads = ("the site has", "small jobs begun", "still waiting", "median wait", "longest wait", "of the greedy begun")
    lines = [
        (name, len(each.waits), each.left, each.waits[len(each.waits) // 2] if each.waits else "-",
         each.waits[-1] if each.waits else "-", each.greedy)
        for name, each in found.items()
    ]  # fmt: skip
    title = f"Ten small projects beside {jobs:,} jobs of one user's on ten machines, in rounds of ten minutes"
    table(title, heads, lines)
    print(budgets.verdict(is_kept(found["[shares]"]), f"with shares nobody waits for more than {MOST} rounds"))


def is_kept(found: Found) -> bool:
    """Whether all small jobs began in time, but for those that came in the last rounds."""
    return bool(found.waits) and found.waits[-1] <= MOST and found.left <= MOST


def main() -> int:
    """Measure and print; 1 over the budget."""
    parser = argparse.ArgumentParser(prog="python -m tests.figures.shares", description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000, help="jobs of the greedy user")
    parser.add_argument("--rounds", type=int, default=144, help="rounds of ten minutes")
    given, budgets = parser.parse_args(), Budgets()
    tell(budgets, given.jobs, given.rounds)
    return 0 if budgets.kept else 1


if __name__ == "__main__":
    sys.exit(main())
