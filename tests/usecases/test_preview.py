"""What applying a site would do is said before: what jobs hold and wait for, and what was changed by hand. [UNIT-1]"""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.domain.units.units import UnitKind
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases.site import apply
from penstock.usecases.site.preview import Drift, Preview, preview
from penstock.usecases.units import listing
from tests.usecases.steps import submit

LINUX = {"linux": {"limit": 2, "uses": {"cores": 4}}, "lab": {"limit": 1}}
BENCH = {"well": "locks", "names": ["a", "b"]}


def site(**other: object) -> str:
    given: dict[str, object] = {
        "factories": {"hand": "hand", "spare": "hand"},
        "targets": LINUX,
        "wells": {"locks": "lock"},
        "resources": {"bench": BENCH, "licence": {"well": "locks", "limit": 3}},
        "quotas": {"cores": 8},
    }
    return site_toml(**{**given, **other})  # type: ignore[arg-type]


@pytest.fixture
def twin() -> Twin:
    made = Twin()
    apply.apply(made.on, "ada", site(), "site.toml")
    made.run()
    return made


def look(twin: Twin, text: str) -> Preview:
    """What would come of a site; looking writes nothing."""
    rows, messages = dict(twin.store.rows), list(twin.queues.messages)
    found = preview(twin.on, text, "site.toml")
    assert (dict(twin.store.rows), list(twin.queues.messages)) == (rows, messages)
    return found


def losses(twin: Twin, text: str) -> list[str]:
    return [str(each) for each in look(twin, text).losses]


def test_what_nobody_holds_or_waits_for_is_only_a_difference(twin: Twin) -> None:
    found = look(twin, site(resources={}))
    assert [str(each) for each in found.differences] == ["- resources.bench", "- resources.licence"]
    assert (found.losses, found.drift) == ([], [])
    assert found.base == apply.tag(found.was)


def test_a_target_that_jobs_hold_and_wait_for_says_how_many(twin: Twin, ada: User) -> None:
    for _ in range(5):
        submit(twin, ada, target="linux")
    twin.run()
    assert losses(twin, site(targets={"lab": LINUX["lab"]})) == [
        "target/linux: limit 2 -> removed; 2 held, 3 waiting; "
        "those who wait get nothing, and fail at their queue deadline",
    ]
    lower = {**LINUX, "linux": {**LINUX["linux"], "limit": 1}}  # type: ignore[dict-item]
    assert losses(twin, site(targets=lower)) == ["target/linux: limit 2 -> limit 1; 2 held, 3 waiting"]
    higher = {**LINUX, "linux": {**LINUX["linux"], "limit": 3}}  # type: ignore[dict-item]
    assert losses(twin, site(targets=higher)) == losses(twin, site()) == []


def test_an_amount_that_is_used_is_lost_too(twin: Twin, ada: User) -> None:
    submit(twin, ada, target="linux")
    twin.run()
    assert losses(twin, site(quotas={"cores": 7})) == ["quota/cores: amount 8 -> amount 7; 4 held, 0 waiting"]


def test_of_named_slots_those_count_that_are_lost(twin: Twin, ada: User) -> None:
    submit(twin, ada, target="lab", resources=["bench"])
    twin.run()
    renamed = {"bench": {**BENCH, "names": ["b", "c"]}, "licence": {"well": "locks", "limit": 3}}
    assert losses(twin, site(resources=renamed)) == ["resource/bench: a, b -> b, c; 1 held, 0 waiting"]
    kept = {"bench": {**BENCH, "names": ["a", "c"]}, "licence": {"well": "locks", "limit": 3}}
    assert losses(twin, site(resources=kept)) == []
    assert losses(twin, site(resources={})) == ["resource/bench: a, b -> removed; 1 held, 0 waiting"]


def test_a_factory_or_well_is_needed_while_units_of_it_exist(twin: Twin, ada: User) -> None:
    submit(twin, ada, target="linux", resources=["bench"])
    submit(twin, ada, target="linux")
    twin.run()
    moved = {name: {**target, "factory": "spare"} for name, target in LINUX.items()}
    wells = {"others": "lock"}
    kinds = {"bench": {**BENCH, "well": "others"}, "licence": {"well": "others", "limit": 3}}
    text = site(factories={"spare": "hand"}, targets=moved, wells=wells, resources=kinds)
    assert losses(twin, text) == [
        "factory/hand: 2 units exist that nobody could destroy without it: keep it until they are gone",
        "well/locks: 1 unit exists that nobody could destroy without it: keep it until they are gone",
    ]
    assert losses(twin, site(factories={"hand": "hand"})) == []


def test_what_was_changed_by_hand_is_told_with_who_and_when(twin: Twin) -> None:
    apply.resize(twin.on, "target/linux", 7, "eve")
    twin.run()
    apply.resize(twin.on, "target/linux", 5, "bob")
    twin.pass_time(60)
    apply.pause(twin.on, "resource/licence", paused=True, by="eve")
    twin.run()
    first, second = look(twin, site()).drift
    assert first.at
    assert second.at
    assert first == Drift("target/linux", "limit 2 -> limit 5", "bob", first.at, True)
    assert second == Drift("resource/licence", "paused", "eve", second.at, False)
    assert START <= first.at < second.at - timedelta(seconds=59)
    apply.apply(twin.on, "ada", site(), "site.toml")
    twin.run()
    assert look(twin, site()).drift == [second]


def test_what_no_entry_tells_of_was_changed_by_nobody_who_is_known(twin: Twin) -> None:
    apply.pause(twin.on, "target/lab", paused=True)
    assert look(twin, site()).drift == [Drift("target/lab", "paused", "", None, False)]


def test_pools_of_a_former_site_are_no_drift(twin: Twin) -> None:
    apply.apply(twin.on, "ada", site(resources={}), "site.toml")
    twin.run()
    found = look(twin, site(resources={}))
    assert (found.differences, found.losses, found.drift) == ([], [], [])


def test_before_the_first_site_there_is_none_to_compare_with() -> None:
    found = look(Twin(), site())
    assert (found.base, found.was, found.losses, found.drift) == (apply.UNSET, None, [], [])
    assert str(found.differences[0]) == "+ factories.hand"


def test_a_site_that_cannot_be_applied_is_refused(twin: Twin) -> None:
    with pytest.raises(Refused, match=r"site.toml cannot be applied"):
        look(twin, site(targets={"linux": {"factory": "none"}}))


def test_units_are_read_only_if_their_maker_would_be_gone(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    """A site may have thousands of them."""
    read: list[UnitKind] = []
    monkeypatch.setattr(listing, "every", lambda on, kind: read.append(kind) or iter(()))
    look(twin, site(quotas={"cores": 9}))
    assert read == []
    look(twin, site(factories={"hand": "hand"}))
    assert read == [UnitKind.WORKER]
