"""Readers of one log share a cache: what its key opens, and what many readers cost. [SEC-2]"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from penstock import bootstrap
from penstock.domain.logs import keys
from tests.functions.agent import call
from tests.functions.service import Answer, Service, conforms, refused
from tests.functions.stage import Stage


@pytest.fixture
def stage(service: Service) -> Stage:
    return Stage(service)


def key_of(stage: Stage) -> str:
    return str(stage.service.ask("GET", f"/v1/jobs/{stage.job}/events").json["key"])


def by_key(stage: Stage, key: str, path: str = "", **query: str) -> Answer:
    """The request of a cache, which says nothing of who asks."""
    return stage.service.ask("GET", f"/v1/logs/{stage.job}{path}", as_=None, query={"key": key, **query})


def test_a_log_is_read_by_its_key(stage: Stage) -> None:
    stage.print_lines(1000)
    own = stage.service.ask("GET", f"/v1/jobs/{stage.job}/events", query={"after": "4", "limit": "9"}).json
    answer = by_key(stage, own["key"], after="4", limit="9")
    conforms(answer.json, "EventPage")
    assert answer.json == own | {"key": None}
    assert answer.headers["cache-control"] == "public, max-age=1"
    again = stage.service.ask(
        "GET",
        f"/v1/logs/{stage.job}",
        as_=None,
        query={"key": own["key"], "after": "4", "limit": "9"},
        headers={"if-none-match": answer.headers["etag"]},
    )
    assert (again.status, again.headers["cache-control"]) == (304, "public, max-age=1")


def test_a_full_segment_is_shared_for_minutes(stage: Stage) -> None:
    key = key_of(stage)
    refused(by_key(stage, key, "/0"), 404, "segment-not-full")
    stage.print_lines(1000)
    answer = by_key(stage, key, "/0")
    conforms(answer.json, "SegmentView")
    assert answer.json == stage.service.ask("GET", f"/v1/jobs/{stage.job}/events/0").json
    assert answer.headers["cache-control"] == "public, max-age=300, immutable"
    refused(by_key(stage, key, "/x"), 404, "segment-not-found")
    path, tag = f"/v1/logs/{stage.job}/0", {"if-none-match": answer.headers["etag"]}
    assert stage.service.ask("GET", path, as_=None, query={"key": key}, headers=tag).status == 304
    refused(stage.service.ask("GET", path, as_=None, query={"key": f"0.{64 * '0'}"}, headers=tag), 403, "log-key")


def test_a_key_is_good_for_one_log_for_minutes_and_a_page_that_is_shared_has_none(stage: Stage) -> None:
    """SEC-2: who has a key cannot get the next one with it."""
    key = key_of(stage)
    other = stage.service.ask("POST", "/v1/jobs", {"script": "#!/bin/sh\ntrue\n"}, as_="bob").json["id"]
    answer = stage.service.ask("GET", f"/v1/logs/{other}", as_=None, query={"key": key})
    refused(answer, 403, "log-key")
    refused(stage.service.ask("GET", f"/v1/logs/{stage.job}", as_=None), 403, "log-key")
    assert by_key(stage, key).json["key"] is None
    stage.service.twin.pass_time(1200)
    refused(by_key(stage, key), 403, "log-key")
    refused(by_key(stage, key, "/0"), 403, "log-key")
    assert by_key(stage, key_of(stage)).status == 200


def test_without_a_distribution_there_is_no_key_and_none_is_good(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-2."""
    key, twin = key_of(stage), stage.service.twin
    twin.on = replace(twin.on, front_key=None)
    monkeypatch.setattr(bootstrap, "aws", lambda: twin.on)
    assert stage.service.ask("GET", f"/v1/jobs/{stage.job}/events").json["key"] is None
    refused(by_key(stage, key), 403, "log-key")


def test_a_job_that_is_not_there_has_no_log(stage: Stage) -> None:
    """A key is made of an id: who can make one for no job finds nothing."""
    key = keys.key("front", "nothing", stage.service.twin.on.world.now())
    refused(stage.service.ask("GET", "/v1/logs/nothing", as_=None, query={"key": key}), 404, "job-not-found")


@dataclass
class Cache:
    """A cache as CloudFront is one: by address, as long as the reply says, and one request for all who ask at once.

    Source: CloudFront Developer Guide, "Manage how long content stays in the cache", "Request collapsing".
    """

    stage: Stage
    kept: dict[tuple[str, ...], tuple[float, Any]] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)

    def ask(self, now: float, key: str, query: Mapping[str, str]) -> Any:
        name = (key, *query.items())
        until, page = self.kept.get(name, (0.0, None))
        if now >= until:
            answer = by_key(self.stage, key, **query)
            assert answer.status == 200, answer
            page = answer.json
            self.kept[name] = (now + int(answer.headers["cache-control"].rpartition("=")[2]), page)
            self.asked["shared"] += 1
        return page


SECONDS, TICKS = 60, 10


def total(stage: Stage) -> int:
    """How many lines the log has."""
    page = stage.service.ask("GET", f"/v1/jobs/{stage.job}/events", query={"last": "1"}).json
    return int(page["total"])


def requests_for(stage: Stage, readers: int, first: int) -> int:
    """How many requests reach us of so many readers in a minute. Each asks three times a second; a line comes each.

    `first` is the number of the agent's first line.
    """
    cache, key, begun = Cache(stage), key_of(stage), total(stage)
    twin, ends = stage.service.twin, [0] * readers
    for tick in range(SECONDS * TICKS):
        if tick % TICKS == 0:
            line = {"time": "2026-01-01T00:00:00Z", "stream": "stdout", "payload": f"line {tick}"}
            body = {"first": first + tick // TICKS, "events": [line]}
            assert call(stage, "events", body).status == 200
        for reader in range(tick % 3, readers, 3):
            ends[reader] = cache.ask(tick / TICKS, key, {"after": str(ends[reader]), "limit": "1000"})["next"]
        twin.pass_time(1 / TICKS)
    assert total(stage) == begun + SECONDS
    assert all(begun + SECONDS - 2 <= end for end in ends)
    return cache.asked["shared"]


def test_hundreds_of_readers_cost_hardly_more_than_one(stage: Stage) -> None:
    """Where each asks for what follows the last line that it has, those who have the same ask for the same."""
    one = requests_for(stage, 1, first=100)
    assert SECONDS <= one <= 3 * SECONDS
    many = requests_for(stage, 300, first=100 + SECONDS)
    print(f"one reader makes {one} requests a minute, 300 make {many}")
    assert many <= 2 * one
