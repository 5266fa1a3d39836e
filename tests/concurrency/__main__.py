"""`python -m tests.concurrency --claims 10000 --processes 8`: the full size, and what it found."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.concurrency import audit, elsewhere
from tests.concurrency.run import Left, Size, run


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when every promise was kept, 1 when one was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.concurrency", description=__doc__)
    parser.add_argument("--claims", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--open-leases", type=int, default=40, help="leases that jobs want or have at once")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--drop", choices=("still", "all"), help="take conditions away, to see it fail")
    parser.add_argument("--second-opinion", action="store_true", help="single writes on dynalite too, which npm brings")
    given = parser.parse_args(arguments)
    left = run(Size(given.claims, given.processes, given.open_leases), given.seed, dropped=given.drop)
    found = audit.broken(left)
    if audit.least_share(left.lines, given.processes) < audit.SHARE:
        found.append("one process has hardly raced with the others")
    found += second_opinion() if given.second_opinion else []
    print("\n".join([*tell(left, given.processes), *found[:20]]))
    return 1 if found else 0


def second_opinion() -> list[str]:
    """What is broken on dynalite; when it cannot be had, that is said and nothing is."""
    try:
        found = elsewhere.ask()
    except elsewhere.Unavailable as reason:
        print(f"no second opinion: {reason}")
        return []
    print(f"dynalite: {elsewhere.PROCESSES * elsewhere.ROUNDS} creates and as many updates of one row raced")
    return found


def tell(left: Left, processes: int) -> list[str]:
    """What was done, in figures."""
    operations = {name.partition(":")[2]: count for name, count in left.meter.get("operations", {}).items()}
    granted = audit.claims(left.lines)
    return [
        f"{granted} claims granted by {processes} processes in {left.seconds:.0f} s",
        f"{sum(operations.values())} requests: {operations}",
        f"the least busy process made {audit.least_share(left.lines, processes):.0%} of an even share of the commits",
        f"{left.lost} commits lost a race, {left.redelivered} messages came again because their handler failed",
        f"no claim was taken from more than {audit.overtaken(left)} times in one queue (bound {audit.OVERTAKEN})",
    ]


if __name__ == "__main__":
    sys.exit(main())
