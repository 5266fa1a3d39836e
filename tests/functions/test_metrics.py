"""Metrics as a function writes them: blocks of the embedded metric format in its log, after each invocation.

Sources of the bounds: CloudWatch user guide, "Specification: Embedded metric format": at most 100 metrics and 30
dimensions in a block, at most 100 values of one metric.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from aws_lambda_powertools.metrics.provider.cold_start import reset_cold_start_flag

from penstock import bootstrap
from penstock.aws.cloudwatch import EmfMetrics
from penstock.domain import metrics
from penstock.domain.metrics import Level
from penstock.sources import ROOT as SOURCES
from penstock.testing.twin import Twin
from penstock.usecases import sweep
from penstock.usecases.site import apply
from tests.functions.service import Context, Service

MANY = 150
SITE = """
[factories.hand]
driver = "hand"
[wells.locks]
driver = "lock"
""" + "".join(
    f'[targets.t{number}]\nfactory = "hand"\nlimit = 1\n[resources.r{number}]\nwell = "locks"\nlimit = 1\n'
    for number in range(MANY)
)


def blocks(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    lines = [line for line in capsys.readouterr().out.splitlines() if '"_aws"' in line]
    return [json.loads(line) for line in lines]


def values(found: list[dict[str, Any]]) -> dict[tuple[str, frozenset[tuple[str, str]]], list[float]]:
    """All values by metric and dimensions, as CloudWatch reads a block."""
    told: dict[tuple[str, frozenset[tuple[str, str]]], list[float]] = {}
    for block in found:
        (directive,) = block["_aws"]["CloudWatchMetrics"]
        assert directive["Namespace"] == "Penstock"
        (names,) = directive["Dimensions"]
        by = frozenset((name, block[name]) for name in names)
        for metric in directive["Metrics"]:
            told.setdefault((metric["Name"], by), []).extend(block[metric["Name"]])
    return told


def fits(block: dict[str, Any]) -> bool:
    (directive,) = block["_aws"]["CloudWatchMetrics"]
    longest = max(len(block[metric["Name"]]) for metric in directive["Metrics"])
    small = len(json.dumps(block).encode()) < 256 * 1024
    return len(directive["Metrics"]) <= 100 and len(directive["Dimensions"][0]) <= 30 and longest <= 100 and small


@pytest.fixture
def emf() -> EmfMetrics:
    return EmfMetrics(Level.POOLS, "Penstock")


def by(**dimensions: str) -> frozenset[tuple[str, str]]:
    return frozenset({"service": "Penstock", **dimensions}.items())


def test_what_one_invocation_tells_is_put_together(emf: EmfMetrics, capsys: pytest.CaptureFixture[str]) -> None:
    for outcome in ("succeeded", "succeeded", "failed"):
        emf.add(metrics.JOBS_SETTLED, target="linux", outcome=outcome)
    for seconds in (3, 9, 5):
        emf.add(metrics.OLDEST_WAIT, seconds, pool="target/linux")
        emf.add(metrics.GRANTED_AFTER, seconds, pool="target/linux")
    emf.flush_metrics()
    told = values(blocks(capsys))
    assert told["JobsSettled", by(outcome="succeeded")] == [2]
    assert told["JobsSettled", by(outcome="failed", target="linux")] == [1]
    assert told["OldestWait", by()] == told["OldestWait", by(pool="target/linux")] == [9]
    assert told["GrantedAfter", by()] == [3, 9, 5]
    assert len(told) == 8


def test_what_was_told_is_told_once(emf: EmfMetrics, capsys: pytest.CaptureFixture[str]) -> None:
    emf.add(metrics.SWEEPS)
    emf.flush_metrics()
    emf.flush_metrics()
    emf.add(metrics.SWEEPS)
    emf.flush_metrics()
    assert [values([block]) for block in blocks(capsys)] == [{("Sweeps", by()): [1]}] * 2


@pytest.mark.parametrize(("level", "sets"), [(Level.OFF, 0), (Level.SITE, 1), (Level.POOLS, 2)])
def test_the_level_says_how_much_is_told(level: Level, sets: int, capsys: pytest.CaptureFixture[str]) -> None:
    emf = EmfMetrics(level, "Penstock")
    emf.add(metrics.STRAYS, 2, maker="factory/aws")
    emf.flush_metrics()
    assert len(blocks(capsys)) == sets
    assert emf.wants(metrics.STRAYS) == (sets > 0)
    assert emf.wants(metrics.POOL_HELD) == (sets > 1)


@pytest.mark.parametrize("count", [99, 100, 101, 250])
def test_many_values_are_split(emf: EmfMetrics, count: int, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(count):
        emf.add(metrics.SWEEP_TIME, number)
        emf.add(metrics.GONE_AFTER, number, maker="factory/aws")
    emf.flush_metrics()
    found = blocks(capsys)
    assert all(fits(block) for block in found)
    assert values(found)["GoneAfter", by(maker="factory/aws")] == list(range(count))
    assert values(found)["SweepTime", by()] == [count - 1]


def test_a_sweep_of_very_many_pools_keeps_to_the_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    twin, emf = Twin(), EmfMetrics(Level.POOLS, "Penstock")
    twin.on = replace(twin.on, metrics=emf)
    apply.apply(twin.on, "root", SITE, "site.toml")
    twin.run()
    sweep.sweep(twin.on)
    twin.run()  # most pools are left to messages, and each call tells of its own
    emf.flush_metrics()
    found = blocks(capsys)
    assert len(found) > 2 * MANY
    assert all(fits(block) for block in found)
    told = values(found)
    assert {len(each) for each in told.values()} == {1}
    assert [told["PoolFree", by(pool=f"target/t{number}")] for number in range(MANY)] == [[1]] * MANY


@pytest.fixture
def own(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmfMetrics]:
    """The functions with the metrics that they have in the cloud."""
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "Penstock")
    bootstrap.metrics.cache_clear()
    twin.on = replace(twin.on, metrics=bootstrap.metrics())
    reset_cold_start_flag()
    yield bootstrap.metrics()
    bootstrap.metrics.cache_clear()


def test_a_function_tells_its_metrics_when_it_has_ended(
    service: Service, own: EmfMetrics, capsys: pytest.CaptureFixture[str]
) -> None:
    service.submit()
    told = values(blocks(capsys))
    assert told["JobsSubmitted", by()] == [1]
    assert ("JobsSubmitted", by(target="linux")) not in told
    assert told["ColdStart", by(function_name="here")] == [1]
    importlib.import_module("sweep").handler({}, Context())
    told = values(blocks(capsys))
    assert told["Sweeps", by()] == [1]
    assert not [name for name, _ in told if name == "ColdStart"]


def test_a_function_that_fails_tells_what_it_had_counted(
    service: Service, own: EmfMetrics, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "sweep", lambda on, within: 1 / 0)
    own.add(metrics.EVICTIONS, pool="target/linux")
    with pytest.raises(ZeroDivisionError):
        importlib.import_module("sweep").handler({}, Context())
    told = values(blocks(capsys))
    assert told["Evictions", by()] == [1]
    assert ("Sweeps", by()) not in told


def test_nothing_is_written_where_nothing_is_wanted(
    service: Service, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_METRICS", "off")
    bootstrap.metrics.cache_clear()
    reset_cold_start_flag()
    service.twin.on = replace(service.twin.on, metrics=bootstrap.metrics())
    service.submit()
    bootstrap.metrics.cache_clear()
    assert blocks(capsys) == []


def test_every_function_tells_its_metrics() -> None:
    handlers = sorted((SOURCES / "functions").glob("*.py"))
    assert len(handlers) >= 7
    for path in handlers:
        assert "@bootstrap.metered\ndef handler(" in path.read_text(), f"{path.name} would count for nobody"
