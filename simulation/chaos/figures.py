"""The figures of one run, in virtual time, and their summary over many runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from simulation.chaos.checks import Loss
from simulation.chaos.engine import Chaos


@dataclass(frozen=True)
class Figures:
    """One run's. `seconds` and `calls` of the cloud are those until the last job was settled that did not wait for its
    queue deadline.

    `paid` are the seconds that machines existed, `worked` those of scripts whose end was heard. `unknown` are the
    seconds that a machine existed of which no row knew, `late` those after its row said that it was gone.
    """

    jobs: int
    seconds: float
    attempts: int
    machines: int
    most: int
    paid: float
    worked: float
    unknown: float
    late: float
    losses: tuple[Loss, ...]
    calls: dict[str, int]
    met: dict[str, int]
    counts: dict[str, int]

    @property
    def per_minute(self) -> float:
        """Jobs settled a minute, but for those that nothing could serve."""
        return (self.jobs - self.counts.get("settled at the queue deadline", 0)) / max(self.seconds / 60, 1.0)


def of(run: Chaos) -> Figures:
    """The figures of a run that is over."""
    watch, cloud = run.watch, run.cloud
    return Figures(
        jobs=run.how.jobs, seconds=(watch.last - watch.first).total_seconds(), attempts=watch.attempts,
        machines=watch.made_workers, most=cloud.most, paid=watch.paid, worked=watch.worked, unknown=watch.unknown,
        late=watch.late, losses=tuple(watch.losses), calls=watch.calls, met=dict(+cloud.met + run.hosts.met),
        counts=dict(+watch.counts),
    )  # fmt: skip


def by_how(runs: Iterable[Figures]) -> dict[str, list[Loss]]:
    """All losses of some runs, by how they were noticed; those that were noticed most often first."""
    found = [loss for run in runs for loss in run.losses]
    names = [name for name, _ in Counter(loss.how for loss in found).most_common()]
    return {name: [loss for loss in found if loss.how == name] for name in names}


def middle(values: Sequence[float]) -> float:
    """The median."""
    return median(values)


def high(values: Sequence[float]) -> float:
    """The 95th percentile."""
    return sorted(values)[min(len(values) - 1, len(values) * 95 // 100)]


def summary(found: Figures) -> str:
    """One run, as text for people."""
    settled = {key.removeprefix("settled: "): count for key, count in found.counts.items() if key.startswith("settled")}
    lost = {key.removeprefix("lost: "): count for key, count in found.counts.items() if key.startswith("lost: ")}
    other = {key: count for key, count in found.counts.items() if not key.startswith(("settled", "lost: "))}
    ratio = found.paid / found.worked if found.worked else 0.0
    lines = {
        "settled": _told(settled),
        "attempts": f"{found.attempts}; {sum(lost.values())} were lost: {_told(lost)}",
        "machines": f"{found.machines} made, {found.most} at most at once; "
        f"{found.paid:,.0f} s paid for {found.worked:,.0f} s of scripts ({ratio:.1f})",
        "leaks": f"{found.unknown:.0f} s with no row, {found.late:.0f} s after the row said gone",
        "calls": _told(found.calls),
        "the cloud": _told(found.met),
        "besides": _told(other),
        "took": f"{found.seconds / 60:,.0f} min of virtual time, {found.per_minute:.1f} jobs a minute",
    }
    return "\n".join(f"  {name:<10} {said}" for name, said in lines.items() if said)


def _told(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()) if count)
