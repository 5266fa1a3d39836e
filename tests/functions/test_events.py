"""A job's log over HTTP: by number, from its end, live while somebody reads it, and from its object afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.domain.logs import logs as domain_logs
from penstock.domain.logs.logs import Archive, Watch, archive_key
from penstock.kernel.rows import Change
from penstock.usecases.logs import archives
from tests.functions.agent import call
from tests.functions.service import Service, conforms, refused
from tests.functions.stage import Stage


@pytest.fixture
def stage(service: Service) -> Stage:
    return Stage(service)


def read(stage: Stage, **query: str) -> Any:
    answer = stage.service.ask("GET", f"/v1/jobs/{stage.job}/events", query=query)
    conforms(answer.json, "EventPage")
    return answer.json


def archive(stage: Stage) -> Archive:
    """Have the log archived, short as it is."""
    twin = stage.service.twin
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(domain_logs, "SHORT_BYTES", 0)
        assert call(stage, "finish", {"result": "succeeded", "exit_code": 0}).status == 200
        twin.run()
        for _ in range(26):
            twin.pass_time(3600)
            archives.advance(twin.on, stage.job)
    found = twin.store.get(archive_key(stage.job), Archive)
    assert found
    assert found.state == "archived"
    return found


def test_the_last_lines_and_those_that_follow(stage: Stage) -> None:
    every = read(stage)["items"]
    assert read(stage, last="2")["items"] == every[-2:]
    assert read(stage, last="100000")["items"] == every
    assert read(stage, last="2", after=str(len(every) - 1))["items"] == every[-1:]
    refused(stage.service.ask("GET", f"/v1/jobs/{stage.job}/events", query={"last": "-1"}), 400, "bad-request")


def test_an_archived_log_has_the_same_shape_and_pages(stage: Stage) -> None:
    before = read(stage)["items"]
    archive(stage)
    page = read(stage)
    assert page["items"][: len(before)] == before
    assert [each["seq"] for each in page["items"]] == list(range(1, page["next"] + 1))
    assert (page["state"], page["outcome"]) == ("settled", "succeeded")
    assert read(stage, limit="3", after="2")["items"] == page["items"][2:5]
    assert read(stage, last="1")["items"] == page["items"][-1:]
    assert read(stage, after=str(page["next"]))["items"] == []


def test_a_log_that_is_gone_says_since_when(stage: Stage) -> None:
    archive(stage)
    archives.delete(stage.service.twin.on, stage.job)
    answer = stage.service.ask("GET", f"/v1/jobs/{stage.job}/events")
    assert "is gone since" in refused(answer, 410, "log-gone")["detail"]


def test_who_reads_makes_the_agent_hurry_and_costs_three_writes_in_half_a_minute(stage: Stage) -> None:
    twin, written = stage.service.twin, list[Change]()
    commit = twin.store.commit
    twin.pass_time(60)
    assert call(stage, "events", {"first": 100, "events": []}).json["watched"] is False
    twin.store.commit = lambda changes: (written.extend(changes), commit(changes))[1]  # type: ignore[method-assign, func-returns-value]
    for _ in range(60):
        read(stage)
        assert call(stage, "events", {"first": 100, "events": []}).json["watched"] is True
        twin.pass_time(0.5)
    watches = [change for change in written if isinstance(getattr(change, "row", None), Watch)]
    assert len(watches) == len(written) <= 3
    twin.pass_time(32)
    assert call(stage, "events", {"first": 100, "events": []}).json["watched"] is False


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process is nine hours ahead of UTC."""
    monkeypatch.setenv("TZ", "HERE-9")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("2026-01-01T01:00:00.5+01:00", "2026-01-01T00:00:00.500Z"),
        ("2025-12-31T19:00:00-05:00", "2026-01-01T00:00:00.000Z"),
        ("2026-01-01T00:00:00", "2026-01-01T00:00:00.000Z"),
    ],
)
def test_a_time_is_shown_in_utc_whatever_the_machines_zone_is(stage: Stage, said: str, shown: str) -> None:
    line = {"time": said, "stream": "stdout", "payload": "here"}
    assert call(stage, "events", {"first": 2, "events": [line]}).status == 200
    assert [each["time"] for each in read(stage)["items"] if each["payload"] == "here"] == [shown]


@pytest.mark.parametrize("said", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "noon"])
def test_a_time_that_is_none(stage: Stage, said: str) -> None:
    line = {"time": said, "stream": "stdout", "payload": "here"}
    refused(call(stage, "events", {"first": 2, "events": [line]}), 400, "bad-request")
