"""How soon a script begins on a new worker and on one that is idle: `python -m tests.figures.warm [--jobs N]`.

Real jobs on the local cloud, in turn on a target that keeps no worker and on one that keeps one. The seconds are this
machine's: only their ratio counts, and here a new worker is a process, which starts at once. A new machine takes half a
minute and more. Fails if an idle worker takes longer than a new one.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from penstock.local import cloud
from penstock.local.bench import Bench
from penstock.local.bench import Budgets as Plain
from penstock.local.state import StateFolder
from penstock.testing.site import site_toml
from tests.figures.report import Budgets, table

SITE = site_toml(
    factories={"here": "process"},
    targets={
        "cold": {"factory": "here", "limit": 1},
        "warm": {"factory": "here", "limit": 1, "warm": {"max": 1, "reuse": 1000}},
        "default": {"redirect": "cold"},
    },
)
SCRIPT = "#!/bin/bash\necho hello\n"
PAUSES = (0.5, 6.0)
"""Between how many and how many seconds a worker is idle before its next job: bells are looked at in steps."""


class Trial(Bench):
    """Jobs on one of the two targets."""

    def run(self, target: str) -> float:
        """Seconds from submit to the first line of one job, after which its worker is gone, or idle."""
        job = str(self.call("POST", "/v1/jobs", {"script": SCRIPT, "target": target})["id"])
        while self.call("GET", f"/v1/jobs/{job}")["state"] != "settled" or self._is_busy(target):
            time.sleep(0.5)
        return self.first_line(self.call("GET", f"/v1/jobs/{job}"))

    def _is_busy(self, target: str) -> bool:
        found: list[dict[str, Any]] = self.call("GET", "/v1/workers")["items"]
        left = [each["state"] for each in found if each["target"] == target]
        return left != (["idle"] if target == "warm" else [])


def main() -> int:
    """Measure and print; 1 when an idle worker is slower than a new one."""
    parser = argparse.ArgumentParser(prog="python -m tests.figures.warm", description=__doc__)
    parser.add_argument("--jobs", type=int, default=10, help="jobs on each target")
    count = parser.parse_args().jobs
    with TemporaryDirectory(prefix="penstock-warm-") as folder:
        place, site = StateFolder(Path(folder)), Path(folder) / "site.toml"
        site.write_text(SITE)
        try:
            running = cloud.up(report=_say, tied=True, place=place, config=site)
            found = measure(Trial(running, place.key(), Plain()), count)
        finally:
            cloud.down(_say, place)
    return 0 if report(found) else 1


def _say(line: str) -> None:
    print(f"- {line}", file=sys.stderr, flush=True)


def measure(trial: Trial, count: int) -> dict[str, list[float]]:
    """The seconds of some jobs on each target. A first one on each warms the functions."""
    found: dict[str, list[float]] = {"cold": [], "warm": []}
    for number in range(count + 1):
        for target, seconds in found.items():
            time.sleep(random.uniform(*PAUSES))
            took = trial.run(target)
            if number:
                seconds.append(took)
    return found


def report(found: dict[str, list[float]]) -> bool:
    """Print the medians; whether an idle worker begins no later than a new one."""
    medians = {name: statistics.median(seconds) for name, seconds in found.items()}
    rows = [(name, f"{medians[name]:.2f}", f"{min(each):.2f}", f"{max(each):.2f}") for name, each in found.items()]
    table("Seconds from submit to the first line", ("worker", "median", "least", "most"), rows)
    is_kept = medians["warm"] <= medians["cold"]
    print(Budgets().verdict(is_kept, "an idle worker begins no later than a new one"))
    return is_kept


if __name__ == "__main__":
    sys.exit(main())
