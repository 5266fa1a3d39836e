"""What pools had, hour by hour, over HTTP."""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.testing.twin import START
from penstock.usecases import sweep
from tests.functions.reading import counted
from tests.functions.service import Service, conforms, refused

PATH = "/v1/pools/resource/bench/series"


def hour(number: int) -> str:
    return (START + timedelta(hours=number)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def test_everybody_sees_what_a_pool_had(service: Service) -> None:
    sweep.sweep(service.twin.on)
    for _ in range(3):
        service.submit(resources=["bench"])
    service.twin.pass_time(1800)
    sweep.sweep(service.twin.on)
    service.twin.pass_time(2700)
    answer = service.ask("GET", PATH, as_="bob").json
    conforms(answer, "SeriesView")
    (one,) = answer["items"]
    assert (one["start"], round(one["seconds"]), one["limit"]) == (hour(0), 3600, 1)
    assert one["mean"] == {"held": 0.5, "idle": 0, "waiting": 1}
    assert one["most"] == {"held": 1, "idle": 0, "waiting": 2}
    assert (answer["pool"], answer["until"][:13]) == ("resource/bench", hour(1)[:13])


def test_a_month_is_one_query(service: Service) -> None:
    for _ in range(50):
        sweep.sweep(service.twin.on)
        service.twin.pass_time(3600)
    assert [one["start"] for one in service.ask("GET", PATH).json["items"]] == [hour(each) for each in range(26, 50)]
    with counted() as reads:
        month = service.ask("GET", PATH, query={"since": hour(-24 * 29), "until": hour(30)}).json
    assert [one["start"] for one in month["items"]] == [hour(each) for each in range(31)]
    assert reads == {"get": 1, "find": 1}


@pytest.mark.parametrize(
    "query",
    [
        {"since": hour(1), "until": hour(0)},
        {"since": hour(-24 * 33)},
        {"since": "0001-01-01T00:00:00Z"},
        {"since": "9999-12-31T23:59:59Z"},
        {"until": "yesterday"},
        {"until": "0001-01-01T00:00:00+23:59"},
        {"until": "9999-12-31T23:59:59-23:59"},
        {"since": "0001-01-01T00:00:00+00:01", "until": "0001-01-01T00:00:00Z"},
    ],
)
def test_what_cannot_be_shown_is_refused(service: Service, query: dict[str, str]) -> None:
    refused(service.ask("GET", PATH, query=query), 400, "bad-request")


@pytest.mark.parametrize("until", ["0001-01-01T00:00:00-14:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59+14:00"])
def test_of_other_times_there_is_nothing(service: Service, until: str) -> None:
    sweep.sweep(service.twin.on)
    answer = service.ask("GET", PATH, query={"until": until})
    assert (answer.status, answer.json["items"]) == (200, [])


def test_there_is_none_of_a_pool_that_does_not_exist(service: Service) -> None:
    refused(service.ask("GET", "/v1/pools/target/none/series"), 404, "pool-not-found")
    refused(service.ask("GET", PATH, as_=None), 401, "no-token")
