"""Where target names lead, and which pools a site has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.pools.pools import Serves, Warm
from penstock.domain.site.site import MAX_REDIRECTS, Budgets, Limits, Maker, Quota, ResourceType, Shape, Site, Target
from penstock.domain.site.warnings import warnings


def site(*targets: Target) -> Site:
    return Site(targets={target.name: target for target in targets})


UBUNTU = Target("ubuntu", factory="here", limit=4)


@pytest.mark.parametrize(
    ("name", "leads_to"), [("ubuntu", UBUNTU), ("lts", UBUNTU), ("default", UBUNTU), ("Ubuntu", None), ("gone", None)]
)
def test_a_name_leads_through_redirects(name: str, leads_to: Target | None) -> None:
    aliases = {"lts": "ubuntu", "default": "lts", "gone": "x"}
    assert site(UBUNTU, *(Target(alias, redirect=to) for alias, to in aliases.items())).resolve(name) == leads_to


@given(st.integers(0, MAX_REDIRECTS + 5))
def test_so_many_redirects_may_follow_one_another(count: int) -> None:
    chain = [Target(str(number), redirect=str(number + 1)) for number in range(count)]
    end = Target(str(count), factory="here")
    assert site(*chain, end).resolve("0") == (end if count <= MAX_REDIRECTS else None)


def test_a_circle_leads_nowhere() -> None:
    assert site(Target("a", redirect="b"), Target("b", redirect="a")).resolve("a") is None


def test_jobs_may_have_to_wait_in_a_backlog_where_there_is_a_limit_or_a_budget() -> None:
    assert not Site().has_backlogs
    assert Site(limits=Limits(at_once=1)).has_backlogs
    assert Site(budgets=Budgets()).has_backlogs


def test_a_site_has_a_pool_for_everything_but_redirects() -> None:
    resources = {
        "bench": ResourceType("bench", "benches", 2, ("a", "b")),
        "licence": ResourceType("licence", "benches", 3),
    }
    targets = {"ubuntu": UBUNTU, "default": Target("default", redirect="ubuntu")}
    quotas = {"vcpus": Quota("vcpus", 64)}
    assert Site(targets=targets, resources=resources, quotas=quotas).pools() == {
        "target/ubuntu": Shape(4),
        "resource/bench": Shape(2, ("a", "b")),
        "resource/licence": Shape(3),
        "quota/vcpus": Shape(64, is_amount=True),
    }


def test_the_pools_of_a_factory_or_well_are_those_of_what_it_makes() -> None:
    targets = site(UBUNTU, Target("mac", factory="there", limit=1), Target("default", redirect="ubuntu")).targets
    kinds = {"bench": ResourceType("bench", "benches", 2), "licence": ResourceType("licence", "here", 3)}
    found = Site(targets=targets, resources=kinds)
    assert found.pools_of("factory/here") == {"target/ubuntu"}
    assert found.pools_of("factory/there") == {"target/mac"}
    assert found.pools_of("well/benches") == {"resource/bench"}
    assert found.pools_of("well/here") == {"resource/licence"}
    assert found.pools_of("well/there") == set()


def test_what_needs_a_privilege_is_known_by_its_pool_also_where_only_another_name_of_it_does() -> None:
    """SEC-2: these are the queues in which somebody may wait for what they may not have any more."""
    lab, shop = Target("lab", factory="here", privilege="lab"), Target("shop", factory="here")
    aliases = Target("gate", redirect="shop", privilege="gate"), Target("door", redirect="gone", privilege="door")
    targets = site(UBUNTU, lab, shop, *aliases).targets
    free, locked = ResourceType("licence", "benches", 3), ResourceType("bench", "benches", 2, privilege="bench")
    found = Site(targets=targets, resources={"licence": free, "bench": locked}).guarded()
    assert found == {"target/lab", "target/shop", "resource/bench"}


def test_a_resource_that_is_leased_more_than_once_has_a_slot_for_each_lease() -> None:
    shared = ResourceType("bench", "benches", 2, ("a", "b"), leases=2)
    assert shared.slots == ("a/1", "a/2", "b/1", "b/2")
    assert Site(resources={"bench": shared}).pools()["resource/bench"].limit == 4


def test_only_the_pool_of_a_target_with_named_slots_has_hosts() -> None:
    lab = Target("lab", factory="racks", limit=2, names=("h-1", "h-2"))
    assert {name: shape.hosts for name, shape in site(UBUNTU, lab).pools().items()} == {
        "target/ubuntu": False,
        "target/lab": True,
    }


def test_a_factory_whose_settings_name_a_program_has_a_controller() -> None:
    assert Maker("lab", "hosts", {"url": "https://lab.example.com"}).has_controller
    assert not Maker("lab", "hosts").has_controller


def test_what_is_used_is_known_by_its_pool() -> None:
    resources = {"server": ResourceType("server", "w", 1)}
    found = Site(resources=resources, quotas={"vcpus": Quota("vcpus", 64)})
    assert found.takes({"vcpus": 8, "server": 1}) == {"resource/server": 1, "quota/vcpus": 8}


@pytest.mark.parametrize(
    ("limits", "most"),
    [
        (Limits(), 1024**3),
        (Limits(output_bytes=5, cache_bytes=6), 5),
        (Limits(output_bytes=6, cache_bytes=5), 5),
        (Limits(output_bytes=9 * 1024**3), 9 * 1024**3),
    ],
)
def test_an_archive_is_no_bigger_than_an_output_nor_than_all_caches_together(limits: Limits, most: int) -> None:
    assert limits.archive_bytes == most


def test_it_is_said_where_one_owner_may_leave_something_for_another() -> None:
    """SEC-2: on a machine that serves both, and by a choice that is not the default."""
    handed = Target("handed", factory="here", limit=1, warm=Warm(serves=Serves.SITE))
    kept = Target("kept", factory="here", limit=1, warm=Warm())
    shared = Target("shared", factory="lab", limit=1, names=("a",))
    guarded = Target("guarded", factory="lab", limit=1, names=("b",), privilege="lab")
    harmless = Target("harmless", factory="here", limit=1, warm=Warm(serves=Serves.SITE), sudo=False)
    refusing = Target("refusing", factory="lab", limit=1, names=("c",), sudo=False)
    found = list(warnings(site(UBUNTU, harmless, handed, kept, shared, guarded, refusing)))
    assert [text.partition(":")[0] for text in found] == ["target handed", "target shared"]
    assert ["`serves`" in text for text in found] == [True, False]
    assert ["`privilege`" in text for text in found] == [False, True]
    assert ["`--user`" in text for text in found] == [False, True]
    assert ["`sudo = false`" in text for text in found] == [True, True]
