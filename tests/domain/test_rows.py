"""The four conditions, and where every kind of row is kept, listed, due and forgotten."""

from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

import pytest

from penstock.domain.artifacts.artifacts import Artifact, ArtifactState, Pin, stray
from penstock.domain.jobs.jobs import End, Job, Spec, State
from penstock.domain.jobs.members import Member
from penstock.domain.jobs.submissions import Submission
from penstock.domain.logs.logs import Batch, Watch
from penstock.domain.pools.pools import LeaseState, Pool, SlotName, SlotState
from penstock.domain.site.site import Rollout, SiteText
from penstock.domain.units.units import PREFIXES, UnitKind, UnitState, unit_in
from penstock.domain.users.users import Token, User
from penstock.kernel.rows import (
    Change,
    Check,
    Create,
    Delete,
    Due,
    Key,
    Look,
    Place,
    Replace,
    Row,
    exact_look,
    holds,
    key_of,
    next_look,
    next_version,
    shard_of,
    shards_of,
)
from tests.domain.helpers import MINUTE, NOW, claim, job, lease, pool, slot, unit

USER = User(name="ada", created=NOW)
READ = replace(USER, version=3)
MOVED = replace(USER, version=4)
BATCH = Batch(job="J1", first=7, attempt=1, lines=(), heard_of=1, heard=0, size=0)
ARTIFACT = Artifact(id="A1.J1", path="/work/a", size=1, sha256="00", by="ada", time=NOW, due=NOW)
CREATED = replace(ARTIFACT, state=ArtifactState.CREATED, due=None)
TOKEN = Token(id="t", digest="d", user="ada", created=NOW)
GONE = unit(state=UnitState.GONE, due=None)


@pytest.mark.parametrize(
    ("change", "over_nothing", "over_what_was_read", "over_what_moved"),
    [
        (Create(USER), True, False, False),
        (Replace(READ, USER), False, True, False),
        (Delete(READ), False, True, False),
        (Check(READ), False, True, False),
    ],
)
def test_a_change_holds_only_over_what_it_assumed(
    change: Change, over_nothing: bool, over_what_was_read: bool, over_what_moved: bool
) -> None:
    assert [holds(change, stored) for stored in (None, READ, MOVED)] == [
        over_nothing,
        over_what_was_read,
        over_what_moved,
    ]
    assert key_of(change) == USER.key


def test_a_replacement_stays_at_its_key() -> None:
    with pytest.raises(ValueError, match="stays at its key"):
        Replace(USER, replace(USER, name="bob"))


def test_a_row_without_a_kind_has_no_key_and_owes_nothing() -> None:
    row = Row()
    assert (row.deadline, row.place, row.expiry) == (None, None, None)
    with pytest.raises(NotImplementedError, match="Row"):
        _ = row.key


@pytest.mark.parametrize(
    ("row", "key"),
    [
        (job(), ("job#J1", "job")),
        (Spec(job="J1", path="a.sh", script=""), ("job#J1", "spec")),
        (lease(order=2, attempt=3), ("job#J1", "lease#0003#02")),
        (BATCH, ("job#J1", "event#000000000007")),
        (ARTIFACT, ("job#J1", "artifact#A1")),
        (Pin(artifact="A1.J1", by="ada", reason="", since=NOW), ("artifact#A1.J1", "pin#ada")),
        (Watch(job="J1", until=NOW), ("job#J1", "watch")),
        (pool(), ("pool#resource/bench", "pool")),
        (slot("a"), ("pool#resource/bench", "free#cold#a")),
        (slot("a", unit="w-1"), ("pool#resource/bench", "free#warm#a")),
        (slot("a", SlotState.HELD), ("pool#resource/bench", "held#a")),
        (slot("a", SlotState.OFF), ("pool#resource/bench", "off#a")),
        (SlotName(pool="resource/bench", name="a"), ("pool#resource/bench", "name#a")),
        (claim(priority=7, line="l1"), ("pool#resource/bench", "wait#l1#493#J1#0001#01")),
        (unit(), ("unit#w-1", "unit")),
        (USER, ("user#ada", "user")),
        (TOKEN, ("token#t", "token")),
        (Submission(owner="ada", key_digest="k", request_digest="r", job="J1", time=NOW), ("submission#ada", "k")),
        (Member(owner="ada", set="s-1", job="J1"), ("set#ada#s-1", "job#J1")),
        (SiteText(toml="", applied_at=NOW, applied_by="ada"), ("site", "site")),
        (Rollout(since=NOW), ("site", "rollout")),
    ],
)
def test_a_row_is_kept_at(row: Row, key: tuple[str, str]) -> None:
    assert row.key == Key(*key)


@pytest.mark.parametrize(
    ("row", "place"),
    [
        (job(), Place("jobs#ada", "J1##default,ubuntu#build")),
        (pool(), Place("pools", "resource/bench")),
        (unit(due=NOW), None),
        (unit(due=None), Place("workers", "w-1")),
        (unit(id="r-1", is_a=UnitKind.RESOURCE, due=None), Place("resources", "r-1")),
        (GONE, None),
        (USER, Place("users", "ada")),
        (TOKEN, Place("tokens#ada", "t")),
        (ARTIFACT, None),
        (CREATED, Place("artifacts", "A1.J1")),
    ],
)
def test_a_row_is_listed_in(row: Row, place: Place | None) -> None:
    assert row.place == place


@pytest.mark.parametrize(
    ("row", "due"),
    [
        (job(due=NOW), NOW),
        (job(state=State.SETTLED), None),
        (pool(due=NOW), NOW),
        (Rollout(since=NOW, due=NOW), NOW),
        (unit(), NOW),
        (CREATED, None),
        (ARTIFACT, NOW),
        (lease(state=LeaseState.WAITING), None),
    ],
)
def test_a_row_is_due_at(row: Row, due: datetime | None) -> None:
    assert row.deadline == due


@pytest.mark.parametrize(
    ("row", "expiry"),
    [
        (unit(), None),
        (GONE, NOW + timedelta(days=30)),
        (TOKEN, None),
        (replace(TOKEN, expires=NOW + MINUTE), NOW + MINUTE),
        (
            Submission(owner="a", key_digest="k", request_digest="r", job="J", time=NOW),
            NOW + timedelta(days=1),
        ),
        (Watch(job="J1", until=NOW), NOW),
    ],
)
def test_a_row_may_be_forgotten_at(row: Row, expiry: datetime | None) -> None:
    assert row.expiry == expiry


@pytest.mark.parametrize(
    ("indexed", "due", "look"),
    [
        (None, NOW, Look(NOW)),
        (Look(NOW), NOW + MINUTE, Look(NOW)),
        (Look(NOW), NOW, Look(NOW)),
        (Look(NOW + MINUTE), NOW, Look(NOW)),
        (Look(NOW, 1), NOW + MINUTE, Look(NOW + MINUTE)),  # it was nudged, so the next write is exact
        (Look(NOW + MINUTE, 1), NOW, Look(NOW)),
        (Look(NOW), None, None),
        (None, None, None),
    ],
)
def test_the_index_has_a_row_never_later_than_it_is_due(
    indexed: Look | None, due: datetime | None, look: Look | None
) -> None:
    assert next_look(pool(due=due, indexed=indexed)) == look


def test_the_index_has_whole_milliseconds() -> None:
    assert exact_look(pool(due=NOW.replace(microsecond=1999))) == Look(NOW.replace(microsecond=1000))
    assert exact_look(pool(due=None)) is None


def test_what_the_index_says_is_no_part_of_what_a_row_is() -> None:
    assert pool(indexed=Look(NOW)) == pool(indexed=None)


def test_a_row_is_in_one_of_the_shards_of_its_kind_by_its_collection() -> None:
    ids = [str(number) for number in range(100)]
    running, over = [job(id=id) for id in ids], [job(id=id, state=State.SETTLED, due=None) for id in ids]
    jobs, pools, files = (partial(shards_of, kind) for kind in (Job, Pool, Artifact))
    assert {shard_of(row) for row in running} == set(jobs(later=False)) == {f"job.{at}" for at in range(8)}
    assert {shard_of(row) for row in over} == set(jobs(later=True)) == {f"kept.{at}" for at in range(8)}
    assert [running[0].is_later, over[0].is_later, replace(over[0], due=NOW).is_later] == [False, True, False]
    assert {shard_of(pool(name=id)) for id in ids} == set(pools(later=False)) == {"pool.0"}
    assert (pools(later=True), files(later=False), len(files(later=True))) == ([], [], 4)
    assert [pool().is_later, stray("A.J", 1, NOW).is_later] == [False, True]
    assert shard_of(unit(id="w-1")) == shard_of(unit(id="w-1", due=NOW)) == "unit.0"
    assert Due(Look(NOW, 0, "unit.7"), Key("unit#w-1", "unit")).kind == "unit"


def test_an_entry_stays_in_its_shard_until_its_time_comes() -> None:
    """Also if the row belongs to another by now, and the time is the same: the write leaves the index as it is."""
    has = Look(NOW, 0, "job.3")
    for later in (timedelta(0), MINUTE):
        over = job(state=State.SETTLED, due=None, end=End(kept_until=NOW + later), indexed=has)
        assert next_look(over) is has
    assert next_look(replace(over, end=End(kept_until=NOW - MINUTE))) == Look(NOW - MINUTE)


def test_a_units_key_names_it() -> None:
    assert unit_in(unit(id="w-1").key) == "w-1"
    assert {kind: PREFIXES[kind] for kind in UnitKind} == {UnitKind.WORKER: "w-", UnitKind.RESOURCE: "r-"}


def test_a_row_that_follows_another_begins_with_a_version_of_its_own() -> None:
    """It is made of what is in the row; what it takes along from another key stays."""
    pin = Pin(artifact="A", by="ada", reason="", since=NOW)
    other = replace(pin, since=NOW + MINUTE)
    assert next_version(Create(pin)) == next_version(Create(replace(pin))) != next_version(Create(other))
    assert next_version(Create(replace(pin, version=7))) == 8
    assert next_version(Replace(replace(pin, version=7), pin)) == 8
    assert next_version(Create(BATCH)) == 1
    assert next_version(Create(replace(BATCH, version=7))) == 8
