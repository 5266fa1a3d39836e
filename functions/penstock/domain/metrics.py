"""Every metric, one line each, and what each event adds to them. docs/operators/metrics.md is made from the table:
`python -m infra.metricspage`.

A metric has a name, a unit, and a rule that combines the values of one invocation. It has one or two sets of
dimensions: one for the whole site, and a finer one by pool, target, factory or well. The values of a dimension come
from the code or the site, and are never ids: CloudWatch charges for every combination.

Counters are emitted where something happens, after the commit that made it so; a writer that lost the race counts
nothing. The sweep emits gauges each minute, and those of units when it compares: every three. It also emits zeros for
every combination that the site has, so that "nothing" differs from "no data"; but not for durations, because nothing
lasted zero seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import product

from penstock.domain.cooldowns import Cause, maker_of
from penstock.domain.jobs.jobs import Job, Outcome
from penstock.domain.jobs.outcome import Boot, Ending, LostBy
from penstock.domain.pools.pools import Lease
from penstock.domain.site.site import Site
from penstock.domain.units.units import CleanProof, Unit, UnitKind, UnitState
from penstock.kernel.errors import (
    DriverError,
    Misconfigured,
    NoCapacity,
    QuotaReached,
    RateLimited,
    Unknown,
    Unsatisfiable,
)
from penstock.kernel.frozen import dataclass


class Level(StrEnum):
    """How much is told."""

    OFF = "off"  # nothing
    SITE = "site"  # of the site as a whole
    POOLS = "pools"  # and by pool, target, factory and well


class Measure(StrEnum):
    """Units, as CloudWatch names them. Source: the CloudWatch API reference, MetricDatum."""

    COUNT = "Count"
    SECONDS = "Seconds"
    PERCENT = "Percent"


class Fold(StrEnum):
    """How values are put together that one invocation tells of the same metric with the same dimensions."""

    SUM = "sum"
    MOST = "most"
    EACH = "each"  # all are kept, for percentiles and means


@dataclass(frozen=True, eq=False)
class Dimension:
    """Something that a metric is told by, and the values that it has at a site."""

    name: str
    values: Callable[[Site], Collection[str]]


Dimensions = tuple[Dimension, ...]


@dataclass(frozen=True, eq=False)
class Metric:
    """One line of the table. `site` is None for what is told by pool alone, `pools` for what has nothing finer.

    `never` says which combinations there cannot be.
    """

    name: str
    measure: Measure
    fold: Fold
    meaning: str
    site: Dimensions | None = ()
    pools: Dimensions | None = None
    never: Callable[[Mapping[str, str]], bool] = lambda by: False

    def sets(self, level: Level) -> list[Dimensions]:
        """The sets of dimensions that are told at a level."""
        told = {Level.OFF: (), Level.SITE: (self.site,), Level.POOLS: (self.site, self.pools)}[level]
        return [each for each in told if each is not None]

    def combinations(self, site: Site, level: Level) -> Iterator[dict[str, str]]:
        """Every combination of values that can be told, known from the site."""
        for dimensions in self.sets(level):
            for values in product(*(each.values(site) for each in dimensions)):
                by = {each.name: value for each, value in zip(dimensions, values, strict=True)}
                if not self.never(by):
                    yield by


def among(words: Iterable[str]) -> Callable[[Site], Collection[str]]:
    """The values of a dimension that are the same at every site."""
    told = tuple(words)
    return lambda site: told


NAMESPACE = "Penstock"

COUNT, SECONDS, PERCENT = Measure.COUNT, Measure.SECONDS, Measure.PERCENT


SUM, MOST, EACH = Fold.SUM, Fold.MOST, Fold.EACH

HELD = "held"
"""What a unit counts as that an operator holds, whatever its state."""

ERRORS: tuple[type[DriverError], ...] = (
    RateLimited, QuotaReached, NoCapacity, Unsatisfiable, Misconfigured, Unknown,
)  # fmt: skip


OK, YIELD = "ok", "yield"


CREATE, DESTROY, CLEAN, LIST, POWER = "create", "destroy", "clean", "list", "power"


def result_of(error: Exception) -> str:
    """The name under which a driver's error is counted. What is none of the closed set counts as Unknown."""
    return next((kind.__name__ for kind in ERRORS if isinstance(error, kind)), Unknown.__name__)


def makers(site: Site) -> list[str]:
    """The factories and wells of a site, as `factory/aws`."""
    found = [maker_of(UnitKind.WORKER, name) for name in site.factories]
    return found + [maker_of(UnitKind.RESOURCE, name) for name in site.wells]


def targets(site: Site) -> list[str]:
    """The targets of a site that have workers."""
    return [target.name for target in site.targets.values() if target.has_workers]


TARGET = Dimension("target", targets)


CANARY = Dimension("pool", lambda site: list(site.canaries()))


POOL = Dimension("pool", lambda site: list(site.pools()))


MAKER = Dimension("maker", makers)


KIND = Dimension("kind", among(UnitKind))


STATE = Dimension("state", among([*(state for state in UnitState if state is not UnitState.GONE), HELD]))


OUTCOME = Dimension("outcome", among(Outcome))


BOOT = Dimension("outcome", among(Boot))


LOST = Dimension("cause", among(LostBy))


COOLING = Dimension("cause", among(Cause))


WARM = Dimension("result", among(("hit", "miss")))


OPERATION = Dimension("operation", among((CREATE, DESTROY, CLEAN, LIST, POWER)))


RESULT = Dimension("result", among((OK, YIELD, *(kind.__name__ for kind in ERRORS))))


# fmt: off
JOBS_SUBMITTED = Metric("JobsSubmitted", COUNT, SUM, "jobs that were accepted", (), (TARGET,))


IDENTITY_TOKENS = Metric("IdentityTokens", COUNT, SUM, "identity tokens issued to jobs", (), (TARGET,))


JOBS_SETTLED = Metric("JobsSettled", COUNT, SUM, "jobs that settled", (OUTCOME,), (TARGET, OUTCOME))


ATTEMPTS_LOST = Metric("AttemptsLost", COUNT, SUM, "lost attempts, also the last of a job", (LOST,), (TARGET, LOST))


STARTED_AFTER = Metric(
    "StartedAfter", SECONDS, EACH, "from the submit to the start of the script; first attempts only", (), (TARGET,))


GRANTED_AFTER = Metric("GrantedAfter", SECONDS, EACH, "from joining a queue to being granted", (), (POOL,))


JOBS_WAITING = Metric("JobsWaiting", COUNT, SUM, "jobs in a queue")


OLDEST_WAIT = Metric("OldestWait", SECONDS, MOST, "how long the oldest claim in a queue has waited", (), (POOL,))


OLDEST_WAIT_PERCENT = Metric(
    "OldestWaitPercent", PERCENT, MOST, "the same, as a share of the queue deadline (`limits.queue`)")


POOL_LIMIT = Metric("PoolLimit", COUNT, SUM, "a pool's limit", None, (POOL,))


POOL_HELD = Metric("PoolHeld", COUNT, SUM, "slots held; of a quota, the amount used", None, (POOL,))


POOL_FREE = Metric("PoolFree", COUNT, SUM, "free slots, warm ones too; of a quota, the amount left", None, (POOL,))


POOL_WAITING = Metric("PoolWaiting", COUNT, SUM, "claims in the pool's queue", None, (POOL,))


WARM_HAND_OVERS = Metric(
    "WarmHandOvers", COUNT, SUM, "grants in pools that keep warm units. hit: a warm unit; miss: a new one", (WARM,),
    (POOL, WARM))


EVICTIONS = Metric("Evictions", COUNT, SUM, "warm units destroyed to make room for a waiting job", (), (POOL,))


BOOT_OUTCOMES = Metric("BootOutcomes", COUNT, SUM, "results of ordered workers", (BOOT,), (TARGET, BOOT))


BOOT_FAILURES = Metric(
    "BootFailures", PERCENT, EACH,
    "100 for each worker that failed or disappeared before its hello, 0 for each other: the mean is the share",
    (), (TARGET,))


BOOTED_AFTER = Metric("BootedAfter", SECONDS, EACH, "from the launch of a worker to its hello", (), (TARGET,))


GONE_AFTER = Metric(
    "GoneAfter", SECONDS, EACH, "from deciding to destroy a unit to the proof that it is gone", (), (MAKER,))


UNITS = Metric(
    "Units", COUNT, SUM, "units by state; a held unit counts only as held", (KIND, STATE),
    (MAKER, STATE))


UNITS_VANISHED = Metric(
    "UnitsVanished", COUNT, SUM, "units that disappeared from the provider's list, by their last state", (STATE,),
    (MAKER, STATE), lambda by: by["state"] in (HELD, UnitState.CLEANING, UnitState.DIRTY, UnitState.QUARANTINED))


OLDEST_HOLD = Metric("OldestHold", SECONDS, MOST, "how long the longest hold has lasted", (), (MAKER,))


OLDEST_DIRTY = Metric("OldestDirty", SECONDS, MOST, "how long the oldest unit has waited to be destroyed", (), (MAKER,))


DRIVER_CALLS = Metric(
    "DriverCalls", COUNT, SUM, "calls of drivers, by result. yield: not done yet", (RESULT,),
    (MAKER, OPERATION, RESULT),
    lambda by: (by.get("operation"), by["result"]) == (LIST, YIELD)
    or (by.get("operation") == CLEAN and by["maker"].startswith("factory/")))


COOL_DOWNS = Metric("CoolDowns", COUNT, SUM, "[cool-downs](capacity.md) in force", (COOLING,), (MAKER, COOLING))


CANARIES_FAILING = Metric(
    "CanariesFailing", COUNT, SUM, "targets and resource types whose last canary failed, or could not be sent or run",
    (), (CANARY,))


UNLISTED = Metric("Unlisted", COUNT, SUM, "factories and wells whose last listing failed", (), (MAKER,))


STRAYS = Metric("Strays", COUNT, SUM, "units that a provider lists and that have no row", (), (MAKER,))


STRAYS_DESTROYED = Metric("StraysDestroyed", COUNT, SUM, "strays destroyed", (), (MAKER,))


LEFTOVERS = Metric("Leftovers", COUNT, SUM, "things outside that no unit accounts for, by the last account diff")


DIFF_AGE = Metric("DiffAge", SECONDS, MOST, "how long ago the last account diff began that listed everything")


MISSING = Metric("Missing", COUNT, SUM, "units that have a row, were listed before, and are not now", (), (MAKER,))


SWEEPS = Metric("Sweeps", COUNT, SUM, "sweeps that finished")


SWEEP_TIME = Metric("SweepTime", SECONDS, MOST, "how long a sweep took")


OVERDUE_ROWS = Metric("OverdueRows", COUNT, SUM, "overdue rows that the sweep nudged")


SWEEP_LATE = Metric("SweepLate", SECONDS, MOST, "how long a row had been overdue when the sweep first came to it")


FAILED_NUDGES = Metric("FailedNudges", COUNT, SUM, "rows, pools, flows and units that a sweep could not move on")


TIDY_LATE = Metric("TidyLate", SECONDS, MOST, "the same as SweepLate, of what is to be deleted or archived")


STRAY_OBJECTS = Metric("StrayObjects", COUNT, SUM, "objects in the store that had no row and are deleted")


BYTES_LOST = Metric("BytesLost", COUNT, SUM, "artifacts whose bytes are missing from the store")


STORE_UNLISTED = Metric("StoreUnlisted", COUNT, SUM, "failed comparisons of the store with the rows")


# fmt: on

METRICS: tuple[Metric, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))

OF_UNITS = (UNITS, OLDEST_HOLD, OLDEST_DIRTY)
"""Gauges that are told when the units were read, and not each minute."""


def how_many(site: Site, level: Level) -> int:
    """How many metrics a site has, as CloudWatch counts them: one for every combination."""
    return sum(len(list(metric.combinations(site, level))) for metric in METRICS)


@dataclass(frozen=True)
class Count:
    """A value that is added to a metric, and its dimensions."""

    metric: Metric
    by: Mapping[str, str]
    value: float = 1


def elapsed(since: datetime, until: datetime) -> float:
    """Seconds between two times; at least 0, since two clocks may have read them."""
    return max(0.0, (until - since).total_seconds())


def claim_granted(given: Sequence[Unit], waiting: Sequence[Lease], warm: Collection[str]) -> Iterator[Count]:
    """A claim was granted: how long it waited, and which of its units were warm."""
    waited = elapsed(waiting[0].since, given[0].since)
    yield Count(GRANTED_AFTER, {"pool": given[0].lease.pool}, waited)
    for unit in given:
        if unit.cleaning.is_kept:
            yield Count(WARM_HAND_OVERS, {"pool": unit.lease.pool, "result": "hit" if unit.id in warm else "miss"})


def job_started(job: Job, now: datetime) -> Iterator[Count]:
    """A worker said hello, and its job's script starts."""
    if job.attempt == 1:
        waited = elapsed(job.times.ready or job.times.submitted, job.times.started or now)
        yield Count(STARTED_AFTER, {"target": job.request.shown_target}, waited)


def worker_booted(before: Unit, now: datetime) -> Iterator[Count]:
    """A worker's agent said hello first; the unit is as it was before. A reused worker booted long ago.

    A worker that waited for its first lease is counted when it came up, so its idle time does not count.
    """
    if before.lease.leases > 1 or before.session.past_hash:
        return
    since = before.creation.made or before.creation.born or now
    yield Count(BOOTED_AFTER, {"target": before.type}, elapsed(since, now))
    yield from boot_outcome(before.type, Boot.SUCCESS)


def attempt_ended(ending: Ending) -> Iterator[Count]:
    """An attempt ended."""
    target = ending.before.request.shown_target
    if ending.after.end.outcome:
        yield Count(JOBS_SETTLED, {"target": target, "outcome": ending.after.end.outcome})
    if ending.lost_by:
        yield Count(ATTEMPTS_LOST, {"target": target, "cause": ending.lost_by})
    if ending.boot:
        yield from boot_outcome(target, ending.boot)


def boot_outcome(target: str, outcome: Boot) -> Iterator[Count]:
    """What became of a worker that was ordered."""
    yield Count(BOOT_OUTCOMES, {"target": target, "outcome": outcome})
    if outcome is not Boot.ABORTED:
        yield Count(BOOT_FAILURES, {"target": target}, 0 if outcome is Boot.SUCCESS else 100)


def unit_gone(unit: Unit, proof: CleanProof, released: bool | None) -> Iterator[Count]:
    """A unit was destroyed; `released` is None if another process recorded that before."""
    if released is not None:
        yield Count(GONE_AFTER, {"maker": maker_of(unit.is_a, unit.maker)}, elapsed(unit.since, proof.time))
