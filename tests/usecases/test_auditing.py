"""Everything that operators do is noted: who, when, what; in the commit that does it, and without secrets. [SEC-2]"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock.domain.jobs.jobs import Outcome
from penstock.domain.pools.stops import ByHand
from penstock.domain.units.units import UnitKind, UnitState
from penstock.domain.users.audit import KEPT_FOR, Entry, Wanted
from penstock.domain.users.users import Token, User
from penstock.kernel.errors import Refused, Unsatisfiable
from penstock.kernel.rows import Change, Create
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import cancel
from penstock.usecases.site import apply
from penstock.usecases.units import maintenance, quarantine
from penstock.usecases.users import audit, privileges, tokens, users
from penstock.usecases.users.tokens import Wish
from tests.usecases.conftest import SITE
from tests.usecases.steps import finish, hello, job_of, submit, sweep, worker_of

LINUX = "target/linux"


def entries(twin: Twin) -> list[tuple[str, str, str, str]]:
    """What was done since the site was applied, in no order: what is done in one millisecond has none."""
    found = [row for row in twin.store.rows.values() if isinstance(row, Entry)]
    return sorted((each.by, each.did, each.what, each.detail) for each in found if each.by != "admin")


def test_what_is_done_with_users(twin: Twin, root: User) -> None:
    users.create(twin.on, "eve", ["b", "a"], "root")
    users.change_privilege(twin.on, "eve", "c", grant=True, by="root")
    privileges.revoke(twin.on, root, "eve", "a", at_once=False)
    secret, first = tokens.mint_first(twin.on, "eve", 60, "root")
    eve = users.authenticate(twin.on, f"Bearer {secret}")
    _, second = tokens.mint(twin.on, eve, "eve", Wish(scopes=["read"]))
    tokens.revoke(twin.on, eve, second.id)
    tokens.revoke(twin.on, eve, second.id)
    assert entries(twin) == sorted(
        [
            ("root", "create user", "user eve", "a, b"),
            ("root", "grant", "user eve", "c"),
            ("root", "revoke", "user eve", "a"),
            ("root", "make token", "user eve", f"token {first.id} for all, until 2026-01-01 00:01:00Z"),
            ("eve", "make token", "user eve", f"token {second.id} for read, until 2026-01-01 00:01:00Z"),
            ("eve", "revoke token", "user eve", f"token {second.id}"),
        ]
    )
    rows = [row for row in twin.store.rows.values() if isinstance(row, Entry)]
    digests = [row.digest for row in twin.store.rows.values() if isinstance(row, Token)]
    assert not [text for text in (secret, *digests) if text in str(rows)]


def test_what_is_done_with_the_site_and_its_pools(twin: Twin) -> None:
    apply.apply(twin.on, "root", SITE.replace("limit = 2\n[targets.default]", "limit = 3\n[targets.default]"), "s")
    apply.resize(twin.on, "target/linux", 5, "root")
    apply.pause(twin.on, "target/linux", paused=True, by="root")
    apply.pause(twin.on, "target/linux", paused=False, by="root")
    assert entries(twin) == sorted(
        [
            ("root", "apply config", "s", "targets.linux.limit: 2 -> 3"),
            ("root", "resize", "pool target/linux", "3 -> 5"),
            ("root", "pause", "pool target/linux", ""),
            ("root", "resume", "pool target/linux", ""),
        ]
    )


def test_the_reasons_of_pauses_and_limits_are_noted_and_stand_in_the_pool(twin: Twin) -> None:
    apply.resize(twin.on, LINUX, 5, "root", "two machines came")
    apply.pause(twin.on, LINUX, paused=True, by="root", reason="it is rewired")
    now = twin.world.now()
    found = apply.find(twin.on, LINUX)
    assert found.pause == ByHand("root", now, "it is rewired")
    assert found.resized == ByHand("root", now, "two machines came")
    apply.pause(twin.on, LINUX, paused=False, by="eve", reason="it works")
    assert apply.find(twin.on, LINUX).pause is None
    assert entries(twin) == sorted(
        [
            ("root", "resize", "pool target/linux", "2 -> 5: two machines came"),
            ("root", "pause", "pool target/linux", "it is rewired"),
            ("eve", "resume", "pool target/linux", "it works"),
        ]
    )
    apply.apply(twin.on, "root", SITE + "\n", "s")
    assert (apply.find(twin.on, LINUX).limit, apply.find(twin.on, LINUX).resized) == (2, None)


@pytest.mark.parametrize(
    ("by", "reason", "stands"),
    [("eve", "longer", ("eve", "longer")), ("eve", "", ("root", "first")), ("eve", "first", ("root", "first"))],
)
def test_who_pauses_a_paused_pool_changes_at_most_the_reason(
    twin: Twin, by: str, reason: str, stands: tuple[str, str]
) -> None:
    apply.pause(twin.on, LINUX, paused=True, by="root", reason="first")
    apply.pause(twin.on, LINUX, paused=True, by=by, reason=reason)
    found = apply.find(twin.on, LINUX)
    assert found.paused
    assert found.pause
    assert (found.pause.by, found.pause.reason) == stands
    assert len(entries(twin)) == 1 + (stands[0] == by)


def test_a_reason_is_one_line_and_without_it_nobody_is_asked(twin: Twin) -> None:
    before = dict(twin.store.rows)
    for wrong in ("a\nb", "\x1b[2J", "x" * 301):
        with pytest.raises(Refused, match="reason is one line"):
            apply.pause(twin.on, LINUX, paused=True, by="root", reason=wrong)
        with pytest.raises(Refused, match="reason is one line"):
            apply.resize(twin.on, LINUX, 5, "root", wrong)
    assert twin.store.rows == before
    apply.pause(twin.on, LINUX, paused=True)
    assert (apply.find(twin.on, LINUX).paused, apply.find(twin.on, LINUX).pause) == (True, None)
    apply.pause(twin.on, LINUX, paused=True, by="root", reason="now there is one")
    assert apply.find(twin.on, LINUX).pause == ByHand("root", twin.world.now(), "now there is one")


def test_what_is_done_with_units(twin: Twin, ada: User, root: User) -> None:
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    unit = worker_of(twin, job).id
    maintenance.hold(twin.on, root, UnitKind.WORKER, unit, "a look", 60)
    maintenance.release(twin.on, root, UnitKind.WORKER, unit)
    maintenance.drain(twin.on, root, UnitKind.WORKER, unit, "old")
    maintenance.recycle(twin.on, root, UnitKind.WORKER, unit, "broken")
    assert entries(twin) == sorted(
        [
            ("root", "hold", f"worker {unit}", "for 60 s: a look"),
            ("root", "release", f"worker {unit}", ""),
            ("root", "drain", f"worker {unit}", "old"),
            ("root", "recycle", f"worker {unit}", "broken"),
        ]
    )


def test_what_is_removed_by_hand(twin: Twin, ada: User, root: User) -> None:
    twin.drivers.hand.stuck = Unsatisfiable("it does not go")
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    finish(twin, job)
    for _ in range(9):
        sweep(twin, 900)
    unit = worker_of(twin, job)
    assert unit.state is UnitState.QUARANTINED
    quarantine.confirm_removed(twin.on, root, UnitKind.WORKER, unit.id, "sold")
    assert entries(twin) == [("root", "remove", f"worker {unit.id}", "sold")]


@pytest.mark.usefixtures("by_flow")
def test_cancelling_anothers_job_is_noted_and_ones_own_is_not(twin: Twin, ada: User, root: User) -> None:
    mine, hers = submit(twin, ada), submit(twin, ada)
    cancel.cancel(twin.on, ada, mine)
    cancel.cancel(twin.on, root, hers)
    cancel.cancel(twin.on, root, hers)
    twin.run()
    assert job_of(twin, hers).end.outcome is Outcome.CANCELLED
    assert entries(twin) == [("root", "cancel", f"job {hers}", "of ada")]


def test_what_changes_nothing_is_not_noted(twin: Twin) -> None:
    users.create(twin.on, "eve", [], "root")
    before = entries(twin)
    with pytest.raises(Refused):
        users.create(twin.on, "eve", [], "root")
    users.change_privilege(twin.on, "eve", "a", grant=False, by="root")
    apply.apply(twin.on, "root", SITE, "site.toml")
    apply.pause(twin.on, "target/linux", paused=False, by="root")
    assert entries(twin) == before


DEEDS: dict[str, Callable[[Twin], object]] = {
    "create user": lambda twin: users.create(twin.on, "ben", [], "root"),
    "grant": lambda twin: users.change_privilege(twin.on, "eve", "c", grant=True, by="root"),
    "revoke": lambda twin: users.change_privilege(twin.on, "eve", "a", grant=False, by="root"),
    "make token": lambda twin: tokens.mint_first(twin.on, "eve", "never", "root"),
    "apply config": lambda twin: apply.apply(twin.on, "root", SITE + "\n", "s"),
    "resize": lambda twin: apply.resize(twin.on, "target/linux", 5, "root"),
    "pause": lambda twin: apply.pause(twin.on, "target/linux", paused=True, by="root"),
}


@pytest.mark.parametrize("deed", DEEDS)
def test_what_is_done_and_that_it_was_are_one_commit(twin: Twin, monkeypatch: pytest.MonkeyPatch, deed: str) -> None:
    users.create(twin.on, "eve", ["a"])
    seen: list[list[Change]] = []
    commit = twin.store.commit

    def watched(changes: list[Change]) -> bool:
        seen.append(list(changes))
        return commit(changes)

    monkeypatch.setattr(twin.store, "commit", watched)
    DEEDS[deed](twin)
    noted = [
        (len(changes), change.row.did)
        for changes in seen
        for change in changes
        if isinstance(change, Create) and isinstance(change.row, Entry)
    ]
    assert noted == [(3 if deed == "apply config" else 2, deed)]  # a site's rollout begins with it


def test_entries_are_listed_by_page_by_user_and_by_time(twin: Twin) -> None:
    for at in range(5):
        users.create(twin.on, f"u{at}", [], "root" if at % 2 else "ann")
        twin.world.time += timedelta(hours=1)
    first, page = audit.list_entries(twin.on, Wanted(), 2, "")
    assert [each.what for each in first] == ["user u4", "user u3"]
    second, _ = audit.list_entries(twin.on, Wanted(), 2, page or "")
    assert [each.what for each in second] == ["user u2", "user u1"]
    by_ann, page = audit.list_entries(twin.on, Wanted("ann"), 100, "")
    assert ([each.what for each in by_ann], page) == (["user u4", "user u2", "user u0"], None)
    late, page = audit.list_entries(twin.on, Wanted(since=first[1].at), 100, "")
    assert ([each.what for each in late], page) == (["user u4", "user u3"], None)
    assert audit.list_entries(twin.on, Wanted("nobody"), 100, "") == ([], None)
    early, page = audit.list_entries(twin.on, Wanted(until=second[0].at), 1, "")
    assert [each.what for each in early] == ["user u1"]
    early, page = audit.list_entries(twin.on, Wanted(until=second[0].at), 100, page or "")
    assert ([each.what for each in early][:1], page) == (["user u0"], None)
    assert audit.list_entries(twin.on, Wanted(until=datetime(1, 1, 1, tzinfo=UTC)), 100, "") == ([], None)


def test_entries_are_listed_by_what_was_done_and_to_what(twin: Twin) -> None:
    for name in (LINUX, "target/lab"):
        twin.world.time += timedelta(seconds=1)
        apply.pause(twin.on, name, paused=True, by="root")
    twin.world.time += timedelta(seconds=1)
    apply.pause(twin.on, LINUX, paused=False, by="eve")

    def found(wanted: Wanted) -> list[tuple[str, str]]:
        return [(each.did, each.what) for each in audit.list_entries(twin.on, wanted, 100, "")[0]]

    assert found(Wanted(did="pause")) == [("pause", "pool target/lab"), ("pause", f"pool {LINUX}")]
    assert found(Wanted(what="pool target/li")) == [("resume", f"pool {LINUX}"), ("pause", f"pool {LINUX}")]
    assert found(Wanted(what="target/li")) == []
    assert found(Wanted(did="pause", what=f"pool {LINUX}", who="eve")) == []
    assert found(Wanted(did="resume", what=f"pool {LINUX}", who="eve")) == [("resume", f"pool {LINUX}")]


def test_what_ends_before_it_begins_is_refused(twin: Twin) -> None:
    for until in (START, START - timedelta(seconds=1)):
        with pytest.raises(Refused, match="until must be later than since"):
            audit.list_entries(twin.on, Wanted(since=START, until=until), 100, "")


def test_one_page_reads_so_many_entries_at_most(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be empty and have a next one, whatever is asked for."""
    monkeypatch.setattr(audit, "SCANNED", 20)
    monkeypatch.setattr(audit, "READ", 10)
    for at in range(45):
        twin.world.time += timedelta(seconds=1)
        users.create(twin.on, f"u{at}", [], "root")
    for wanted in (Wanted("eve"), Wanted(did="pause"), Wanted(what="pool "), Wanted(until=twin.world.time, did="pin")):
        asked = count_reads(twin, monkeypatch)
        found, page = audit.list_entries(twin.on, wanted, 100, "")
        assert (found, page is not None, sum(asked)) == ([], True, 20)


def count_reads(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many entries each read of the log gives, from now on."""
    counted: list[int] = []
    listed = type(twin.store).listed

    def counting(*given: Any, **more: Any) -> Any:
        rows = listed(twin.store, *given, **more)
        counted.append(len(rows))
        return rows

    monkeypatch.setattr(twin.store, "listed", counting)
    return counted


def test_a_filtered_page_looks_at_so_many_and_goes_on_from_there(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "SCANNED", 2)
    monkeypatch.setattr(audit, "READ", 2)
    for at in range(5):
        twin.world.time += timedelta(seconds=1)
        users.create(twin.on, f"u{at}", [], "root" if at else "ann")
    found, page = audit.list_entries(twin.on, Wanted("ann"), 100, "")
    assert found == []
    pages = 1
    while page:
        more, page = audit.list_entries(twin.on, Wanted("ann"), 100, page)
        found, pages = [*found, *more], pages + 1
    assert ([each.what for each in found], pages) == (["user u0"], 4)


def test_a_long_detail_is_clipped_and_an_entry_expires() -> None:
    twin = Twin()
    (change,) = audit.record(twin.on, [Create(User(name="x", created=START))], "root", "pin", "what", "y" * 5000)[1:]
    assert isinstance(change, Create)
    entry = change.row
    assert isinstance(entry, Entry)
    assert entry.detail == "y" * 997 + "..."
    assert entry.expiry == entry.at + KEPT_FOR
    assert audit.record(twin.on, [], "root", "pin", "what") == []
