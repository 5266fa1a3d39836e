"""Count, print as Markdown, and fail over a budget."""

from __future__ import annotations

import argparse
import logging
import sys
from dataclasses import astuple

from penstock.domain.pools.pools import SlotState
from tests.concurrency.run import SPAWN
from tests.figures import chaos, decisions, grants, packing, scale, servers, shares, sweeping
from tests.figures.counting import Counts
from tests.figures.report import COMMITS, READS, ROWS_READ, ROWS_WRITTEN, Budgets, table

TAKEN = ("reads", "rows read", "commits", "rows written")
MOST_PER_GRANT = {1: 14, 8: 60, 32: 250}
"""Requests, by how many serve at once. Lost races depend on the machine's timing, so there is room above what is seen.
"""


def main() -> int:
    """0 when every budget was kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.figures", description=__doc__)
    parser.add_argument("--jobs", type=int, nargs="*", default=[1000, 10_000], help="jobs through the whole use cases")
    parser.add_argument("--most", type=int, default=10_000, help="the longest queue")
    parser.add_argument("--slots", type=int, default=100_000, help="the biggest pool")
    parser.add_argument("--overdue", type=int, default=100_000, help="rows that nobody can move on")
    parser.add_argument("--seeds", type=int, default=5, help="how many runs of the chaos test")
    given = parser.parse_args()
    logging.disable()  # hundreds of thousands of steps fail on purpose, each with a traceback
    budgets = Budgets()
    queues(budgets, given.most)
    wakes(budgets)
    sizes(budgets, given.slots)
    at_once(budgets)
    rates()
    sweeping.tell(budgets, given.overdue, given.overdue // 10, minutes=3)
    shares.tell(budgets, given.most, rounds=144)
    packing.tell(budgets, packing.JOBS)
    jobs(budgets, given.jobs)
    chaos.tell(budgets, chaos.JOBS, range(given.seeds))
    return 0 if budgets.kept else 1


def queues(budgets: Budgets, most: int) -> None:
    """By how many wait."""
    lengths = [length for length in (10, 100, 1000, 10_000) if length <= most]
    found = {length: grants.by_queue(length) for length in lengths}
    table("A release and the grant that follows, by how many wait in the pool", ("waiting", *TAKEN), _rows(found))
    kept = all(map(budgets.keeps, found.values()))
    print(budgets.verdict(kept, f"{READS} reads, {ROWS_READ} rows, {COMMITS} commits, {ROWS_WRITTEN} rows written"))
    claims = {length: grants.claim_by_queue(length) for length in lengths}
    table("One more claim, by how many wait in the pool already", ("waiting", *TAKEN), _rows(claims))


def _rows(found: dict[int, Counts]) -> list[tuple[object, ...]]:
    return [(number, *astuple(counts)[:4]) for number, counts in found.items()]


def wakes(budgets: Budgets) -> None:
    """Whom a release wakes."""
    asked = {
        "a slot, nobody waits": ("licence", 0, "licence"),
        "a slot, 1 waits": ("licence", 1, "licence"),
        "a slot, 1,000 wait": ("licence", 1000, "licence"),
        "8 vCPUs, 1,000 wait for 3 each": ("farm", 1000, "rig"),
        "3 vCPUs, 1,000 wait for 8 each": ("rig", 1000, "farm"),
    }
    found = {name: grants.wakes(*what) for name, what in asked.items()}
    rows = [(name, counts.grants, counts.wakes) for name, counts in found.items()]
    table("Whom a release wakes", ("given back", "grants", "messages and answers"), rows)
    kept = all(counts.wakes == min(counts.grants, 1) for counts in found.values())
    print(budgets.verdict(kept, "one for a grant, or for several at once"))


def sizes(budgets: Budgets, most: int) -> None:
    """By how many slots the pool has."""
    numbers = [number for number in (10, 1000, 100_000) if number <= most]
    served = {number: grants.by_size(number) for number in numbers}
    freed = {number: grants.by_size(number, SlotState.HELD) for number in numbers}
    table("Serving one claim, by how many free slots the pool has", ("slots", *TAKEN), _rows(served))
    table("A release and its grant, by how many slots of the pool are held", ("slots", *TAKEN), _rows(freed))
    kept = len(set(served.values())) == len(set(freed.values())) == 1
    print(budgets.verdict(kept, "the same for every size"))
    lowered = {number: grants.lowered(number) for number in (10, 1000, 10_000) if number <= most}
    table("A release into a pool whose limit was lowered below what is held", ("held", *TAKEN), _rows(lowered))


def at_once(budgets: Budgets) -> None:
    """By how many serve the pool at once."""
    found = [servers.measure(number) for number in MOST_PER_GRANT]
    heads = ("servers", "reads per grant", "writes per grant", "of these lost races")
    table("Requests per grant, by how many serve one pool at once", heads, [astuple(each) for each in found])
    kept = all(each.reads + each.writes <= MOST_PER_GRANT[each.servers] for each in found)
    print(budgets.verdict(kept, f"{', '.join(map(str, MOST_PER_GRANT.values()))} requests"))


def rates() -> None:
    """Decisions of the domain."""
    rows = [(name, round(rate, -2)) for name, rate in decisions.rates().items()]
    table("Decisions per second of one core of this machine", ("decision", "per second"), rows)


def jobs(budgets: Budgets, counts: list[int]) -> None:
    """Whole jobs."""
    with SPAWN.Pool(1, maxtasksperchild=1) as fresh:  # a process each: the most memory is of its whole life
        done = fresh.map(scale.run, counts, chunksize=1)
    table("Jobs through the whole use cases, in memory", scale.HEADS, [scale.tell(each) for each in done])
    print(budgets.verdict(all(each.outcomes == {"succeeded": each.jobs} for each in done), "every job succeeds"))
    left = {each.rows_left for each in done}
    print(budgets.verdict(len(left) <= 1, "as many rows are left of many jobs as of few"))


if __name__ == "__main__":
    sys.exit(main())
