"""What bad machines cost: `python -m tests.figures.chaos`. All times are virtual, so any machine prints the same."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from simulation.arguments import seeds_of
from simulation.chaos import figures, runner
from simulation.chaos.figures import Figures, high, middle
from simulation.chaos.scenario import How
from tests.figures.report import Budgets, table

JOBS = 200
CALLS = ("create", "destroy", "list")


def main() -> int:
    """Run the seeds and print; 1 when a promise was broken or a machine existed that no row knew."""
    parser = argparse.ArgumentParser(prog="python -m tests.figures.chaos", description=__doc__)
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--seeds", type=seeds_of, default=(0, 5), metavar="FROM:TO")
    parser.add_argument("--processes", type=int, default=1, metavar="N")
    given = parser.parse_args()
    budgets = Budgets()
    tell(budgets, given.jobs, range(*given.seeds), given.processes)
    return 0 if budgets.kept else 1


def tell(budgets: Budgets, jobs: int, seeds: Sequence[int], processes: int = 1) -> None:
    """Print the tables."""
    ran = {name: list(runner.each(seeds, How(jobs, name == "harder"), processes)) for name in ("arvados", "harder")}
    found = {name: [each.figures for each in many] for name, many in ran.items()}
    table(f"{jobs} jobs on bad machines, {len(seeds)} seeds", ("a run's", "Arvados' figures", "harder"), _rows(found))
    for name, title in (("arvados", "with Arvados' figures"), ("harder", "with harder ones")):
        heads = ("noticed by", "how often", "noticed, median", "95 %", "next attempt runs, median", "95 %")
        table(f"Seconds since a machine was lost, {title}", heads, _losses(found[name]))
    broken = [each.says for many in ran.values() for each in many if each.label]
    print(budgets.verdict(not broken, f"every promise {'; '.join(broken)}".strip()))
    leaks = sum(each.unknown for many in found.values() for each in many)
    print(budgets.verdict(not leaks, "0 s in which a machine existed and no row knew it"))


def _rows(found: dict[str, list[Figures]]) -> list[tuple[object, ...]]:
    def row(name: str, of: dict[str, list[float]]) -> tuple[object, ...]:
        return (name, *(f"{middle(each):,.1f} ({min(each):,.1f} to {max(each):,.1f})" for each in of.values()))

    asked = {
        "minutes until the last job was settled": lambda run: run.seconds / 60,
        "jobs settled a minute": lambda run: run.per_minute,
        "attempts per job": lambda run: run.attempts / run.jobs,
        "machine seconds paid per second of script": lambda run: run.paid / run.worked,
        "seconds that a machine existed and no row knew it": lambda run: run.unknown,
        "seconds that a machine existed after its row said gone": lambda run: run.late,
        **{f"{call} calls per job": lambda run, call=call: run.calls.get(call, 0) / run.jobs for call in CALLS},
    }
    return [row(name, {key: [ask(run) for run in many] for key, many in found.items()}) for name, ask in asked.items()]


def _losses(found: Sequence[Figures]) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for how, losses in figures.by_how(found).items():
        noticed, followed = [loss.noticed for loss in losses], [loss.followed for loss in losses]
        spans = (middle(noticed), high(noticed), middle(followed), high(followed))
        rows.append((how, len(losses), *(round(span) for span in spans)))
    return rows


if __name__ == "__main__":
    sys.exit(main())
