"""Pools, stops and canaries follow the commit of a site's text, whatever happens meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain import metrics
from penstock.domain.pools.pools import Pool
from penstock.domain.probes.canaries import Canary, canary_key
from penstock.domain.site.site import ROLLOUT_KEY, SITE_KEY, Rollout, SiteText
from penstock.domain.units import prewarm
from penstock.kernel import limits
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Change, Create, Replace
from penstock.system import current_site
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases import sweep as usecases_sweep
from penstock.usecases.probes import canaries
from penstock.usecases.site import apply, stops
from tests.usecases.races import (
    Died,
    after_the_next_commit,
    after_the_next_get,
    before_the_next_commit,
    before_the_next_write_of,
    die,
)
from tests.usecases.steps import sweep

CANARY = {"canary": {"every": "1h", "script": "#!/bin/sh\ntrue\n"}}


def text(linux: int, quota: int, *, two: str = "one", canary: bool = False, **limit: int) -> str:
    """A site with a target `linux` and others, a quota `v`, and factories `one` and `two`."""
    return site_toml(
        factories={"one": "hand", "two": "hand"},
        targets={
            "linux": {"factory": two, "limit": linux, **(CANARY if canary else {})},
            **{name: {"factory": "one", "limit": most} for name, most in limit.items()},
        },
        quotas={"v": quota},
    )


FIRST = text(1, 4, old=3)
SECOND = text(5, 8, new=2, canary=True)
FOLLOWS = {"target/linux": 5, "target/new": 2, "target/old": 0, "quota/v": 8}


@pytest.fixture
def twin() -> Twin:
    made = Twin()
    apply.apply(made.on, "ada", FIRST, "site.toml")
    made.run()
    sweep(made)
    return made


def limits_of(twin: Twin) -> dict[str, int]:
    return {pool.name: pool.limit for pool in twin.store.rows.values() if isinstance(pool, Pool)}


def rollout(twin: Twin) -> Rollout:
    found = twin.store.get(ROLLOUT_KEY, Rollout)
    assert found
    return found


def canary(twin: Twin) -> Canary | None:
    return twin.store.get(canary_key("target/linux"), Canary)


@pytest.mark.parametrize("commits", range(1, 8))
def test_whenever_the_function_dies_the_sweep_does_the_rest(twin: Twin, commits: int) -> None:
    """A crash costs one sweep at most: here, at each commit of the request."""
    done, commit = 0, twin.store.commit

    def dies(changes: Sequence[Change]) -> bool:
        nonlocal done
        if done == commits:
            die()
        done += 1
        return commit(changes)

    twin.store.commit = dies  # type: ignore[method-assign]
    with suppress(Died):
        apply.apply(twin.on, "ada", SECOND, "site.toml")
    twin.store.commit = commit  # type: ignore[method-assign]
    sweep(twin)
    assert limits_of(twin) == FOLLOWS
    assert canary(twin)


@pytest.mark.parametrize("older", range(5))
def test_of_two_operators_the_site_in_force_decides(twin: Twin, older: int) -> None:
    """The first one's function goes on, whatever it has written, while another site was applied."""
    left, commit = older, twin.store.commit

    def races(changes: Sequence[Change]) -> bool:
        nonlocal left
        left -= 1
        if left < 0:
            twin.store.commit = commit  # type: ignore[method-assign]
            apply.apply(twin.on, "bob", SECOND, "site.toml")
        return commit(changes)

    after_the_next_commit(twin, lambda: setattr(twin.store, "commit", races))
    apply.apply(twin.on, "ada", text(7, 64, mac=9), "site.toml")
    twin.run()
    found = twin.store.get(SITE_KEY, SiteText)
    assert found
    assert found.applied_by == "bob"
    assert {name: most for name, most in limits_of(twin).items() if name != "target/mac"} == FOLLOWS
    sweep(twin)
    assert limits_of(twin) == FOLLOWS | ({"target/mac": 0} if "target/mac" in limits_of(twin) else {})


def test_who_finds_another_site_in_force_rolls_nothing_out(twin: Twin) -> None:
    after_the_next_commit(twin, lambda: apply.apply(twin.on, "bob", SECOND, "site.toml"))
    told = apply.apply(twin.on, "ada", text(7, 64, mac=9), "site.toml")
    assert [each for each in told if each.startswith("pool")] == []
    assert limits_of(twin) == FOLLOWS


def test_the_sweep_brings_no_pool_to_a_site_that_was_replaced_while_it_read(twin: Twin) -> None:
    after_the_next_commit(twin, die)
    with pytest.raises(Died):
        apply.apply(twin.on, "ada", text(7, 64), "site.toml")
    before_the_next_commit(twin, lambda: apply.apply(twin.on, "bob", SECOND, "site.toml"))
    assert apply.go_on(twin.on)
    assert limits_of(twin) == FOLLOWS
    assert rollout(twin).due
    assert sum(twin.metrics.of(metrics.FAILED_NUDGES)) == 0, "that is no failure"


def dies_at_once(twin: Twin) -> None:
    """Bob applies a site, and his function ends as soon as its text is committed."""
    after_the_next_commit(twin, die)
    with suppress(Died):
        apply.apply(twin.on, "bob", SECOND, "site.toml")


def test_no_pool_is_written_as_a_site_says_that_was_replaced_just_before(twin: Twin) -> None:
    before = limits_of(twin)
    before_the_next_write_of(twin, Pool, lambda: dies_at_once(twin))
    apply.apply(twin.on, "ada", text(7, 64, mac=9), "site.toml")
    assert limits_of(twin) == before
    sweep(twin)
    assert limits_of(twin) == FOLLOWS


def test_no_pool_is_made_that_only_a_site_has_that_was_replaced_just_before(twin: Twin) -> None:
    before_the_next_write_of(twin, Pool, lambda: dies_at_once(twin), lambda pool: pool.name == "target/mac")
    apply.apply(twin.on, "ada", text(7, 64, mac=9), "site.toml")
    assert "target/mac" not in limits_of(twin)
    sweep(twin)
    assert limits_of(twin) == FOLLOWS


def test_a_site_that_is_applied_while_the_sweep_looks_at_the_last_one_is_rolled_out(twin: Twin) -> None:
    """Between its reading of the rollout and that of the site."""
    after_the_next_commit(twin, die)
    with pytest.raises(Died):
        apply.apply(twin.on, "ada", text(7, 64), "site.toml")
    after_the_next_get(twin, lambda: dies_at_once(twin))
    apply.go_on(twin.on)
    assert not rollout(twin).is_done
    sweep(twin)
    assert limits_of(twin) == FOLLOWS


def test_a_rollout_that_begins_while_the_last_one_ends_goes_on(twin: Twin) -> None:
    apply.apply(twin.on, "ada", text(7, 64), "site.toml")
    before_the_next_write_of(twin, Rollout, lambda: dies_at_once(twin))
    assert apply.go_on(twin.on)
    assert rollout(twin).due
    sweep(twin)
    assert limits_of(twin) == FOLLOWS


def test_a_rollout_that_goes_on_forgets_no_setback(twin: Twin) -> None:
    """Otherwise units that cannot be made would be tried again each time that the sweep looks at the site."""
    apply.apply(twin.on, "ada", SECOND, "site.toml")
    pool = apply.find(twin.on, "target/linux")
    twin.store.commit([Replace(pool, prewarm.failed(pool, "no such image", twin.world.now()))])
    assert apply.go_on(twin.on)
    assert apply.find(twin.on, "target/linux").setback


def test_a_request_whose_time_is_over_says_so_and_the_sweep_goes_on(
    twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(apply, "WITHIN", timedelta(0))
        assert apply.apply(twin.on, "ada", SECOND, "site.toml")[-1] == apply.GOES_ON
        assert limits_of(twin)["target/linux"] == 1
        twin.pass_time(61)
        usecases_sweep.sweep(twin.on)
        assert ("sweep", {"rollout": "site"}) in [(queue, message) for _, queue, message in twin.queues.messages]
    twin.run()
    assert limits_of(twin) == FOLLOWS


def test_stops_whose_time_is_over_follow_too(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    """A target that gets another factory carries the stop of that, and no longer the one of its last."""
    stops.stop(twin.on, "root", "factory/two", "a move")
    sweep(twin)
    sweep(twin)
    with monkeypatch.context() as patch:
        patch.setattr(stops, "_spread_to_pools", lambda *told: False)
        assert apply.apply(twin.on, "ada", text(5, 8, two="two"), "site.toml")[-1] == apply.GOES_ON
    assert not apply.find(twin.on, "target/linux").is_paused
    sweep(twin)
    assert apply.find(twin.on, "target/linux").is_paused


def test_a_pool_that_cannot_be_written_costs_only_itself_and_is_tried_again(
    twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_pool = apply.set_pool

    def fails(on: Any, name: str, *more: Any, **how: Any) -> bool:
        if name == "target/linux":
            raise OSError("no answer")
        return set_pool(on, name, *more, **how)

    with monkeypatch.context() as patch:
        patch.setattr(apply, "set_pool", fails)
        assert apply.apply(twin.on, "ada", SECOND, "site.toml")[-1] == apply.GOES_ON
        assert limits_of(twin) == FOLLOWS | {"target/linux": 1}
        sweep(twin)
        assert sum(twin.metrics.of(metrics.FAILED_NUDGES)) == 1
        assert not rollout(twin).is_done
    sweep(twin, 120)
    assert limits_of(twin) == FOLLOWS
    assert rollout(twin).is_done


def test_a_pool_that_a_list_lacked_follows_when_all_is_looked_at_once_more(
    twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index may lack what was just written, such as a target that another operator added."""
    with monkeypatch.context() as patch:
        patch.setattr(apply, "every_pool", lambda on: iter(()))
        apply.apply(twin.on, "ada", SECOND, "site.toml")
    assert limits_of(twin)["target/old"] == 3
    sweep(twin)
    assert limits_of(twin) == FOLLOWS
    assert rollout(twin).due is None


def test_what_was_set_by_hand_since_stays_until_a_site_is_applied(twin: Twin) -> None:
    apply.apply(twin.on, "ada", SECOND, "site.toml")
    twin.pass_time(1)
    apply.resize(twin.on, "quota/v", 6, "bob", "a guest")
    sweep(twin)
    assert limits_of(twin) == FOLLOWS | {"quota/v": 6}
    assert apply.apply(twin.on, "ada", SECOND, "site.toml") == ["pool quota/v: amount 6 -> amount 8"]


def test_what_was_set_by_hand_before_does_not_stay(twin: Twin) -> None:
    apply.resize(twin.on, "quota/v", 6, "bob", "a guest")
    twin.pass_time(1)
    after_the_next_commit(twin, die)
    with pytest.raises(Died):
        apply.apply(twin.on, "ada", SECOND, "site.toml")
    sweep(twin)
    assert limits_of(twin) == FOLLOWS


def test_a_site_of_a_release_before_has_no_rollout_and_needs_none(twin: Twin) -> None:
    del twin.store.rows[ROLLOUT_KEY]
    commits = twin.store.commits
    assert apply.apply(twin.on, "bob", FIRST, "site.toml") == []
    assert apply.go_on(twin.on)
    assert twin.store.commits == commits
    apply.apply(twin.on, "ada", SECOND, "site.toml")
    assert rollout(twin).due


def test_a_rollout_that_rests_is_not_gone_on_with(twin: Twin) -> None:
    assert rollout(twin).due is None
    pool = apply.find(twin.on, "target/linux")
    twin.store.commit([Replace(pool, replace(pool, limit=9))])
    assert apply.go_on(twin.on)
    assert limits_of(twin)["target/linux"] == 9


def test_a_canary_that_the_sweep_rests_while_the_site_brings_it_back_is_sent(twin: Twin) -> None:
    """The sweep read the site in which it was not."""
    apply.apply(twin.on, "ada", SECOND, "site.toml")
    apply.apply(twin.on, "ada", FIRST, "site.toml")
    before_the_next_write_of(twin, Canary, lambda: apply.apply(twin.on, "ada", SECOND, "site.toml"))
    canaries.advance(twin.on, canary_key("target/linux"))
    found = canary(twin)
    assert found
    assert found.due is None
    sweep(twin)
    sweep(twin)
    found = canary(twin)
    assert found
    assert found.due


def named(count: int, leases: int, length: int = 10) -> str:
    """A site with a resource type of so many names, of so many characters and leases each."""
    many = {"well": "locks", "names": [f"b{number:0{length - 1}}" for number in range(count)], "leases": leases}
    return site_toml(wells={"locks": "lock"}, resources={"bench": many})


@pytest.mark.parametrize(
    ("most", "above", "told"),
    [
        ((2500, 4), (2501, 4), "its names make 10004 slots; a pool may have 10000"),
        ((100, 50, 50), (100, 100, 50), f"there is room for {limits.ROW_BYTES}"),
    ],
)
def test_a_site_whose_pool_has_too_many_slots_is_refused_as_a_whole(
    twin: Twin, most: tuple[int, ...], above: tuple[int, ...], told: str
) -> None:
    """Its text may be short: each of its names stands for as many slots as it has leases."""
    assert apply.check(twin.on, named(*most), "site.toml")
    with pytest.raises(Refused) as refused:
        apply.check(twin.on, named(*above), "site.toml")
    (fault,) = refused.value.faults
    assert fault.where == "resources.bench"
    assert told in fault.message


def test_the_names_of_a_pools_slots_may_take_all_the_room_that_there_is(
    twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len('[["b0", "b1"], {}]')
    monkeypatch.setattr(limits, "ROW_BYTES", size)
    assert apply.check(twin.on, named(2, 1, 2), "site.toml")
    monkeypatch.setattr(limits, "ROW_BYTES", size - 1)
    with pytest.raises(Refused):
        apply.check(twin.on, named(2, 1, 2), "site.toml")


def test_a_site_in_force_that_has_too_many_slots_goes_on(twin: Twin) -> None:
    """A release before accepted it."""
    row = twin.store.get(SITE_KEY, SiteText)
    assert row
    twin.store.commit([Replace(row, replace(row, toml=named(2501, 4)))])
    assert current_site(twin.on).resources["bench"].limit == 2501
    assert apply.apply(twin.on, "ada", SECOND, "site.toml")


def test_two_that_begin_a_rollout_at_a_time_apply_one_after_the_other() -> None:
    """A site that was never applied has no rollout yet."""
    twin = Twin()
    before_the_next_commit(twin, lambda: apply.apply(twin.on, "bob", FIRST, "site.toml"))
    apply.apply(twin.on, "ada", SECOND, "site.toml")
    assert limits_of(twin) == FOLLOWS


def test_the_text_and_its_rollout_are_one_commit() -> None:
    twin, written = Twin(), []
    commit = twin.store.commit

    def seen(changes: Sequence[Change]) -> bool:
        written.append([change.row.kind for change in changes if isinstance(change, Create | Replace)])
        return commit(changes)

    twin.store.commit = seen  # type: ignore[method-assign]
    apply.apply(twin.on, "ada", FIRST, "site.toml")
    assert {"site", "rollout"} <= set(written[0])
