"""What is kept is replaced when the settings change by which it is made."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.domain.pools.pools import Pool, SlotState, Warm
from penstock.domain.units import prewarm, reuse
from penstock.testing.site import site
from tests.domain.helpers import NOW, SECOND, pool, slot, unit
from tests.rows import changed

EIGHT = pool(name="target/u", limit=10, warm=Warm(least=8, most=10, life=3600), renewed=NOW)
OLD, NEW = NOW, NOW + SECOND


def kept(*since: object) -> list[object]:
    return [slot(str(at), SlotState.FREE, unit=f"w-{at}", since=when) for at, when in enumerate(since)]


def names(row: Pool, *since: object) -> list[str]:
    return [each.removeprefix("w-") for each in prewarm.outdated(row, kept(*since))]  # type: ignore[arg-type]


def test_a_pool_that_makes_units_ahead_has_a_quarter_replaced_at_a_time() -> None:
    assert names(EIGHT, *[OLD] * 8) == ["0", "1"]
    assert names(EIGHT, *[OLD] * 7, NEW, NEW) == ["0", "1", "2"]
    assert names(EIGHT, *[NEW] * 8) == []


@pytest.mark.parametrize("since", [[OLD] * 7, [*[OLD] * 7, None]], ids=["too few", "one is coming"])
def test_none_is_replaced_while_others_are_coming(since: list[object]) -> None:
    assert names(EIGHT, *since) == []


def test_what_nothing_is_made_in_place_of_goes_at_once() -> None:
    row = replace(EIGHT, warm=Warm(most=10))
    assert names(row, OLD, OLD, NEW) == ["0", "1"]
    assert names(replace(row, renewed=None), OLD) == []
    assert prewarm.outdated(row, [slot("0", SlotState.FREE, since=OLD)]) == []


def test_no_unit_outlives_its_pools_life() -> None:
    assert prewarm.may_have_outdated(EIGHT, NOW + timedelta(seconds=3599))
    assert not prewarm.may_have_outdated(EIGHT, NOW + timedelta(seconds=3600))
    assert not prewarm.may_have_outdated(replace(EIGHT, renewed=None), NOW)
    assert not prewarm.may_have_outdated(replace(EIGHT, warm=None), NOW)


@pytest.mark.parametrize(("born", "since", "is_old"), [(OLD, NEW, True), (NEW, NEW, False), (None, OLD, True)])
def test_a_unit_of_before_is_not_kept(born: object, since: object, is_old: bool) -> None:
    found = changed(unit(), born=born, since=since)
    assert reuse.is_outdated(found, EIGHT) == is_old
    assert (reuse.why_not_kept(found, EIGHT, 0, 0, NOW) == reuse.OUTDATED) == is_old
    assert not reuse.is_outdated(found, replace(EIGHT, renewed=None))


def test_the_settings_of_the_maker_and_of_the_type_tell_how_units_are_made() -> None:
    def specs(image: str = "a", zone: str = "a", limit: int = 1, factory: str = "hand") -> dict[str, str]:
        found = site(
            factories={factory: {"driver": "hand", "image": image}},
            targets={"linux": {"factory": factory, "limit": limit}, "default": "linux"},
            wells={"spring": {"driver": "hand"}},
            resources={"db": {"well": "spring", "limit": limit, "settings": {"zone": zone}}},
            quotas={"cpus": 1},
        )
        return {name: shape.spec for name, shape in found.pools().items()}

    first = specs()
    assert first == specs(limit=2)
    assert first["quota/cpus"] == ""
    assert first["target/linux"] not in (specs(image="b")["target/linux"], specs(factory="other")["target/linux"])
    assert first["resource/db"] == specs(image="b")["resource/db"] != specs(zone="b")["resource/db"]


def test_the_privileges_of_a_site_are_those_that_something_needs() -> None:
    found = site(
        targets={"linux": {"limit": 1}, "lab": {"limit": 1, "privilege": "target.lab"}},
        wells={"locks": {"driver": "lock"}},
        resources={"a": {"well": "locks", "limit": 1}, "b": {"well": "locks", "limit": 1, "privilege": "resource.b"}},
    )
    assert found.privileges() == {"target.lab", "resource.b"}
