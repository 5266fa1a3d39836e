"""The dashboard: jobs, units, drivers, and the health of the functions."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.measures import Monitored
from penstock.domain import metrics
from penstock.domain.metrics import Level
from penstock.domain.units.units import UnitKind

WIDTH = 24
FIVE = Duration.minutes(5)

Row = list[cloudwatch.IWidget]


class Dashboard(Construct):
    """The dashboard, named like the deployment. Without Penstock's own metrics, their graphs are left out."""

    def __init__(self, scope: Construct, name: str, *, on: Monitored) -> None:
        super().__init__(scope, name)
        rows = _jobs(on) + _units(on) + _drivers(on) if on.level is not Level.OFF else []
        if on.level is Level.POOLS:
            rows += _by_name(on)
        rows += _machinery(on)
        cloudwatch.Dashboard(self, "Page", dashboard_name=Stack.of(self).stack_name, widgets=rows)


def _graph(
    title: str, left: Sequence[cloudwatch.IMetric], right: Sequence[cloudwatch.IMetric] = (), *, share: int = 3
) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=list(left), right=list(right), width=WIDTH // share)


def _jobs(on: Monitored) -> list[Row]:
    lost = on.each(metrics.ATTEMPTS_LOST, "Sum", 5)
    settled = on.each(metrics.JOBS_SETTLED, "Sum", 5)
    started = [on.own(metrics.STARTED_AFTER, each, 5) for each in ("p50", "p95")]
    granted = [on.own(metrics.GRANTED_AFTER, each, 5) for each in ("p50", "p95")]
    return [
        [
            _graph(
                "Jobs, and their identity tokens",
                [on.own(metrics.JOBS_SUBMITTED, "Sum", 5), *settled],
                [on.own(metrics.IDENTITY_TOKENS, "Sum", 5)],
            ),
            _graph("Waiting", [on.own(metrics.JOBS_WAITING, "Maximum")], [on.own(metrics.OLDEST_WAIT, "Maximum")]),
            _graph("Seconds until granted and started", [*granted, *started]),
        ],
        [
            _graph("Attempts lost", lost),
            _graph("Oldest wait, % of the queue deadline", [on.own(metrics.OLDEST_WAIT_PERCENT, "Maximum")]),
            _graph("Warm units", on.each(metrics.WARM_HAND_OVERS, "Sum", 5), [on.own(metrics.EVICTIONS, "Sum", 5)]),
        ],
    ]


def _units(on: Monitored) -> list[Row]:
    states = {kind: on.each(metrics.UNITS, "Maximum", 5, kind=kind) for kind in UnitKind}
    took = [on.own(metrics.BOOTED_AFTER, each, 15) for each in ("p50", "p95")]
    gone = [on.own(metrics.GONE_AFTER, each, 15) for each in ("p50", "p95")]
    oldest = [on.own(each, "Maximum", 5) for each in (metrics.OLDEST_HOLD, metrics.OLDEST_DIRTY)]
    return [
        [
            _graph("Workers by state", states[UnitKind.WORKER]),
            _graph("Resources by state", states[UnitKind.RESOURCE]),
            _graph("Longest held and dirty, seconds", oldest, on.each(metrics.UNITS_VANISHED, "Sum", 5)),
        ],
        [
            _graph("Boots", on.each(metrics.BOOT_OUTCOMES, "Sum", 15)),
            _graph(
                "Boots that failed, %, and canaries",
                [on.own(metrics.BOOT_FAILURES, "Average", 15)],
                [on.own(metrics.CANARIES_FAILING, "Maximum", 5)],
            ),
            _graph("Seconds until hello, until gone", took, gone),
        ],
    ]


def _drivers(on: Monitored) -> list[Row]:
    compared = (metrics.UNLISTED, metrics.STRAYS, metrics.MISSING)
    return [
        [
            _graph("Calls of drivers", on.each(metrics.DRIVER_CALLS, "Sum", 5)),
            _graph("Cool-downs in force", on.each(metrics.COOL_DOWNS, "Maximum")),
            _graph(
                "Compared with what exists",
                [on.own(each, "Maximum") for each in compared],
                [on.own(metrics.STRAYS_DESTROYED, "Sum", 5)],
            ),
        ],
    ]


def _by_name(on: Monitored) -> list[Row]:
    pools = (metrics.POOL_LIMIT, metrics.POOL_HELD, metrics.POOL_FREE, metrics.POOL_WAITING)
    makers = (metrics.DRIVER_CALLS, metrics.UNITS, metrics.COOL_DOWNS, metrics.GONE_AFTER)
    targets = (metrics.JOBS_SETTLED, metrics.BOOT_OUTCOMES, metrics.STARTED_AFTER, metrics.BOOTED_AFTER)
    wanted = [
        [(each, "Maximum") for each in pools],
        [(metrics.DRIVER_CALLS, "Sum"), *((each, "Maximum") for each in makers[1:])],
        [*((each, "Sum") for each in targets[:2]), *((each, "p95") for each in targets[2:])],
    ]
    return [
        [_graph(f"{metric.name}, {how}", [on.by_name(metric, how)], share=4) for metric, how in row] for row in wanted
    ]


def _machinery(on: Monitored) -> list[Row]:
    functions, queues = on.functions.values(), on.queues.values()
    flows = on.machine
    rows: list[Row] = [
        [
            _graph("Functions: errors", [each.metric_errors(period=FIVE, statistic="Sum") for each in functions]),
            _graph("Functions: throttles", [each.metric_throttles(period=FIVE, statistic="Sum") for each in functions]),
            _graph("Functions: p95", [each.metric_duration(period=FIVE, statistic="p95") for each in functions]),
        ],
        [
            _graph(
                "Queues: age of the oldest message",
                [each.metric_approximate_age_of_oldest_message(period=FIVE) for each in queues],
            ),
            _graph(
                "Dead letters",
                [each.metric_approximate_number_of_messages_visible(period=FIVE) for each in on.dead.values()],
            ),
            _graph("API", [on.api.metric_server_error(period=FIVE), on.api.metric_client_error(period=FIVE)]),
        ],
        [
            _graph("Table: throttled", [on.of_table(f"{each}ThrottleEvents") for each in ("Read", "Write")]),
            _graph(
                "Flows",
                [flows.metric_failed(period=FIVE), flows.metric_timed_out(period=FIVE), flows.metric_throttled()],
            ),
        ],
    ]
    return rows if on.level is Level.OFF else [*rows, _sweep(on)]


def _sweep(on: Monitored) -> Row:
    nudges = [on.own(each, "Sum") for each in (metrics.OVERDUE_ROWS, metrics.FAILED_NUDGES)]
    late = [on.own(each, "Maximum") for each in (metrics.SWEEP_LATE, metrics.TIDY_LATE)]
    lost = [on.own(each, "Sum", 5) for each in (metrics.BYTES_LOST, metrics.STRAY_OBJECTS, metrics.STORE_UNLISTED)]
    swept = [on.own(metrics.SWEEPS, "Sum", 5), on.own(metrics.SWEEP_TIME, "Maximum")]
    return [
        _graph("The sweep", nudges, swept),
        _graph("How late it is, and the store beside the rows", late, lost),
        _graph("The account diff", [on.own(metrics.LEFTOVERS, "Maximum")], [on.own(metrics.DIFF_AGE, "Maximum")]),
    ]
