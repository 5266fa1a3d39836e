"""In which steps things are acquired, and who waits in an order that the site no longer has. [QUEUE-3]"""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.jobs import unused
from penstock.domain.jobs.jobs import MAX_GIVE_BACKS, Job
from penstock.domain.pools.pools import WORKER, Lease, LeaseState, Need
from penstock.domain.site import site as site_
from penstock.domain.site.site import Quota, ResourceType, Site
from tests.domain.helpers import job, lease


def site(uses: dict[str, dict[str, int]]) -> Site:
    kinds = {name: ResourceType(name, "w", 2, uses=what) for name, what in uses.items()}
    return Site(resources=kinds, quotas={name: Quota(name, 9) for name in ("q1", "q2")})


def test_types_are_acquired_in_lexicographic_order() -> None:
    assert site_.step_numbers(site({"a": {}, "b": {}, "c": {}}), ["c", "a"]) == {"a": 1, "c": 2}


def test_types_that_share_a_quota_are_acquired_together() -> None:
    given_ = site({"a": {"q1": 1}, "b": {}, "c": {"q1": 2}})
    assert site_.step_numbers(given_, ["a", "b", "c"]) == {"a": 1, "b": 2, "c": 1}
    assert site_.step_numbers(given_, ["b", "c"]) == {"c": 1, "b": 2}, "the place of a step does not depend on the job"


def test_a_type_that_uses_another_is_acquired_with_it_also_over_a_third() -> None:
    given_ = site({"a": {}, "m": {"z": 1}, "y": {"q1": 1}, "z": {"q1": 1}})
    assert site_.step_leaders(given_) == {"a": "a", "m": "m", "y": "m", "z": "m"}


names = st.sampled_from(["a", "b", "c", "d", "e"])
sites = st.dictionaries(names, st.dictionaries(st.sampled_from(["q1", "q2"]), st.integers(1, 3)), min_size=1).map(site)


@given(sites)
def test_every_pool_belongs_to_one_step(given_: Site) -> None:
    leader = site_.step_leaders(given_)
    owner: dict[str, str] = {}
    for name, kind in given_.resources.items():
        for pool in (kind.pool, *given_.takes(kind.uses)):
            assert owner.setdefault(pool, leader[name]) == leader[name]


def asks(given_: Site, types: Iterable[str]) -> Job:
    """A job that needs one of each of some types, and a worker, planned by a site."""
    wanted = sorted(types)
    numbers = site_.step_numbers(given_, wanted)
    needs = [
        Need(order, numbers[name], name, name, kind.pool, "w", uses=given_.takes(kind.uses))
        for order, name in enumerate(wanted, 1)
        for kind in [given_.resources[name]]
    ]
    return job(needs=(*needs, Need(WORKER, WORKER, "worker", "u", "target/u", "f", uses={"quota/q1": 1})))


def leases_of(planned: Job, holds: Iterable[str], waits: Iterable[str]) -> list[Lease]:
    states = {**dict.fromkeys(holds, LeaseState.READY), **dict.fromkeys(waits, LeaseState.WAITING)}
    needs = [need for need in planned.request.needs if need.type in states]
    return [lease(need.order, states[need.type], type=need.type, pool=need.pool) for need in needs]


OLD = site({"b": {}, "c": {"q1": 1}})
NEW = site({"a": {"q1": 1}, "b": {}, "c": {"q1": 1}})
"""With the type a, which shares a quota with c: both are acquired together now, before b."""


@pytest.mark.parametrize(
    ("now", "holds", "waits", "is_out"),
    [
        (OLD, "b", "c", False),
        (NEW, "b", "c", True),
        (NEW, "c", "b", False),
        (NEW, "b", "", False),
        (NEW, "", "c", False),
        (NEW, "b", "u", False),  # the worker comes last in any order
        (NEW, "u", "c", False),
        (site({"b": {"q1": 1}, "c": {"q1": 1}}), "b", "c", True),  # they are acquired together
        (site({"c": {"q1": 1}}), "b", "c", False),  # of what is gone nobody new takes anything
        (site({"b": {}}), "b", "c", False),
    ],
)
def test_who_holds_what_comes_after_what_it_waits_for_is_out_of_order(
    now: Site, holds: str, waits: str, is_out: bool
) -> None:
    planned = asks(OLD, "bc")
    assert unused.is_out_of_order(planned, leases_of(planned, holds, waits), now) is is_out


def test_nobody_gives_back_for_ever() -> None:
    for given_back, is_out in ((MAX_GIVE_BACKS - 1, True), (MAX_GIVE_BACKS, False)):
        planned = asks(OLD, "bc")
        often = job(needs=planned.request.needs, given_back=given_back)
        assert unused.is_out_of_order(often, leases_of(planned, "b", "c"), NEW) is is_out


def test_what_is_granted_counts_as_held_and_what_is_released_as_nothing() -> None:
    planned = asks(OLD, "bc")
    (waits,) = leases_of(planned, "", "c")
    for state, is_out in ((LeaseState.GRANTED, True), (LeaseState.RELEASED, False)):
        assert unused.is_out_of_order(planned, [lease(1, state), waits], NEW) is is_out


def test_a_job_is_put_in_order_with_what_its_types_use_now() -> None:
    now = site({"a": {"q1": 1}, "b": {"q2": 2}, "c": {"q1": 3}})
    after = unused.in_order(asks(site({"b": {}, "c": {"q1": 1}, "d": {}}), "bcd"), now)
    assert [(need.type, need.step, need.uses) for need in after.request.needs] == [
        ("b", 2, {"quota/q2": 2}), ("c", 1, {"quota/q1": 3}), ("d", 3, {}), ("u", WORKER, {"quota/q1": 1})
    ]  # fmt: skip


def test_a_target_with_the_name_of_a_type_is_none() -> None:
    now = site({"a": {}, "b": {"q1": 1}, "c": {}})
    for name in "ab":
        planned = asks(OLD, "bc")
        worker = Need(WORKER, WORKER, "worker", name, f"target/{name}", "f")
        after = unused.in_order(job(needs=(*planned.request.needs[:2], worker)), now)
        assert [need.step for need in after.request.needs] == [1, 2, WORKER]
        assert after.request.needs[2] == worker


@given(sites, sites)
def test_who_begins_anew_is_in_order(before: Site, after: Site) -> None:
    """Whatever it holds and waits for next: no attempt begins anew twice for one change of the site."""
    types = before.resources.keys() & after.resources.keys()
    planned = unused.in_order(asks(before, types), after)
    needs = [need for need in planned.request.needs if need.order != WORKER]
    for step in {need.step for need in needs}:
        holds = [need.type for need in needs if need.step < step]
        waits = [need.type for need in needs if need.step == step]
        assert not unused.is_out_of_order(planned, leases_of(planned, holds, waits), after)
