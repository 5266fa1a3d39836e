"""`python -m simulation`: simulate seeds, and tell the story of the first that breaks a promise."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence

from simulation import runner
from simulation.arguments import seeds_of, words
from simulation.faults import KINDS
from simulation.runner import Run, Told

LAST_LINES = 60


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when every promise was kept by every seed, 1 when one was broken."""
    given = _parser().parse_args(arguments)
    like = Run(0, given.jobs, tuple(given.without), tuple(given.blind))
    if given.seed is not None:
        return _tell(runner.twice(Run(given.seed, like.jobs, like.without, like.blind)), whole=given.story)
    return _many(range(*given.seeds), like, given.processes)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="one seed, with its story")
    parser.add_argument(
        "--seeds", type=seeds_of, default=(0, 100), metavar="FROM:TO", help="seeds; TO is not among them"
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="only the first N jobs of a seed")
    parser.add_argument("--without", type=_kinds, default=[], metavar="KINDS", help=f"leave out: {', '.join(KINDS)}")
    parser.add_argument("--blind", type=words, default=[], metavar="LABELS", help="promises that are not looked at")
    parser.add_argument("--story", action="store_true", help="with --seed: the whole story, also of a run that is fine")
    parser.add_argument("--processes", type=int, default=1, metavar="N")
    return parser


def _kinds(text: str) -> list[str]:
    unknown = [kind for kind in words(text) if kind not in KINDS]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no {unknown[0]}; there are {', '.join(KINDS)}")
    return words(text)


def _tell(told: Told, *, whole: bool) -> int:
    if whole:
        print("\n".join(told.lines or runner.once(told.run).lines))
    elif told.label:
        print("\n".join(told.lines[-LAST_LINES:]))
    if told.label:
        print(f"\n{told.says}\nAgain, with the whole story: {told.run.command()} --story")
        return 1
    print(f"seed {told.run.seed}: {told.jobs} jobs, {told.commits} commits, every promise kept, story {told.digest}")
    return 0


def _many(seeds: Sequence[int], like: Run, processes: int) -> int:
    begun = time.monotonic()
    jobs = commits = done = 0
    outcomes: Counter[str] = Counter()
    for told in runner.each(seeds, like, processes):
        done, jobs, commits = done + 1, jobs + told.jobs, commits + told.commits
        outcomes.update(told.ended.split(","))
        if told.label:
            print(f"\nseed {told.run.seed} breaks a promise: {told.says}\nshrinking it ...\n", flush=True)
            return _tell(runner.shrink(told) if told.label != "SAME" else told, whole=False)
        _progress(done, len(seeds), jobs, commits, time.monotonic() - begun)
    print(f"\nevery promise kept; jobs ended: {dict(sorted(outcomes.items()))}")
    return 0


def _progress(done: int, total: int, jobs: int, commits: int, seconds: float) -> None:
    line = f"{done} of {total} seeds, {jobs} jobs, {commits} commits, {seconds / done:.2f} s a seed"
    if sys.stderr.isatty():
        print(f"\r{line}", end="", file=sys.stderr, flush=True)
    elif done % 100 == 0 or done == total:
        print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
