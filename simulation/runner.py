"""Seeds, one after another: some of them twice, and shrunk when they fail."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing import Pool

from simulation.engine import Engine
from simulation.faults import KINDS

FEWER = (1, 2, 3, 5, 8, 13, 20)

REPEATED = 10
"""Of so many seeds one is simulated twice."""

COLLECTED = (50_000, 20, 100)
"""How many new objects Python waits for before it looks for garbage: by default that is a third of a run's time."""


@dataclass(frozen=True)
class Run:
    """What to simulate: a seed, the first so many of its jobs, and without which kinds of trouble."""

    seed: int
    jobs: int | None = None
    without: tuple[str, ...] = ()
    blind: tuple[str, ...] = ()

    def command(self) -> str:
        """What to type to see this run again."""
        extra = f" --jobs {self.jobs}" if self.jobs else ""
        extra += f" --without {','.join(self.without)}" if self.without else ""
        extra += f" --blind {','.join(self.blind)}" if self.blind else ""
        return f"python -m simulation --seed {self.seed}{extra}"


@dataclass(frozen=True)
class Told:
    """How a run went. `label` is None when every promise was kept."""

    run: Run
    digest: str
    label: str | None
    says: str
    lines: Sequence[str]
    jobs: int
    commits: int
    ended: str


def once(run: Run, *, watched: bool = True) -> Told:
    """Simulate; `watched`, with a look at every promise after every commit."""
    engine = Engine(run.seed, jobs=run.jobs, without=run.without, blind=run.blind, watched=watched)
    broken = engine.simulate()
    jobs = engine.jobs()
    return Told(
        run=run,
        digest=engine.story.digest(),
        label=broken.label if broken else None,
        says=str(broken or ""),
        lines=engine.story.told(),
        jobs=len(jobs),
        commits=engine.store.commits,
        ended=",".join(sorted(str(job.end.outcome) for job in jobs)),
    )


def twice(run: Run) -> Told:
    """Simulate twice: the same seed must tell the same story, or no failure could be repeated."""
    first = once(run)
    second = once(run, watched=first.label is not None)  # who looks changes nothing, and is half of the work
    if first.digest == second.digest:
        return replace(first, lines=first.lines if first.label else ())
    apart = next((pair for pair in zip(first.lines, second.lines, strict=False) if pair[0] != pair[1]), ("", ""))
    says = f"[SAME] seed {run.seed} told two stories; first apart at:\n  {apart[0]}\n  {apart[1]}"
    return replace(second, label="SAME", says=says)


def sampled(run: Run) -> Told:
    """Simulate once, and every REPEATED seed twice: the others cannot differ by chance unless these do."""
    if run.seed % REPEATED == 0:
        return twice(run)
    told = once(run)
    return replace(told, lines=told.lines if told.label else ())


def shrink(told: Told) -> Told:
    """The same promise broken by fewer jobs, and with fewer kinds of trouble, if it is."""
    for jobs in FEWER:
        if jobs >= told.jobs:
            break
        smaller = once(replace(told.run, jobs=jobs))
        if smaller.label == told.label:
            told = smaller
            break
    for kind in KINDS:
        calmer = once(replace(told.run, without=(*told.run.without, kind)))
        if calmer.label == told.label:
            told = calmer
    return told


def each(seeds: Sequence[int], like: Run, processes: int) -> Iterator[Told]:
    """All seeds, in the order in which they are done."""
    gc.set_threshold(*COLLECTED)
    runs = [replace(like, seed=seed) for seed in seeds]
    if processes < 2:
        yield from map(sampled, runs)
        return
    with Pool(processes) as pool:
        yield from pool.imap_unordered(sampled, runs, chunksize=1)


def find(seeds: Collection[int], *, blind: tuple[str, ...] = ()) -> Told | None:
    """The first of some seeds that breaks a promise."""
    found = (once(Run(seed, blind=blind)) for seed in seeds)
    return next((told for told in found if told.label), None)
