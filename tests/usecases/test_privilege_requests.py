"""Users ask for privileges, and operators grant or refuse. [SEC-2]"""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.domain.users.audit import Wanted
from penstock.domain.users.requests import PrivilegeRequest
from penstock.domain.users.users import PRIORITY, User
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Create
from penstock.testing.twin import START, Twin
from penstock.usecases.users import audit, requests, users
from tests.usecases.races import before_the_next_commit

LAB, WHY = "target.lab", "the new boards"


@pytest.fixture
def eve(twin: Twin) -> User:
    for name in ("eve", "oxide:hubris"):
        users.create(twin.on, name, [])
    return users.find(twin.on, "eve")


def deeds(twin: Twin) -> list[tuple[str, str, str]]:
    return [(each.did, each.what, each.detail) for each in audit.list_entries(twin.on, Wanted(), 10, "")[0]]


def test_an_operator_grants_what_somebody_asked_for(twin: Twin, eve: User, root: User) -> None:
    asked = requests.ask(twin.on, eve, LAB, WHY)
    assert (asked.user, asked.by, asked.is_open) == ("eve", "eve", True)
    assert requests.list_requests(twin.on, root, everybody=True) == [asked.__class__(**{**vars(asked), "version": 1})]
    users.change_privilege(twin.on, "eve", LAB, grant=True, by="root")
    assert users.find(twin.on, "eve").may(LAB)
    assert requests.list_requests(twin.on, root, everybody=True) == []
    (mine,) = requests.list_requests(twin.on, eve, everybody=False)
    assert (mine.is_granted, mine.decided_by, mine.decided) == (True, "root", twin.world.now())
    assert deeds(twin)[0] == ("grant", "user eve", LAB)


def test_an_operator_refuses_and_says_why(twin: Twin, eve: User, root: User) -> None:
    requests.ask(twin.on, eve, LAB, WHY)
    twin.pass_time(3600)
    requests.refuse(twin.on, root, "eve", LAB, "ask again in May")
    (mine,) = requests.list_requests(twin.on, eve, everybody=False)
    assert (mine.is_granted, mine.decided_by, mine.answer) == (False, "root", "ask again in May")
    assert deeds(twin)[0] == ("refuse", "user eve", f"{LAB}: ask again in May")
    with pytest.raises(Refused, match="root refused it already") as refused:
        requests.refuse(twin.on, root, "eve", LAB, "no")
    assert refused.value.status == 409
    assert mine.expiry == twin.world.now() + timedelta(days=30)


def test_who_asks_again_says_the_reason_anew(twin: Twin, eve: User, root: User) -> None:
    requests.ask(twin.on, eve, LAB, WHY)
    requests.refuse(twin.on, root, "eve", LAB, "no")
    again = requests.ask(twin.on, eve, LAB, "they are here now")
    (found,) = requests.list_requests(twin.on, root, everybody=True)
    assert (found.reason, found.is_open) == (again.reason, True)
    assert found.expiry == found.since + timedelta(days=30)
    requests.ask(twin.on, eve, PRIORITY, "a release")
    users.change_privilege(twin.on, "eve", LAB, grant=True, by="root")
    with pytest.raises(Refused, match="root granted it already"):
        requests.refuse(twin.on, root, "eve", LAB, "no")
    assert [row.privilege for row in requests.list_requests(twin.on, root, everybody=True)] == [PRIORITY]


def test_for_a_repository_asks_who_may_act_for_it(twin: Twin, eve: User, root: User) -> None:
    with pytest.raises(Refused) as refused:
        requests.ask(twin.on, eve, LAB, WHY, "oxide:hubris")
    assert refused.value.status == 403
    users.change_privilege(twin.on, "eve", "as.oxide:hubris", grant=True, by="root")
    found = requests.ask(twin.on, users.find(twin.on, "eve"), LAB, WHY, "oxide:hubris")
    assert (found.user, found.by) == ("oxide:hubris", "eve")
    eve = users.find(twin.on, "eve")
    assert [row.user for row in requests.list_requests(twin.on, eve, everybody=False)] == ["oxide:hubris"]


@pytest.mark.parametrize("privileges", [("as",), ("admin",), ("as.oxide:hubris",)])
def test_of_a_repository_only_what_one_asked_oneself_is_ones_own(
    twin: Twin, eve: User, privileges: tuple[str, ...]
) -> None:
    del eve
    asked = User(name="amy", created=START, version=1, privileges=privileges)
    other = User(name="bob", created=START, version=1, privileges=privileges)
    for name, by in (("oxide:hubris", "amy"), ("oxide:hubris", "bob"), ("amy", "amy"), ("zoe", "zoe")):
        row = PrivilegeRequest(user=name, privilege=f"for.{by}", reason=WHY, by=by, since=twin.world.now())
        assert twin.on.store.commit([Create(row)])
    assert {row.privilege for row in requests.list_requests(twin.on, asked, everybody=False)} == {"for.amy"}
    assert {row.user for row in requests.list_requests(twin.on, asked, everybody=False)} == {"oxide:hubris", "amy"}
    assert {row.user for row in requests.list_requests(twin.on, other, everybody=False)} == {"oxide:hubris"}


def test_of_a_repository_that_one_may_not_act_for_any_more_nothing_is_ones_own(twin: Twin) -> None:
    """Whatever else one may."""
    row = PrivilegeRequest(user="oxide:hubris", privilege=LAB, reason=WHY, by="amy", since=twin.world.now())
    assert twin.on.store.commit([Create(row)])
    amy = User(name="amy", created=START, version=1, privileges=("oxide:hubris", "as.oxide:other"))
    assert requests.list_requests(twin.on, amy, everybody=False) == []


def test_who_may_not_act_for_all_reads_nothing_of_others(
    twin: Twin, eve: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests.ask(twin.on, eve, LAB, WHY)
    monkeypatch.setattr(twin.on.store, "listed", lambda *_, **__: pytest.fail("it reads the requests of everybody"))
    assert [row.user for row in requests.list_requests(twin.on, eve, everybody=False)] == ["eve"]


@pytest.mark.parametrize(
    ("privilege", "reason", "status", "said"),
    [
        (LAB, " ", 400, "say why"),
        (LAB, "x" * 501, 400, "1 to 500 characters"),
        ("target.lob", WHY, 422, "did you mean 'target.lab'"),
        ("admin", WHY, 422, "there are: priority, target.lab"),
    ],
)
def test_what_cannot_be_asked_for(twin: Twin, eve: User, privilege: str, reason: str, status: int, said: str) -> None:
    with pytest.raises(Refused, match=said) as refused:
        requests.ask(twin.on, eve, privilege, reason)
    assert refused.value.status == status
    assert refused.value.faults
    assert requests.list_requests(twin.on, eve, everybody=False) == []


def test_who_had_another_name_sees_what_was_asked_for_then(twin: Twin, eve: User) -> None:
    requests.ask(twin.on, eve, LAB, "x" * 500)
    eva = User(name="eva", created=START, version=1, former=("eve",))
    assert [row.user for row in requests.list_requests(twin.on, eva, everybody=False)] == ["eve"]


def test_a_grant_after_a_refusal_counts_and_the_first_grant_stands(twin: Twin, eve: User, root: User) -> None:
    requests.ask(twin.on, eve, LAB, WHY)
    requests.refuse(twin.on, root, "eve", LAB, "no")
    users.change_privilege(twin.on, "eve", LAB, grant=True, by="root")
    (first,) = requests.list_requests(twin.on, eve, everybody=False)
    twin.pass_time(60)
    users.change_privilege(twin.on, "eve", LAB, grant=True, by="root")
    assert requests.list_requests(twin.on, eve, everybody=False) == [first]
    assert first.is_granted


def test_a_revocation_decides_no_request(twin: Twin, eve: User, root: User) -> None:
    requests.ask(twin.on, eve, LAB, WHY)
    users.change_privilege(twin.on, "eve", LAB, grant=False, by="root")
    assert [row.user for row in requests.list_requests(twin.on, root, everybody=True)] == ["eve"]


def test_of_two_who_decide_the_second_sees_what_the_first_did(twin: Twin, eve: User, root: User) -> None:
    requests.ask(twin.on, eve, LAB, WHY)
    before_the_next_commit(twin, lambda: users.change_privilege(twin.on, "eve", LAB, grant=True, by="ada"))
    with pytest.raises(Refused, match="ada granted it already"):
        requests.refuse(twin.on, root, "eve", LAB, "no")
    requests.ask(twin.on, eve, PRIORITY, WHY)
    before_the_next_commit(twin, lambda: requests.ask(twin.on, eve, PRIORITY, "today"))
    users.change_privilege(twin.on, "eve", PRIORITY, grant=True, by="root")
    assert {row.reason for row in requests.list_requests(twin.on, eve, everybody=False)} == {WHY, "today"}


def test_what_is_held_already_and_what_others_ask(twin: Twin, eve: User, root: User) -> None:
    with pytest.raises(Refused, match=r"has the privilege 'target\.lab' already") as refused:
        requests.ask(twin.on, root, LAB, WHY)
    assert refused.value.status == 409
    requests.ask(twin.on, eve, LAB, WHY)
    bob = User(name="bob", created=START, version=1)
    assert requests.list_requests(twin.on, bob, everybody=False) == []
    with pytest.raises(Refused) as refused:
        requests.list_requests(twin.on, bob, everybody=True)
    assert refused.value.status == 403
    with pytest.raises(Refused, match=r"there is no request 'bob for target\.lab'"):
        requests.refuse(twin.on, root, "bob", LAB, "no")
