"""What an operator sets: what is told of it, what is asked for, and what another operator said meanwhile. [SLOT-1]"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from penstock.domain.pools.pools import Pool, pool_key
from penstock.domain.site import keys
from penstock.domain.site.site import SITE_KEY, Rollout, Shape, SiteText
from penstock.domain.users.audit import Wanted
from penstock.kernel import limits
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Create, Replace
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases.site import apply as site_apply
from penstock.usecases.users import audit
from tests import whole_site
from tests.usecases.races import before_the_next_commit, before_the_next_get

SITE = site_toml(
    targets={"linux": {"limit": 2}},
    wells={"locks": "lock"},
    resources={"bench": {"well": "locks", "names": ["bench-1"]}, "licence": {"well": "locks", "limit": 2}},
    quotas={"cores": 8},
)


@pytest.fixture
def twin() -> Twin:
    made = Twin()
    site_apply.apply(made.on, "ada", SITE, "site.toml")
    made.run()
    return made


def apply(twin: Twin, toml: str, by: str = "ada") -> list[str]:
    return site_apply.apply(twin.on, by, toml, "site.toml")


def pool_of(twin: Twin, name: str) -> Pool:
    return site_apply.find(twin.on, name)


def test_warm_units_are_refused_for_a_driver_that_cannot_reuse_them(twin: Twin) -> None:
    with pytest.raises(Refused) as told:
        apply(twin, SITE.replace('"locks"\nlimit = 2', '"locks"\nlimit = 2\nwarm = { max = 1 }'))
    assert ["keeps nothing" in fault.message for fault in told.value.faults] == [True]
    apply(twin, SITE.replace('"hand"\nlimit = 2', '"hand"\nlimit = 2\nwarm = { max = 1 }'))


def test_what_differs_between_two_sites_is_told_and_nothing_else(twin: Twin) -> None:
    after = SITE.replace("licence", "scope").replace("amount = 8", "amount = 9") + "[limits]\nlease = 110\n"
    assert [told for told in apply(twin, after) if not told.startswith("pool")] == [
        "+ resources.scope", "- resources.licence", "quotas.cores.amount: 8 -> 9",
        "limits.lease: 120 (default) -> 110",
    ]  # fmt: skip


@pytest.mark.parametrize(("path", "value"), whole_site.keys())
def test_every_key_that_changes_is_told_and_recorded(
    monkeypatch: pytest.MonkeyPatch, path: tuple[str, ...], value: object
) -> None:
    """Of any table: for a long time a change of [retention] was told as nothing, though files are deleted by it."""
    for check in ("_driver_faults", "_host_faults"):
        monkeypatch.setattr(site_apply, check, lambda *given: ())
    twin = Twin()
    apply(twin, whole_site.FULL)
    (told, *_) = apply(twin, whole_site.changed(path, value), by="bob")
    assert told.lstrip("+- ").startswith(f"{'.'.join(path)}: ")
    (entry, _), _ = audit.list_entries(twin.on, Wanted(), 10, "")
    assert (entry.by, entry.did, entry.detail) == ("bob", "apply config", told)


def test_a_text_that_only_reads_differently_is_recorded_as_that(twin: Twin) -> None:
    assert apply(twin, f"# mine\n{SITE}") == []
    entry, *_ = audit.list_entries(twin.on, Wanted(), 10, "")[0]
    assert entry.detail == site_apply.ONLY_TEXT


def test_what_was_agreed_to_is_applied_to_the_site_that_was_shown(twin: Twin) -> None:
    """Somebody else applies theirs while an operator looks at what theirs would change."""
    seen = site_apply.tag(twin.store.get(SITE_KEY, SiteText))
    other = SITE.replace("amount = 8", "amount = 5")
    assert site_apply.apply(twin.on, "ada", other, "site.toml", seen)[0] == "quotas.cores.amount: 8 -> 5"
    commits = twin.store.commits
    with pytest.raises(Refused, match="ada applied another one on 2026-01-01 at 00:00:") as told:
        site_apply.apply(twin.on, "bob", SITE, "site.toml", seen)
    assert (told.value.status, told.value.code, twin.store.commits) == (412, "site-changed", commits)


def test_somebody_who_applies_theirs_just_before_the_commit_is_noticed(twin: Twin) -> None:
    seen = site_apply.tag(twin.store.get(SITE_KEY, SiteText))
    before_the_next_commit(twin, lambda: apply(twin, SITE.replace("amount = 8", "amount = 5"), by="bob"))
    with pytest.raises(Refused, match="bob applied another one"):
        site_apply.apply(twin.on, "ada", SITE + "# mine\n", "site.toml", seen)


def test_a_first_site_is_applied_to_none() -> None:
    twin = Twin()
    with pytest.raises(Refused, match="there is none any more"):
        site_apply.apply(twin.on, "ada", SITE, "site.toml", "0" * 32)
    assert site_apply.apply(twin.on, "ada", SITE, "site.toml", site_apply.UNSET)
    with pytest.raises(Refused):
        site_apply.apply(twin.on, "ada", SITE + "# mine\n", "site.toml", site_apply.UNSET)


def test_who_asks_again_because_the_answer_was_lost_is_told_nothing_changed(twin: Twin) -> None:
    seen = site_apply.tag(twin.store.get(SITE_KEY, SiteText))
    other = SITE.replace("amount = 8", "amount = 5")
    site_apply.apply(twin.on, "ada", other, "site.toml", seen)
    assert site_apply.apply(twin.on, "ada", other, "site.toml", seen) == []


def test_a_site_may_take_all_the_room_that_there_is(twin: Twin) -> None:
    full = SITE + "#"
    left = limits.ROW_BYTES - len(json.dumps(full))
    full += '"' * (left // 2) + "#" * (left % 2)
    assert apply(twin, full) == []
    with pytest.raises(Refused, match="there is room for"):
        apply(twin, full + "#")


def test_applying_the_same_site_again_writes_nothing_and_calls_nothing(twin: Twin) -> None:
    commits = twin.store.commits
    assert apply(twin, SITE, by="bob") == []
    assert (twin.store.commits, list(twin.queues.messages)) == (commits, [])


Moment = Callable[[Twin, Callable[[], object]], None]
BETWEEN = pytest.mark.parametrize(
    "moment",
    [lambda twin, act: before_the_next_get(twin, Rollout, act), before_the_next_commit],
    ids=["before the rollout is read", "before the commit"],
)
"""When another operator applies theirs: the site has been read."""


@BETWEEN
def test_what_is_told_compares_with_the_site_that_was_replaced(twin: Twin, moment: Moment) -> None:
    """Another operator applied theirs in between; theirs is replaced, and that is told."""
    other = SITE.replace("amount = 8", "amount = 5")
    moment(twin, lambda: apply(twin, other, by="bob"))
    told = apply(twin, SITE + "# mine\n")
    assert told == ["quotas.cores.amount: 5 -> 8", "pool quota/cores: amount 5 -> amount 8"]


@BETWEEN
def test_the_second_of_two_concurrent_first_sites_is_compared_with_the_first(moment: Moment) -> None:
    twin = Twin()
    moment(twin, lambda: apply(twin, SITE, by="bob"))
    assert apply(twin, SITE + "# mine\n") == []
    row = twin.store.get(SITE_KEY, SiteText)
    assert row
    assert row.applied_by == "ada"


def test_what_became_of_the_pools_is_told_in_words(twin: Twin) -> None:
    changed = (
        SITE.replace('names = ["bench-1"]', 'names = ["bench-1", "bench-2"]')
        .replace('"hand"\nlimit = 2', '"hand"\nlimit = 3\nwarm = { max = 2 }')
        .replace("[quotas.cores]\namount = 8", "[quotas.memory]\namount = 7")
    )
    assert [told for told in apply(twin, changed) if told.startswith("pool")] == [
        "pool target/linux: limit 2 -> limit 3, up to 2 kept warm",
        "pool resource/bench: bench-1 -> bench-1, bench-2",
        "pool quota/memory: new -> amount 7",
        "pool quota/cores: amount 8 -> amount 0",
    ]
    twin.run()
    assert pool_of(twin, "quota/cores").limit == 0
    without = changed.replace('[resources.bench]\nwell = "locks"\nnames = ["bench-1", "bench-2"]\n', "")
    assert apply(twin, without)[1:] == ["pool resource/bench: bench-1, bench-2 -> limit 0"]


def test_a_resize_that_is_not_done_is_asked_for_again_and_not_told_again(twin: Twin) -> None:
    """QUEUE-1: the message that asked for it may have been lost."""
    site_apply.set_pool(twin.on, "quota/cores", Shape(8, None, True, None))
    twin.queues.messages.clear()
    assert apply(twin, SITE) == []
    assert [message for _, _, message in twin.queues.messages] == [{"do": "resize", "pool": "quota/cores"}]


def numbered(limit: int) -> Shape:
    return Shape(limit, None, False, None)


def test_more_may_be_held_than_the_limit_from_when_it_is_lowered_until_the_slots_are_fit(twin: Twin) -> None:
    name = "resource/licence"
    over = []
    for limit in (2, 3, 1, 2):
        site_apply.set_pool(twin.on, name, numbered(limit))
        over.append(pool_of(twin, name).over)
    assert over == [False, False, True, True]
    twin.run()
    assert not pool_of(twin, name).over


def test_an_amount_is_never_over_for_its_use_says_so_itself(twin: Twin) -> None:
    site_apply.resize(twin.on, "quota/cores", 1)
    assert not pool_of(twin, "quota/cores").over


@pytest.mark.parametrize(("name", "most"), [("quota/cores", keys.MAX_AMOUNT), ("resource/licence", keys.MAX_SLOTS)])
def test_a_limit_has_a_bound(twin: Twin, name: str, most: int) -> None:
    assert site_apply.resize(twin.on, name, most).limit == most
    assert site_apply.resize(twin.on, name, 0).limit == 0
    for wrong in (most + 1, -1):
        with pytest.raises(Refused, match=f"from 0 to {most}"):
            site_apply.resize(twin.on, name, wrong)


def test_who_pauses_while_another_resizes_is_heard(twin: Twin) -> None:
    before_the_next_commit(twin, lambda: site_apply.pause(twin.on, "quota/cores", paused=True))
    assert site_apply.resize(twin.on, "quota/cores", 4).paused


def test_who_resizes_while_another_pauses_is_heard(twin: Twin) -> None:
    before_the_next_commit(twin, lambda: site_apply.resize(twin.on, "quota/cores", 4))
    assert site_apply.pause(twin.on, "quota/cores", paused=True).limit == 4


def test_a_pool_that_two_create_is_what_became_of_the_first(twin: Twin) -> None:
    def first() -> None:
        site_apply.set_pool(twin.on, "quota/new", Shape(3, None, True, None))
        site_apply.pause(twin.on, "quota/new", paused=True)

    before_the_next_commit(twin, first)
    site_apply.set_pool(twin.on, "quota/new", Shape(4, None, True, None))
    found = pool_of(twin, "quota/new")
    assert (found.limit, found.paused) == (4, True)


def test_a_pool_of_a_site_that_is_in_force_no_longer_is_not_made(twin: Twin) -> None:
    """Nor is it tried to write it: that would be refused until all tries are over."""
    old = twin.store.get(SITE_KEY, SiteText)
    site_apply.apply(twin.on, "ada", SITE + "# another\n", "site.toml")
    before = twin.store.commits
    assert not site_apply.set_pool(twin.on, "quota/new", Shape(3, None, True, None), of=old)
    assert twin.store.commits == before
    assert twin.store.get(pool_key("quota/new"), Pool) is None


def test_pausing_twice_writes_once_and_asks_each_time_for_who_may_go_first_now(twin: Twin) -> None:
    for paused, commits, asked in ((True, 1, 1), (True, 0, 2), (False, 1, 3), (False, 0, 4)):
        before = twin.store.commits
        assert site_apply.pause(twin.on, "quota/cores", paused=paused).paused is paused
        assert (twin.store.commits - before, len(twin.queues.messages)) == (commits, asked)


@pytest.mark.parametrize(("paused", "asks"), [(True, "resize"), (False, "serve")])
def test_who_resumes_a_pool_has_it_served_and_not_measured_anew(twin: Twin, paused: bool, asks: str) -> None:
    """Paused, others may go first where its claims wait besides; resumed, it is its own claims' turn, at once."""
    site_apply.pause(twin.on, "quota/cores", paused=not paused)
    twin.queues.messages.clear()
    site_apply.pause(twin.on, "quota/cores", paused=paused)
    ((_, _, message),) = twin.queues.messages
    assert (message["do"], message.get("pools", [message.get("pool")])) == (asks, ["quota/cores"])


def test_the_longest_name_is_found(twin: Twin) -> None:
    name = "quota/" + "a" * (site_apply.NAME_CHARS - 6)
    assert twin.store.commit([Create(Pool(name=name, is_amount=True, limit=1)), Create(Pool(name=name + "a", limit=1))])
    assert site_apply.find(twin.on, name).limit == 1
    with pytest.raises(Refused):
        site_apply.find(twin.on, name + "a")


def test_a_lost_race_is_run_again_and_what_is_decided_then_is_committed(twin: Twin) -> None:
    was = pool_of(twin, "quota/cores")
    before_the_next_commit(twin, lambda: twin.store.commit([Replace(was, replace(was, broken=1))]))
    site_apply.pause(twin.on, "quota/cores", paused=True)
    found = twin.store.get(pool_key("quota/cores"), Pool)
    assert found
    assert (found.paused, found.broken) == (True, 1)


def test_what_a_driver_finds_wrong_with_its_settings_is_said_with_their_table(
    twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        twin.drivers, "complaints", lambda kind, driver, settings: ["no region"] if kind == "well" else []
    )
    with pytest.raises(Refused) as told:
        apply(twin, SITE)
    assert [(fault.message, fault.where) for fault in told.value.faults] == [("no region", "wells.locks")]
