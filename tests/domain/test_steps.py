"""In which steps things are acquired. [QUEUE-3]"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.site import site as site_
from penstock.domain.site.site import Quota, ResourceType, Site


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
