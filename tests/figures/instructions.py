"""How many instructions it takes to import each function, as deployed: within half a percent the same in each run.

    python -m tests.figures.instructions [FUNCTION ...]

valgrind counts them, so it must be installed. Time also depends on memory and disk: `tests.figures.coldstarts` measures
it, and has the budgets.
"""

from __future__ import annotations

import re
import shutil
import sys

from tests.figures.coldstarts import EVENTS, IMPORT, MOST_OF_BOTO3, Deployed, deployed
from tests.figures.report import table

COUNTER = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")


def counted(built: Deployed, script: str) -> int:
    """The instructions of a new process that runs a script."""
    found = re.search(r"Collected : (\d+)", built.done(script, *COUNTER).stderr)
    assert found is not None, "valgrind did not say how many"
    return int(found[1])


def report(built: Deployed, functions: list[str]) -> None:
    """Print the table; what an empty process takes is not counted."""
    empty = counted(built, "")
    boto3 = counted(built, IMPORT.format(module="boto3")) - empty
    rows = [("`import boto3`", round(boto3 / 1e6), "1.000", "")]
    for name in functions:
        mine = counted(built, IMPORT.format(module=name)) - empty
        rows.append((f"`{name}`", round(mine / 1e6), f"{mine / boto3:.3f}", f"{MOST_OF_BOTO3[name]:g}"))
    table("Instructions of imports, as deployed", ("function", "millions", "of boto3", "budget in time"), rows)


def main() -> int:
    """Count and print; 1 when that is not possible here."""
    unknown = [name for name in sys.argv[1:] if name not in EVENTS]
    if unknown or not shutil.which(COUNTER[0]):
        print(f"no function is called {unknown[0]!r}" if unknown else "install valgrind, which counts", file=sys.stderr)
        return 1
    with deployed() as built:
        report(built, sys.argv[1:] or list(EVENTS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
