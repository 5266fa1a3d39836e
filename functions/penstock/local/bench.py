"""What `make bench` prints: what jobs cost and how soon they begin, counted on the local cloud. Over budget, it fails.

    python -m penstock.local.bench [--jobs N] [--minutes M]

Counts and prices are exact for what ran; seconds are this machine's, and only their ratios travel. The prices are
those of a job alone: a first one has warmed the functions, the sweep rests, and nobody follows the log.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import boto3

from penstock.local import cloud, prices
from penstock.local.state import Running, StateFolder

SCRIPT = '#!/bin/bash\necho "hello"\necho "kept" > "$PENSTOCK_WORK/kept.txt"\n'
WAITING = 100
QUIET_SECONDS = 3
"""How long to wait before polling a job: polls are not part of its price."""

TRANSITIONS = 0
"""How many a job takes that finds all free, and whose resources are only slots: it has no flow."""

WRITE_UNITS = (40, 80)
"""Most that a job may write, without resources and with two, to the nearest unit: what one job in several writes, such
as how long a slot was held, adds fractions by chance.
"""

DOLLARS = (0.00007, 0.00012)
"""Most that a job may take, without resources and with two."""


class Budgets:
    """Says which figures are over their budget, and remembers that one was."""

    def __init__(self) -> None:
        self.kept = True

    def verdict(self, value: float, most: float) -> str:
        """The budget in words."""
        if value <= most:
            return f"budget {_number(most)}"
        self.kept = False
        return f"OVER the budget of {_number(most)}"


def _number(value: float) -> str:
    return f"{value:.7f}".rstrip("0").rstrip(".")


def main() -> int:
    """Measure and print; 1 when a figure is over its budget."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--jobs", type=int, default=10, help="jobs per measurement")
    parser.add_argument("--minutes", type=float, default=10, help="how long a hundred jobs wait")
    options = parser.parse_args()
    budgets = Budgets()
    with TemporaryDirectory(prefix="penstock-bench-") as folder:
        place = StateFolder(Path(folder))
        try:
            bench = Bench(cloud.up(report=_say, tied=True, place=place), place.key(), budgets)
            bench.jobs(1, [])
            bench.report_jobs("A job with no resource", options.jobs, [])
            bench.report_jobs("A job with two resources", options.jobs, ["bench", "licence"])
            bench.report_waiting(options.minutes)
        finally:
            cloud.down(_say, place)
    return 0 if budgets.kept else 1


def _say(line: str) -> None:
    print(f"- {line}", file=sys.stderr, flush=True)


class Bench:
    """Measurements on one local cloud."""

    def __init__(self, running: Running, key: str, budgets: Budgets) -> None:
        self.running, self.key, self.budgets = running, key, budgets

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the service."""
        return cloud.call(self.running, method, path, body)

    def submit(self, resources: list[str]) -> str:
        """Submit a job that leaves one output."""
        ask = {"script": SCRIPT, "resources": resources, "output_rules": ["=/work/kept.txt"]}
        return str(self.call("POST", "/v1/jobs", ask)["id"])

    def jobs(self, count: int, resources: list[str]) -> list[dict[str, Any]]:
        """Run jobs one after the other, each until everything it had is put back."""
        done = []
        for _ in range(count):
            job = self.submit(resources)
            time.sleep(QUIET_SECONDS)
            while self.call("GET", f"/v1/jobs/{job}")["state"] != "settled" or self.call("GET", "/v1/workers")["items"]:
                time.sleep(1)
            done.append(self.call("GET", f"/v1/jobs/{job}"))
        return done

    def report_jobs(self, title: str, count: int, resources: list[str]) -> None:
        """Print what one of several jobs costs, and how soon its script began."""
        _say(f"{title}: {count} of them")
        with self.no_sweep():
            self.call("POST", "/_penstock/meter/reset")
            done = self.jobs(count, resources)
            read = self.call("GET", "/_penstock/meter")
        assert {job["outcome"] for job in done} == {"succeeded"}
        print(f"\n### {title} (mean of {count})\n\n| service | per job | | list price |\n|---|---:|---|---:|")
        for line in (lines := prices.bill(read)):
            verdict = self.verdict_of(line, count, WRITE_UNITS[bool(resources)])
            print(
                f"| {line.service} | {line.amount / count:.1f} | {line.unit}{verdict} | ${line.dollars / count:.7f} |"
            )
        total = sum(line.dollars for line in lines) / count
        timed = sum(line.dollars for line in lines if line.unit == "MB-seconds") / count
        budget = f" ({self.budgets.verdict(total - timed, DOLLARS[bool(resources)])})"
        print(f"| **all** | | | **${total:.7f}** |")
        print(f"| without the seconds of functions, which are this machine's | | | ${total - timed:.7f}{budget} |")
        transitions = sum(read.get("transitions", {}).values()) / count
        verdict = self.budgets.verdict(transitions, TRANSITIONS)
        print(f"\nTransitions per job: {transitions:.1f} ({verdict}).")
        seconds = [self.first_line(job) for job in done]
        print(f"Seconds from submit to the script's first line: median {statistics.median(seconds):.2f}.")

    def verdict_of(self, line: prices.Line, count: int, most: int) -> str:
        """The budget of what jobs write; nothing else on the bill has one of its own."""
        is_written = line.unit == "write units"
        return f" ({self.budgets.verdict(round(line.amount / count), most)})" if is_written else ""

    def first_line(self, job: Mapping[str, Any]) -> float:
        """Seconds from submit to the first line that the script wrote."""
        events = self.call("GET", f"/v1/jobs/{job['id']}/events?limit=1000")["items"]
        first = next(event["time"] for event in events if event["stream"] == "stdout")
        submitted = datetime.fromisoformat(job["times"]["submitted"])
        return (datetime.fromisoformat(first) - submitted).total_seconds()

    def report_waiting(self, minutes: float) -> None:
        """Print the operations of a hundred jobs that wait for a paused pool, without those of the sweep."""
        self.call("POST", "/v1/pools/resource/bench/pause")
        _say(f"{WAITING} jobs wait for {minutes:g} minutes")
        waiting = [self.submit(["bench"]) for _ in range(WAITING)]
        while self.call("GET", "/v1/pools/resource/bench")["waiting"] < WAITING:
            time.sleep(1)
        time.sleep(QUIET_SECONDS)
        self.call("POST", "/_penstock/meter/reset")
        time.sleep(60 * minutes)
        by = self.call("GET", "/_penstock/meter").get("by", {})
        caused = {name: count for name, count in by.items() if "-sweep " not in name}
        verdict = self.budgets.verdict(sum(caused.values()), 0)
        print(f"\n### {WAITING} waiting jobs, {minutes:g} minutes\n")
        print(f"Billed operations beyond the sweep's own: {sum(caused.values()):g} ({verdict}). {caused or ''}")
        for job in waiting:
            self.call("POST", f"/v1/jobs/{job}/cancel")

    @contextmanager
    def no_sweep(self) -> Iterator[None]:
        """Disable the sweep, whose operations no job causes."""
        events = boto3.client(
            "events",
            endpoint_url=self.running.url,
            region_name=cloud.REGION,
            aws_access_key_id=self.key,
            aws_secret_access_key="test",
        )
        names = [rule["Name"] for rule in events.list_rules()["Rules"] if "ScheduleExpression" in rule]
        for name in names:
            events.disable_rule(Name=name)
        try:
            yield
        finally:
            for name in names:
                events.enable_rule(Name=name)


if __name__ == "__main__":
    sys.exit(main())
