"""Chaos runs, one seed after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import Pool

from simulation.chaos import figures
from simulation.chaos.engine import Chaos
from simulation.chaos.figures import Figures
from simulation.chaos.scenario import How

LAST_LINES = 60

MEANT = (200, 1000)
"""From how many jobs on all that is meant to go wrong does, with Arvados' figures and with harder ones."""


@dataclass(frozen=True)
class Ran:
    """How a run went. `label` is None when every promise was kept."""

    seed: int
    how: How
    digest: str
    label: str | None
    says: str
    lines: Sequence[str]
    figures: Figures
    missing: Sequence[str]

    def command(self) -> str:
        """What to type to see this run again."""
        how = self.how
        extra = f" --without {','.join(how.without)}" if how.without else ""
        extra += f" --blind {','.join(how.blind)}" if how.blind else ""
        return f"python -m simulation.chaos --jobs {how.jobs} --figures {how.name} --seed {self.seed}{extra}"


def once(seed: int, how: How, *, whole: bool = False) -> Ran:
    """Run one seed. Its story is the last lines, or the whole."""
    run = Chaos(seed, how)
    broken = run.simulate()
    label, says = (broken.label, str(broken)) if broken else (None, "")
    lines = run.story.lines if whole else run.story.told(LAST_LINES) if label else []
    return Ran(seed, how, run.story.digest(), label, says, lines, figures.of(run), run.missing())


def each(seeds: Sequence[int], how: How, processes: int) -> Iterator[Ran]:
    """All seeds, in order."""
    if processes < 2:
        yield from (once(seed, how) for seed in seeds)
        return
    with Pool(processes, maxtasksperchild=1) as pool:
        yield from pool.imap(_once, [(seed, how) for seed in seeds])


def _once(given: tuple[int, How]) -> Ran:
    return once(*given)


def never(ran: Sequence[Ran]) -> list[str]:
    """What should have happened in one of these runs, and did in none. Nothing is meant of runs that are small, or
    that leave troubles out."""
    meant = [run.missing for run in ran if run.how.jobs >= MEANT[run.how.is_hard] and not run.how.without]
    return [what for what in meant[0] if all(what in missing for missing in meant)] if meant else []


def find(seeds: Sequence[int], how: How) -> Ran | None:
    """The first of some seeds that breaks a promise."""
    return next((ran for ran in each(seeds, how, 1) if ran.label), None)
