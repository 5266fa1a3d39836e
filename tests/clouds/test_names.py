"""By what machines are told apart. [UNIT-1]"""

from __future__ import annotations

import re

import pytest

from penstock.drivers.factories.libcloud.names import Names, tag, way_of
from tests.clouds.helpers import HERE, OTHER, WORKER

NAMES = Names(HERE, "lab", "penstock")


def test_a_name_fits_every_cloud() -> None:
    longest = Names("S" * 100 + ".eu-west-1", "f" * 64, "p" * 12).of(WORKER)
    assert re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", longest)


def test_a_name_gives_its_worker_back() -> None:
    assert NAMES.worker(NAMES.of(WORKER)) == WORKER
    assert NAMES.is_of(NAMES.of(WORKER), WORKER)
    assert not NAMES.is_of(NAMES.of(WORKER), OTHER)


@pytest.mark.parametrize(
    "name",
    [
        "penstock",
        "web-1",
        "",
        Names("Other.eu-west-1", "lab", "penstock").of(WORKER),
        "x" + NAMES.of(WORKER)[len("penstock-") :],
        NAMES.of(WORKER).upper(),
        NAMES.of(WORKER).replace("penstock-", "-"),
    ],
)
def test_what_is_not_ours(name: str) -> None:
    assert NAMES.worker(name) is None
    assert not NAMES.is_of(name, WORKER)


def test_a_worker_is_known_under_another_factorys_name_but_not_listed_there() -> None:
    theirs = Names(HERE, "other", "penstock").of(WORKER)
    assert NAMES.is_of(theirs, WORKER)
    assert NAMES.worker(theirs) is None


def test_a_tag_is_one_everywhere() -> None:
    assert tag("Standard_D2s v3 in West Europe") == "standard_d2s-v3-in-west-europe"
    assert len(tag("x" * 100)) == 63


@pytest.mark.parametrize("place", ["metadata", "tags", "labels"])
def test_the_way_is_read_back(place: str) -> None:
    assert way_of({place: {"penstock-way": "small"}}) == "small"
    assert way_of({place: ["penstock-way"]}) is None
