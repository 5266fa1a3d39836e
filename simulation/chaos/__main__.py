"""`python -m simulation.chaos`: hundreds of jobs on bad machines; the story of the first seed that breaks a promise."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from simulation.arguments import seeds_of, words
from simulation.chaos import figures, runner
from simulation.chaos.engine import HARD
from simulation.chaos.incidents import KINDS
from simulation.chaos.runner import Ran
from simulation.chaos.scenario import How
from simulation.faults import KINDS as WEATHER

LEAVABLE = (*KINDS, *(kind for kind in WEATHER if getattr(HARD, kind)))


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when every promise was kept by every seed, 1 when one was broken."""
    given = _parser().parse_args(arguments)
    is_hard = given.figures == "harder" if given.figures else given.jobs > runner.MEANT[0]
    how = How(given.jobs, is_hard, tuple(given.without), tuple(given.blind))
    if given.seed is not None:
        return _tell(runner.once(given.seed, how, whole=given.story))
    tried = []
    for ran in runner.each(range(*given.seeds), how, given.processes):
        if _tell(ran):
            return 1
        tried.append(ran)
    never = runner.never(tried)
    if never:
        print(f"In none of these runs, though it is meant to happen: {', '.join(never)}")
    return 1 if never else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m simulation.chaos", description=__doc__)
    parser.add_argument("--jobs", type=int, default=200, metavar="N", help="how many (200)")
    parser.add_argument("--figures", choices=("arvados", "harder"), help="up to 200 jobs Arvados' own, else harder")
    parser.add_argument("--seed", type=int, help="one seed")
    parser.add_argument("--seeds", type=seeds_of, default=(0, 1), metavar="FROM:TO", help="seeds; TO is not among them")
    parser.add_argument("--without", type=_kinds, default=[], metavar="KINDS", help=f"without {', '.join(LEAVABLE)}")
    parser.add_argument("--blind", type=words, default=[], metavar="LABELS", help="promises that are not looked at")
    parser.add_argument("--story", action="store_true", help="with --seed: the whole story, also of a run that is fine")
    parser.add_argument("--processes", type=int, default=1, metavar="N")
    return parser


def _kinds(text: str) -> list[str]:
    unknown = [kind for kind in words(text) if kind not in LEAVABLE]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no {unknown[0]}; there are {', '.join(LEAVABLE)}")
    return words(text)


def _tell(ran: Ran) -> int:
    if ran.lines:
        print("\n".join(ran.lines))
    verdict = ran.says or f"every promise kept, story {ran.digest}"
    print(f"seed {ran.seed}, {ran.how.jobs} jobs, {ran.how.name} figures: {verdict}")
    print(figures.summary(ran.figures), flush=True)
    if ran.label:
        print(f"\nAgain, with the whole story: {ran.command()} --story")
    return 1 if ran.label else 0


if __name__ == "__main__":
    sys.exit(main())
