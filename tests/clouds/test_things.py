"""Machines, network cards and disks for the account diff, also those of factories that are gone. UNIT-1"""

from __future__ import annotations

import pytest
from libcloud.common.exceptions import BaseHTTPError
from libcloud.compute.drivers.dummy import DummyNodeDriver

from penstock.domain import leftovers
from penstock.domain.account import Thing
from penstock.drivers.factories.libcloud.names import Names
from penstock.drivers.factories.libcloud.providers import PROVIDERS, ending_with_machine, listed_disks
from penstock.kernel.errors import Misconfigured
from tests.clouds.fake import Books
from tests.clouds.helpers import HERE, NOW, OTHER, WORKER, clean, factory, order

LAB, GONE = Names(HERE, "lab", "penstock"), Names(HERE, "Gone.2", "penstock")
HASH = "sha256:3747a1a8"
"""Of `Gone.2`, as the page of the driver tells operators to compute it: printf %s Gone.2 | sha256sum"""


@pytest.fixture
def books() -> Books:
    return Books()


def test_machines_are_things_until_they_are_gone(books: Books) -> None:
    factory(books).create(order())
    assert list(factory(books).things()) == [Thing("machine", "1", WORKER)]
    clean(factory(books))
    assert list(factory(books).things()) == []


@pytest.mark.parametrize(("name", "maker"), [("second", "second"), ("Gone.2", HASH)])
def test_a_machine_of_another_factory_of_the_site_is_a_thing_and_is_listed_as_a_worker_only_by_its_own(
    books: Books, name: str, maker: str
) -> None:
    """The tag has the name in other characters, which then is not the name."""
    factory(books, name=name).create(order())
    assert list(factory(books).things()) == [Thing("machine", "1", WORKER, maker=maker)]
    assert list(factory(books).list()) == []


def test_a_machine_of_another_factory_whose_cloud_shows_no_tags_is_known_by_the_digest_in_its_name(
    books: Books,
) -> None:
    factory(books, name="second").create(order())
    books.ours[0].extra.clear()
    (found,) = factory(books).things()
    assert found.maker == "sha256:16367aac"
    checked, left = leftovers.find_leftovers("factory/lab", [found], {}, {"lab", "second"}, NOW)
    assert (checked.things, left) == (0, [])


def test_machines_of_another_site_are_nobodys(books: Books) -> None:
    factory(books, site="Other.eu-west-1").create(order())
    assert list(factory(books).things()) == []


@pytest.mark.parametrize("shape", ["{}", "{}-drive", "{}_disk2_6b1a", "disk_{}", "{}-1"])
def test_a_disk_with_a_machines_name_in_its_own_outlives_the_machine(books: Books, shape: str) -> None:
    """So libcloud and the clouds name them."""
    books.disks = ["data", shape.format(LAB.of(WORKER)), shape.format(GONE.of(OTHER))]
    assert list(factory(books).things()) == [
        Thing("disk", "disk-1", WORKER),
        Thing("disk", "disk-2", OTHER, maker=HASH),
    ]


@pytest.mark.parametrize(
    "name",
    [
        "",
        Names("Other.eu-west-1", "lab", "penstock").of(WORKER),
        LAB.of(WORKER)[:-1],
        LAB.of(WORKER) + "7",
        LAB.of("w-" + "u" * 26),
        LAB.of("w-1"),
    ],
)
def test_a_disk_with_another_name_is_somebody_elses(books: Books, name: str) -> None:
    books.disks = [name]
    assert list(factory(books).things()) == []


def test_tags_of_a_disk_say_its_factorys_name() -> None:
    tags = {"labels": {"penstock-factory": "second"}}
    name = Names(HERE, "second", "penstock").of(WORKER)
    assert LAB.disk(name, tags) == (WORKER, "second")
    assert LAB.disk(name, {"labels": {"penstock-factory": "third"}}) == (WORKER, "sha256:16367aac")


def test_a_list_of_disks_that_fails_is_no_empty_list(books: Books) -> None:
    books.failing["list_volumes"] = [BaseHTTPError(403, "Policy does not allow it")]
    with pytest.raises(Misconfigured, match="Policy does not allow it"):
        factory(books).things()


def test_what_libcloud_cannot_list_is_not_asked_for() -> None:
    assert listed_disks(DummyNodeDriver("0")) == []


@pytest.mark.parametrize("name", ["digitalocean", "openstack"])
def test_where_no_disk_says_whose_it_is_none_is_asked_for(name: str) -> None:
    assert PROVIDERS[name].disks(None) == []


def test_volumes_that_openstack_makes_end_with_their_machine_and_others_stay() -> None:
    image = {"source_type": "image", "destination_type": "volume", "uuid": "i", "delete_on_termination": False}
    theirs = {"source_type": "volume", "destination_type": "volume", "uuid": "v"}
    assert ending_with_machine([image, theirs]) == [{**image, "delete_on_termination": True}, theirs]
