"""Times in queries: as RFC 3339 has them, in any zone, as far as UTC's calendar goes."""

from __future__ import annotations

import pytest

from tests.functions.service import Service, refused

NONE = ["0001-01-01T00:00:00+00:01", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "noon"]
PATHS = ["/v1/costs", "/v1/pools/target/linux/series", "/v1/jobs", "/v1/audit"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("text", NONE)
def test_a_time_that_is_none_is_refused(service: Service, path: str, text: str) -> None:
    refused(service.ask("GET", path, as_="root", query={"since": text}), 400, "bad-request")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("text", ["0001-01-01", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9999-12-31"])
def test_the_first_and_the_last_time_are_times(service: Service, path: str, text: str) -> None:
    for name in ("since", "until"):
        answer = service.ask("GET", path, as_="root", query={name: text})
        assert answer.status == 200 or refused(answer, 400, "bad-request")


def test_costs_are_of_days_in_utc_whatever_the_zone_of_a_time(service: Service) -> None:
    query = {"since": "2026-01-01T23:30:00-01:00", "until": "2026-01-04T00:30:00+01:00"}
    found = service.ask("GET", "/v1/costs", query=query).json
    assert (found["since"], found["until"]) == ("2026-01-02", "2026-01-03")
