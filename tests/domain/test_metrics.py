"""The table of metrics, and the causes that are counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain import metrics
from penstock.domain.jobs.jobs import Outcome, Report, Result, State
from penstock.domain.jobs.outcome import NO_HELLO, SILENT, Boot, Ending, LostBy
from penstock.domain.metrics import Count, Fold, Level, Metric
from penstock.domain.site import parse
from penstock.domain.site.site import Site
from penstock.domain.units.units import CleanProof, Creation, Drain, UnitKind, UnitState
from penstock.kernel.errors import (
    DriverError,
    Misconfigured,
    NoCapacity,
    QuotaReached,
    RateLimited,
    Unknown,
    Unsatisfiable,
)
from penstock.testing.site import site_toml
from tests.domain.helpers import NOW, job, lease, unit

SITE = site_toml(
    factories={"aws": "ec2"},
    targets={"linux": {"factory": "aws", "limit": 2}, "default": "linux"},
    wells={"locks": "lock"},
    resources={"bench": {"well": "locks", "names": ["bench-1"]}},
    quotas={"vcpus": 8},
)


@pytest.fixture
def site() -> Site:
    found = parse.parse(SITE, "site.toml")
    assert isinstance(found, Site)
    return found


def test_names_are_told_once_and_are_words() -> None:
    names = [metric.name for metric in metrics.METRICS]
    assert len(names) == len(set(names)) > 30
    assert all(name.isalpha() and name[0].isupper() for name in names)
    assert all(metric.meaning for metric in metrics.METRICS)


def test_the_finer_set_has_a_name_of_the_site_and_the_other_has_none(site: Site) -> None:
    named = {metrics.POOL, metrics.MAKER, metrics.TARGET, metrics.CANARY}
    for metric in metrics.METRICS:
        assert not named & {*(metric.site or ())}, metric.name
        assert metric.pools is None or len(named & {*metric.pools}) == 1, metric.name


def test_the_values_are_what_the_site_has(site: Site) -> None:
    assert metrics.targets(site) == ["linux"]
    assert metrics.makers(site) == ["factory/aws", "well/locks"]
    assert list(metrics.POOL_HELD.combinations(site, Level.POOLS)) == [
        {"pool": "target/linux"},
        {"pool": "resource/bench"},
        {"pool": "quota/vcpus"},
    ]
    assert list(metrics.POOL_HELD.combinations(site, Level.SITE)) == []
    assert list(metrics.STRAYS.combinations(site, Level.POOLS)) == [
        {},
        {"maker": "factory/aws"},
        {"maker": "well/locks"},
    ]
    assert list(metrics.SWEEPS.combinations(site, Level.OFF)) == []


def test_what_cannot_be_is_left_out(site: Site) -> None:
    calls = [by for by in metrics.DRIVER_CALLS.combinations(site, Level.POOLS) if "maker" in by]
    told = {(by["maker"], by["operation"], by["result"]) for by in calls}
    assert ("factory/aws", "list", "ok") in told
    assert ("factory/aws", "list", "yield") not in told
    assert ("factory/aws", "clean", "ok") not in told
    assert ("well/locks", "clean", "yield") in told
    vanished = {by["state"] for by in metrics.UNITS_VANISHED.combinations(site, Level.SITE)}
    assert vanished == {"creating", "ready", "idle"}


def test_units_are_told_by_every_state_there_is(site: Site) -> None:
    states = {by["state"] for by in metrics.UNITS.combinations(site, Level.SITE)}
    assert states == {*UnitState, "held"} - {"gone"}


def test_the_number_of_metrics_grows_with_the_site_only_at_level_pools(site: Site) -> None:
    empty = metrics.how_many(Site(), Level.SITE)
    assert metrics.how_many(site, Level.OFF) == 0
    assert metrics.how_many(site, Level.SITE) == empty
    assert metrics.how_many(site, Level.POOLS) > empty == metrics.how_many(Site(), Level.POOLS)


def test_a_metric_is_itself_alone() -> None:
    one, other = (Metric("Same", metrics.COUNT, Fold.SUM, "it") for _ in range(2))
    assert one != other


@pytest.mark.parametrize(
    "error", [RateLimited(), QuotaReached(), NoCapacity(), Unsatisfiable(), Misconfigured(), Unknown(code="X")]
)
def test_an_error_counts_under_its_own_name(error: DriverError) -> None:
    assert metrics.result_of(error) == type(error).__name__


def test_an_error_of_no_known_kind_counts_as_unknown() -> None:
    class Odd(NoCapacity):
        """A third party's own."""

    assert metrics.result_of(Odd()) == "NoCapacity"
    assert metrics.result_of(ValueError()) == metrics.result_of(DriverError()) == "Unknown"


LOST = Report(Result.LOST, "silent", NOW)
RECYCLED = Drain("root", "broken", NOW, at_once=True)
MACHINE = unit(state=UnitState.READY)
BENCH = unit(id="r-1", is_a=UnitKind.RESOURCE, state=UnitState.READY)
RUNNING = job(state=State.RUNNING)


def ending(before: Any, *units: Any, error: str | None = None, is_overdue: bool = False) -> Ending:
    return Ending(before, before, units, error, is_overdue)


@pytest.mark.parametrize(
    ("found", "by"),
    [
        (ending(RUNNING, MACHINE), None),
        (ending(RUNNING, MACHINE, error="QueueDeadline"), None),
        (
            ending(
                replace(RUNNING, run=replace(RUNNING.run, report=Report(Result.SUCCEEDED, "", NOW))),
                MACHINE,
                error="Lost",
            ),
            None,
        ),
        (
            ending(
                replace(
                    RUNNING,
                    cancellation=replace(RUNNING.cancellation, cancelled_by="ada"),
                    run=replace(RUNNING.run, report=LOST),
                ),
                MACHINE,
            ),
            None,
        ),
        (
            ending(
                replace(RUNNING, run=replace(RUNNING.run, report=LOST)),
                replace(MACHINE, step=replace(MACHINE.step, reason=SILENT)),
            ),
            LostBy.SILENT,
        ),
        (
            ending(
                replace(RUNNING, run=replace(RUNNING.run, report=LOST)),
                replace(MACHINE, step=replace(MACHINE.step, reason=SILENT)),
                is_overdue=True,
            ),
            LostBy.SILENT,
        ),
        (ending(replace(RUNNING, run=replace(RUNNING.run, report=LOST)), MACHINE), LostBy.VANISHED),
        (
            ending(replace(RUNNING, run=replace(RUNNING.run, report=LOST)), BENCH, replace(MACHINE, drain=RECYCLED)),
            LostBy.RECYCLED,
        ),
        (ending(job(), unit(reason=NO_HELLO), error="Lost"), LostBy.NO_HELLO),
        (ending(job(), replace(BENCH, step=replace(BENCH.step, reason=NO_HELLO)), error="Lost"), LostBy.VANISHED),
        (ending(job(), error="Lost", is_overdue=True), LostBy.FLOW),
        (ending(RUNNING, MACHINE, error="Lost", is_overdue=True), LostBy.OVERDUE),
        (ending(job(), unit(), error="SQS.SdkClientException"), LostBy.FLOW),
        (ending(job(cancelled_by="ada"), error="States.TaskFailed"), None),
    ],
)
def test_why_an_attempt_was_lost(found: Ending, by: LostBy | None) -> None:
    assert found.lost_by == by


@pytest.mark.parametrize(
    ("found", "boot"),
    [
        (ending(job()), None),
        (ending(job(), BENCH), None),
        (ending(RUNNING, MACHINE), None),
        (ending(job(), unit(leases=2, reason=NO_HELLO), error="Lost"), None),
        (ending(job(), unit(reason=NO_HELLO), error="Lost"), Boot.FAILED),
        (ending(job(), unit(), error="Unsatisfiable"), Boot.FAILED),
        (ending(job(), BENCH, unit(), error="Lost"), Boot.DISAPPEARED),
        (ending(job(), unit(drain=RECYCLED), error="Lost"), Boot.ABORTED),
        (ending(job(cancelled_by="ada"), unit(), error="Cancelled"), Boot.ABORTED),
    ],
)
def test_what_became_of_a_worker_that_was_to_boot(found: Ending, boot: Boot | None) -> None:
    assert found.boot == boot


def counted(counts: Iterable[Count]) -> dict[Metric, tuple[dict[str, str], float]]:
    """What is added, by metric: each only once."""
    found = list(counts)
    by_metric = {each.metric: (dict(each.by), each.value) for each in found}
    assert len(by_metric) == len(found)
    return by_metric


def test_a_grant_counts_how_long_its_claim_waited_and_whether_its_units_were_warm() -> None:
    waiting = [replace(lease(), since=NOW - timedelta(seconds=7))]
    cold = replace(unit(), since=NOW)
    assert counted(metrics.claim_granted([cold], waiting, [])) == {
        metrics.GRANTED_AFTER: ({"pool": cold.lease.pool}, 7.0)
    }
    kept = replace(cold, cleaning=replace(cold.cleaning, is_kept=True))
    for warm, result in (([kept.id], "hit"), ([], "miss")):
        found = counted(metrics.claim_granted([kept], waiting, warm))
        assert found[metrics.WARM_HAND_OVERS] == ({"pool": kept.lease.pool, "result": result}, 1)


def test_only_the_first_start_of_a_job_counts_how_long_that_took() -> None:
    found = job()
    since = found.times.ready or found.times.submitted
    target = {"target": found.request.target_resolved}
    now = since + timedelta(seconds=9)
    assert counted(metrics.job_started(found, now)) == {metrics.STARTED_AFTER: (target, 9.0)}
    assert counted(metrics.job_started(replace(found, attempt=2), now)) == {}


def test_a_boot_counts_once_and_not_for_a_worker_that_is_reused() -> None:
    made = replace(unit(), creation=Creation(born=NOW - timedelta(seconds=8), made=NOW - timedelta(seconds=5)))
    target = {"target": made.type}
    assert counted(metrics.worker_booted(made, NOW)) == {
        metrics.BOOTED_AFTER: (target, 5.0),
        metrics.BOOT_OUTCOMES: ({**target, "outcome": "success"}, 1),
        metrics.BOOT_FAILURES: (target, 0),
    }
    assert counted(metrics.worker_booted(replace(made, lease=replace(made.lease, leases=2)), NOW)) == {}


def test_a_boot_that_failed_is_a_failure_and_one_that_nobody_waited_for_is_none() -> None:
    assert counted(metrics.boot_outcome("linux", Boot.FAILED)) == {
        metrics.BOOT_OUTCOMES: ({"target": "linux", "outcome": "failed"}, 1),
        metrics.BOOT_FAILURES: ({"target": "linux"}, 100),
    }
    assert list(counted(metrics.boot_outcome("linux", Boot.ABORTED))) == [metrics.BOOT_OUTCOMES]


def test_an_attempt_that_ended_counts_its_jobs_outcome_why_it_was_lost_and_its_workers_boot() -> None:
    settled = replace(ending(job()), after=replace(job(), end=replace(job().end, outcome=Outcome.FAILED)))
    target = {"target": job().request.target_resolved}
    assert counted(metrics.attempt_ended(settled)) == {metrics.JOBS_SETTLED: ({**target, "outcome": "failed"}, 1)}
    lost = counted(metrics.attempt_ended(ending(job(), unit(reason=NO_HELLO), error="Lost")))
    assert lost[metrics.ATTEMPTS_LOST] == ({**target, "cause": "no_hello"}, 1)
    assert lost[metrics.BOOT_FAILURES] == (target, 100)


def test_a_unit_is_gone_once() -> None:
    gone = replace(unit(), since=NOW - timedelta(seconds=4))
    proof = CleanProof(by="driver", time=NOW, checked="it is not listed")
    for released in (True, False):
        assert counted(metrics.unit_gone(gone, proof, released))[metrics.GONE_AFTER][1] == 4.0
    assert counted(metrics.unit_gone(gone, proof, None)) == {}
    assert counted(metrics.unit_gone(replace(gone, since=NOW + timedelta(1)), proof, True))[metrics.GONE_AFTER][1] == 0
