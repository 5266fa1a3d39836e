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
from tests.functions.reading import counted
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


def seqs(page: Any) -> list[int]:
    return [each["seq"] for each in page["items"]]


@pytest.mark.parametrize("is_archived", [False, True])
def test_a_viewer_reads_any_lines_and_knows_how_many_there_are(stage: Stage, is_archived: bool) -> None:
    stage.print_lines(1000)
    if is_archived:
        archive(stage)
    total = read(stage)["total"]
    assert total == read(stage, last="1")["next"] > 1000
    assert seqs(read(stage, after="700", before="711")) == list(range(701, 711))
    assert seqs(read(stage, before="4")) == [1, 2, 3]
    assert seqs(read(stage, after="700", before="900", limit="5")) == list(range(701, 706))
    for bounds in ({"after": "5", "before": "6"}, {"after": "9", "before": "3"}, {"before": "1"}):
        page = read(stage, **bounds)
        assert (page["items"], page["next"], page["total"]) == ([], int(bounds.get("after", "0")), total)
    far = read(stage, after=str(total + 5))
    assert (far["items"], far["next"], far["total"]) == ([], total + 5, total)


@pytest.mark.parametrize("is_archived", [False, True])
def test_a_full_segment_is_kept_by_the_browser(stage: Stage, is_archived: bool) -> None:
    path = f"/v1/jobs/{stage.job}/events"
    refused(stage.service.ask("GET", f"{path}/0"), 404, "segment-not-full")
    stage.print_lines(1000)
    first = stage.service.ask("GET", f"{path}/0")
    if is_archived:
        archive(stage)
    answer = stage.service.ask("GET", f"{path}/0")
    conforms(answer.json, "SegmentView")
    assert answer.headers["cache-control"] == "private, max-age=86400, immutable"
    assert (answer.body, answer.headers["etag"]) == (first.body, first.headers["etag"])
    assert (seqs(answer.json), answer.json["next"]) == (list(range(1, 1001)), 1000)
    assert answer.json["items"][700:] == read(stage, after="700", limit="300")["items"]
    again = stage.service.ask("GET", f"{path}/0", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status, again.headers["cache-control"]) == (304, answer.headers["cache-control"])
    refused(stage.service.ask("GET", f"{path}/1"), 404, "segment-not-full")


def test_segments_follow_each_other_without_a_gap(stage: Stage) -> None:
    stage.print_lines(2000)
    ask = stage.service.ask
    pages = [ask("GET", f"/v1/jobs/{stage.job}/events/{number}").json for number in range(2)]
    assert [seq for page in pages for seq in seqs(page)] == list(range(1, 2001))
    tags = {ask("GET", f"/v1/jobs/{stage.job}/events/{number}").headers["etag"] for number in range(2)}
    assert len(tags) == 2


@pytest.mark.parametrize("segment", ["-1", "01", "x", "1.0", "9" * 9, "٣"])
def test_there_is_no_such_segment(stage: Stage, segment: str) -> None:
    refused(stage.service.ask("GET", f"/v1/jobs/{stage.job}/events/{segment}"), 404, "segment-not-found")


def test_a_segment_is_its_readers_alone(stage: Stage) -> None:
    """SEC-2: another gets nothing, also with its tag; and of a log that is deleted nobody gets any."""
    stage.print_lines(1000)
    path = f"/v1/jobs/{stage.job}/events/0"
    tag = {"if-none-match": stage.service.ask("GET", path).headers["etag"]}
    refused(stage.service.ask("GET", path, as_="bob", headers=tag), 404, "job-not-found")
    archive(stage)
    key = {"key": stage.service.ask("GET", f"/v1/jobs/{stage.job}/events").json["key"]}
    archives.delete(stage.service.twin.on, stage.job)
    refused(stage.service.ask("GET", path), 410, "log-gone")
    for shared in (f"/v1/logs/{stage.job}", f"/v1/logs/{stage.job}/0"):
        refused(stage.service.ask("GET", shared, as_=None, query=key), 410, "log-gone")
    refused(stage.service.ask("GET", f"/v1/jobs/{stage.job}/events"), 410, "log-gone")


def test_looking_whether_there_are_more_lines_costs_three_reads(stage: Stage) -> None:
    after = str(read(stage)["total"])
    with counted() as reads:
        assert read(stage, after=after)["items"] == []
    assert reads == {"get": 2, "find": 1}
