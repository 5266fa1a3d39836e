"""A repository's user is bound to its id: who takes a name over inherits nothing. [SEC-2]"""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.github.commits import Stage
from penstock.domain.published import ALL_SERIES, Series, series_key
from penstock.domain.users.audit import Wanted
from penstock.domain.users.users import Standing, User, user_key
from penstock.kernel.errors import Refused
from penstock.testing.twin import START
from penstock.usecases.github import repositories
from penstock.usecases.users import audit, lifecycle, users
from tests.github.fake import Repo
from tests.github.payloads import check_suite, push
from tests.github.rig import CONFIG, JOBS, A, B, Rig, job

NAME, NEW = "oxide:hubris", 77


@pytest.fixture
def taken(rig: Rig) -> Rig:
    """A repository has had jobs; then it was renamed, and another has its name."""
    rig.say("push", push(A))
    rig.repo.name = "oxide/humility"
    files = {"main": {CONFIG: b"enable = true"}, B: {f"{JOBS}/build.sh": job("build")}}
    rig.fake.repos[NEW] = Repo("oxide/hubris", NEW, files, {"eve": "admin"})
    return rig


def by_another(**more: object) -> dict[str, object]:
    """A push to the one that has the name now."""
    said = push(B, sender="eve")
    return {**said, "repository": {**said["repository"], "id": NEW, **more}}


def test_the_first_commit_binds(rig: Rig) -> None:
    assert users.find(rig.on, NAME).repository_id == 0
    rig.say("push", push(A))
    assert users.find(rig.on, NAME).repository_id == 55


def test_who_takes_a_name_over_gets_nothing_and_an_operator_is_told_how_to_accept_it(taken: Rig) -> None:
    taken.say("push", by_another())
    assert [each for each in taken.all_jobs() if each.request.tags["commit"] == B] == []
    shown = taken.fake.shown("penstock")
    assert (shown["repository"], shown["conclusion"]) == (NEW, "failure")
    assert "oxide:hubris is the repository that GitHub calls 55, and this one is 77" in shown["output"]["summary"]
    assert f"`penstock github accept {NAME} {NEW}`" in shown["output"]["summary"]


def test_what_was_accepted_is_run(taken: Rig) -> None:
    taken.say("push", by_another())
    assert repositories.accept(taken.on, NAME, NEW, "root").repository_id == NEW
    again = check_suite(B, "eve")
    again["repository"] |= {"id": NEW}
    taken.say("check_suite", again)
    assert [each.owner for each in taken.all_jobs() if each.request.tags["commit"] == B] == [NAME]
    taken.repo.name = "oxide/hubris"
    taken.fake.repos[NEW].name = "oxide/else"
    taken.say("check_suite", check_suite(A, "ada"))
    assert taken.set(A).stage is Stage.SETTLED  # now the old one is the stranger


def test_a_repository_of_another_name_is_another_user(taken: Rig) -> None:
    said = push(A)
    said["repository"] |= {"full_name": "oxide/humility"}
    taken.say("push", said)
    assert taken.set(A).repository == "oxide/hubris"


def test_who_took_a_name_over_says_nothing_of_what_is_published_under_it(taken: Rig) -> None:
    taken.say("push", by_another(private=True))
    assert taken.on.store.get(series_key(NAME, ALL_SERIES), Series) is None
    said = push("c" * 40)
    said["repository"] |= {"private": True}
    taken.say("push", said)
    assert taken.on.store.get(series_key(NAME, ALL_SERIES), Series) is not None


def test_a_push_to_a_repository_that_was_removed_runs_nothing_and_says_so_once(rig: Rig) -> None:
    """An operator removed its user; GitHub knows nothing of that, and goes on to tell of pushes."""
    root = User(name="root", privileges=("admin",), created=START, version=1)
    lifecycle.disable(rig.on, root, NAME, ends_live=True)
    for _ in range(4):
        rig.later(61)
    assert lifecycle.remove(rig.on, "root", NAME).is_a(Standing.REMOVED)
    rig.say("push", push(A))
    assert (rig.set(A).stage, rig.set(A).due, rig.all_jobs()) == (Stage.SETTLED, None, [])
    shown = rig.fake.shown("penstock")
    assert shown["conclusion"] == "failure"
    assert "oxide:hubris was removed by root" in shown["output"]["summary"]
    removed = rig.on.store.get(user_key(NAME), User)
    assert removed
    assert removed.repository_id == 0, "nothing is bound to it"


@pytest.mark.parametrize(
    ("name", "id", "status"), [("ada", 1, 400), (NAME, 0, 400), (NAME, 2**53, 400), ("a:b", 1, 404)]
)
def test_what_cannot_be_accepted(rig: Rig, name: str, id: int, status: int) -> None:
    with pytest.raises(Refused) as caught:
        repositories.accept(rig.on, name, id, "root")
    assert caught.value.status == status


def test_a_name_of_no_user_is_nobody_elses(rig: Rig) -> None:
    assert repositories.may_be(rig.on, "oxide:none", NEW)


def test_what_is_revoked_while_it_is_accepted_stays_revoked(taken: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    users.change_privilege(taken.on, NAME, "target.lab", grant=True)
    note = audit.record

    def meanwhile(*told: Any) -> Any:
        monkeypatch.setattr(audit, "record", note)
        users.change_privilege(taken.on, NAME, "target.lab", grant=False)
        return note(*told)

    monkeypatch.setattr(audit, "record", meanwhile)
    assert repositories.accept(taken.on, NAME, NEW, "root").privileges == ()
    assert users.find(taken.on, NAME).privileges == ()


def test_an_acceptance_is_in_the_audit_and_twice_is_once(taken: Rig) -> None:
    for _ in range(2):
        repositories.accept(taken.on, NAME, NEW, "root")
    found, _ = audit.list_entries(taken.on, Wanted("root"), 100, "")
    assert [(each.what, each.detail) for each in found if each.did == "accept repository"] == [
        (f"user {NAME}", "55 to 77")
    ]
    users.change_privilege(taken.on, NAME, "target.lab", grant=True)
    assert users.find(taken.on, NAME).repository_id == NEW


def test_who_is_bound_keeps_what_was_changed_meanwhile_and_is_bound_once(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    users.change_privilege(rig.on, NAME, "target.lab", grant=True)
    is_of = User.is_of

    def meanwhile(user: User, id: int) -> bool:
        monkeypatch.setattr(User, "is_of", is_of)
        users.change_privilege(rig.on, NAME, "target.lab", grant=False)
        return is_of(user, id)

    monkeypatch.setattr(User, "is_of", meanwhile)
    assert isinstance(repositories.bind_owner(rig.on, NAME, 55), User)
    bound = users.find(rig.on, NAME)
    assert (bound.privileges, bound.repository_id) == ((), 55)
    assert repositories.bind_owner(rig.on, NAME, 55) == bound
    assert users.find(rig.on, NAME).version == bound.version
