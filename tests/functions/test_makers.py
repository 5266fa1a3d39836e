"""What a factory or well is shown with: its cool-downs, what went wrong, and when it was compared."""

from __future__ import annotations

import pytest

from penstock.kernel.errors import Misconfigured, NoCapacity, Shortage
from penstock.ports import Order
from penstock.usecases import sweep
from tests.functions.service import Service, conforms


@pytest.fixture
def short(service: Service) -> Service:
    """A service whose factory has none of what two jobs want."""
    found = [Shortage("spot/m6i.large", "m6i.large spot: InsufficientInstanceCapacity")]
    service.twin.drivers.hand.says = [NoCapacity("none left", found), Misconfigured("no such image")]
    service.submit()
    service.submit()
    return service


def test_an_operator_sees_what_is_cooling_down_and_what_went_wrong(short: Service) -> None:
    shown = short.ask("GET", "/v1/factories/hand", as_="root").json
    conforms(shown, "MakerView")
    cooling = {row["scope"]: row for row in shown["cooling"]}
    assert set(cooling) == {"spot/m6i.large", "type/linux"}
    row = cooling["spot/m6i.large"]
    assert (row["cause"], row["tried"], row["probe"]) == ("capacity", 1, None)
    assert row["since"] < row["until"]
    assert "no capacity for spot/m6i.large until" in row["summary"]
    assert [(one["code"], one["count"]) for one in shown["failures"]] == [("Misconfigured", 1), ("NoCapacity", 1)]


def test_who_probes_is_shown(short: Service) -> None:
    short.twin.drivers.hand.says = []
    short.twin.pass_time(300)
    create, seen = short.twin.drivers.hand.create, []

    def looking(order: Order) -> object:
        seen.append((order.id, short.ask("GET", "/v1/factories/hand", as_="root").json["cooling"]))
        return create(order)

    short.twin.drivers.hand.create = looking  # type: ignore[method-assign,assignment]
    short.twin.run()
    unit, cooling = seen[0]
    assert {row["probe"] for row in cooling} == {unit}
    assert short.ask("GET", "/v1/factories/hand", as_="root").json["cooling"] == []


def test_what_a_driver_said_of_the_account_is_for_operators(short: Service) -> None:
    """SEC-2: that there is none, and why, is everybody's who waits; codes and messages are not."""
    shown = short.ask("GET", "/v1/factories/hand").json
    conforms(shown, "MakerView")
    assert shown["failures"] is None
    assert shown["cooling"]


def test_when_it_was_compared_is_shown(service: Service) -> None:
    assert service.ask("GET", "/v1/wells/locks").json["compared"] is None
    service.twin.drivers.hand.create(Order("w-stray", "linux", "1"))
    sweep.sweep(service.twin.on)
    service.twin.pass_time(90)
    shown = service.ask("GET", "/v1/factories/hand").json["compared"]
    conforms(shown, "ComparedView")
    assert (shown["seconds_ago"], shown["failures"], shown["strays"]) == (90, 0, ["w-stray"])
    service.twin.drivers.hand.list = lambda: 1 / 0  # type: ignore[method-assign,assignment,return-value]
    service.twin.pass_time(90)
    sweep.sweep(service.twin.on)
    shown = service.ask("GET", "/v1/factories/hand").json["compared"]
    assert (shown["failures"], shown["why"]) == (1, "Unknown: the driver raised ZeroDivisionError: division by zero")
    assert shown["seconds_ago"] == 180
    assert service.ask("GET", "/v1/wells/locks").json["compared"]["seconds_ago"] == 0


def test_a_job_that_waits_for_it_is_told(short: Service) -> None:
    job = short.ask("GET", "/v1/jobs").json["items"][0]["id"]
    why = short.ask("GET", f"/v1/jobs/{job}/why").json
    conforms(why, "WhyView")
    assert "factory hand: misconfigured for type/linux" in why["summary"]
    assert "no such image" in why["summary"]
    assert why["expected_start"]


def test_a_factory_that_the_site_does_not_have_is_not_found(service: Service) -> None:
    answer = service.ask("GET", "/v1/factories/nowhere")
    assert (answer.status, answer.json["code"]) == (404, "factory-not-found")
