"""Each worker has a network of its own, which is gone with it. [UNIT-1] [UNIT-2] [SEC-2]"""

from __future__ import annotations

import pytest

from penstock.domain.units.units import CleanProof
from penstock.drivers.factories.container.engine import Engine
from penstock.drivers.factories.container.networks import Networks
from penstock.drivers.factories.container.spec import Deployment
from penstock.kernel.errors import Misconfigured, QuotaReached, Unknown
from penstock.ports import NotYet, Ready
from tests.containers.fake import Box
from tests.containers.helpers import NOW, WORKER, Place, order

OTHER = "w-01kdvg4000000000000000001b"


def box(place: Place, name: str = WORKER) -> Box:
    found = place.engine.box(name)
    assert found
    return found


def names(place: Place) -> list[str]:
    return [each["Name"] for each in place.engine.networks.values()]


def test_no_two_workers_share_a_network(place: Place) -> None:
    """SEC-2: an engine lets containers of one bridge network reach each other."""
    for worker in (WORKER, OTHER, WORKER):
        assert isinstance(place.factory().create(order(worker)), Ready)
    modes = [box(place, worker).spec["HostConfig"]["NetworkMode"] for worker in (WORKER, OTHER)]
    assert modes == list(place.engine.networks)
    assert names(place) == [WORKER, OTHER]
    assert {each["Driver"] for each in place.engine.networks.values()} == {"bridge"}


@pytest.mark.parametrize("network", ["none", "ci"])
def test_where_the_site_names_a_network_none_is_made(place: Place, network: str) -> None:
    place.engine.networks["1"] = {"Name": "ci", "Labels": {}}
    assert isinstance(place.factory(network=network).create(order()), Ready)
    assert box(place).spec["HostConfig"]["NetworkMode"] == network
    assert names(place) == ["ci"]
    assert isinstance(place.factory(network=network).destroy(WORKER, NOW), CleanProof)
    assert names(place) == ["ci"]


def test_a_crash_between_a_network_and_its_container_leaks_nothing(place: Place) -> None:
    """UNIT-1 and UNIT-2: the worker is listed by its network, and destroyed with it."""
    place.engine.fail("POST /containers/create", 500, "the daemon is busy")
    with pytest.raises(Unknown):
        place.factory().create(order())
    assert (place.engine.boxes, names(place)) == ({}, [WORKER])
    assert list(place.factory().list()) == [WORKER]
    assert [(each.kind, each.unit) for each in place.factory().things()] == [("network", WORKER)]
    assert isinstance(place.factory().destroy(WORKER, NOW), CleanProof)
    assert names(place) == []
    assert list(place.factory().list()) == []


def test_a_network_that_is_there_is_used(place: Place) -> None:
    place.engine.fail("POST /containers/create", 500, "the daemon is busy")
    with pytest.raises(Unknown):
        place.factory().create(order())
    assert isinstance(place.factory().create(order()), Ready)
    assert names(place) == [WORKER]


def test_a_network_stays_until_its_containers_are_gone(place: Place) -> None:
    place.factory().create(order())
    place.engine.removals = 1
    assert place.factory().destroy(WORKER, NOW) == NotYet(2, "its containers are being removed")
    assert names(place) == [WORKER]
    assert isinstance(place.factory().destroy(WORKER, NOW), CleanProof)


def test_there_is_no_proof_while_a_network_is_there(place: Place) -> None:
    """UNIT-2: and then it is listed still."""
    place.factory().create(order())
    place.engine.lingering = 1
    assert place.factory().destroy(WORKER, NOW) == NotYet(2, "its network is being removed")
    assert list(place.factory().list()) == [WORKER]
    assert isinstance(place.factory().destroy(WORKER, NOW), CleanProof)


def test_a_network_that_somebody_elses_container_uses_is_not_gone(place: Place) -> None:
    """It is asked for again, and no setting is wrong."""
    place.factory().create(order())
    (id,) = place.engine.networks
    place.engine.make(
        "theirs", {"Image": next(iter(place.engine.images)), "HostConfig": {"NetworkMode": id}, "Labels": {}}
    )
    with pytest.raises(Unknown, match="has active endpoints"):
        place.factory().destroy(WORKER, NOW)
    assert list(place.factory().list()) == [WORKER]


def test_a_network_that_is_removed_meanwhile_is_gone(place: Place) -> None:
    """By another call that destroys the same worker, or by this one, whose answer was lost."""
    place.factory().create(order())
    place.engine.fail("DELETE /networks/", way="after")
    with pytest.raises(Unknown):
        place.factory().destroy(WORKER, NOW)
    assert isinstance(place.factory().destroy(WORKER, NOW), CleanProof)
    Networks(Engine(place.engine.path), Deployment("Penstock.here", "boxes", place.home)).remove("0" * 64)


@pytest.mark.parametrize("way", ["after", "closed"])
def test_an_answer_that_is_lost_makes_no_second_network(place: Place, way: str) -> None:
    place.engine.fail("POST /networks/create", way=way)
    if way == "closed":
        with pytest.raises(Unknown):
            place.factory().create(order())
    assert isinstance(place.factory().create(order()), Ready)
    assert names(place) == [WORKER]


def test_of_two_networks_of_a_name_all_calls_choose_one_and_both_are_removed(place: Place) -> None:
    """Docker made both, before 1.44, when two calls came at once."""
    place.engine.repeats_names = True
    place.factory().create(order())
    (first,) = place.engine.networks
    place.engine.make_network(place.engine.networks[first])
    place.engine.boxes.clear()
    assert isinstance(place.factory().create(order()), Ready)
    assert box(place).spec["HostConfig"]["NetworkMode"] == first
    assert isinstance(place.factory().destroy(WORKER, NOW), CleanProof)
    assert names(place) == []


SHORT = [
    (500, "could not find an available, non-overlapping IPv4 address pool among the defaults to assign to the network"),
    (400, "all predefined address pools have been fully subnetted"),
    (500, "could not find an available predefined network"),
    (500, "could not find free subnet from subnet pools"),
]


@pytest.mark.parametrize(("status", "message"), SHORT)
def test_addresses_that_are_used_up_are_a_quota(place: Place, status: int, message: str) -> None:
    """A worker that goes makes room, and the operator is told what else would."""
    place.engine.fail("POST /networks/create", status, message)
    with pytest.raises(
        QuotaReached, match=rf"{message}; each worker has a network of its own: .*default-address-pools"
    ):
        place.factory().create(order())
    assert isinstance(place.factory().create(order()), Ready)


def test_a_network_of_somebody_elses_is_left_alone(place: Place) -> None:
    """UNIT-1: nothing untagged is touched."""
    place.engine.networks["1"] = {"Name": WORKER, "Labels": {"owner": "ada"}}
    with pytest.raises(Misconfigured, match=f"a network named {WORKER} that this factory did not make"):
        place.factory().create(order())
    assert isinstance(place.factory().destroy(WORKER, NOW), CleanProof)
    assert names(place) == [WORKER]


def test_factories_and_local_clouds_do_not_see_each_others_networks(place: Place) -> None:
    """UNIT-1: one engine may serve several. The network that all workers shared in earlier releases is no worker's."""
    place.factory().create(order())
    place.engine.boxes.clear()
    (made,) = place.engine.networks.values()
    shared = {key: value for key, value in made["Labels"].items() if key != "penstock.unit"}
    place.engine.make_network({"Name": "penstock-1f2e3d4c", "Labels": shared})
    assert list(place.factory().list()) == [WORKER]
    assert list(place.factory(name="others").list()) == []
    place.home = place.folder / "elsewhere"
    assert list(place.factory().list()) == []


@pytest.mark.parametrize("oldest", ["3.0.0", "4.0.0", "6.1.0", "?"])
def test_podman_lists_networks_by_its_own_api(place: Place, oldest: str) -> None:
    """SEC-2: by Docker's, Podman 4.3 to 5.0.1 forgets that what it lists is isolated. Podman 3 isolates nothing."""
    place.engine.podman = oldest
    assert isinstance(place.factory().create(order()), Ready)
    assert list(place.factory().list()) == [WORKER]
    assert isinstance(place.factory().destroy(WORKER, NOW), CleanProof)
    assert names(place) == []
    has_own = oldest in ("4.0.0", "6.1.0")
    assert ("GET /networks" in place.engine.calls) is not has_own
    assert ("GET /libpod/networks/json" in place.engine.calls) is has_own


@pytest.mark.parametrize("components", [None, "?", [], ["?"], [{}], [{"Name": "Podman Engine"}]])
def test_an_engine_that_does_not_say_what_it_is_is_asked_as_docker(place: Place, components: object) -> None:
    engine = Engine(place.engine.path)
    assert engine.call("GET", "/networks", {"filters": '{"label": []}'}).json() == []
    engine.__dict__["_version"] = {"Components": components}
    assert engine.libpod == ""
