"""What may follow what in a user's life, and how far the sweep has come. [SEC-2]"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.domain.users import lifecycle
from penstock.domain.users.lifecycle import IN_FLIGHT, LIVE, WATCHED_EVERY
from penstock.domain.users.users import (
    FORMER,
    Revoked,
    Standing,
    Status,
    User,
    Withdrawal,
    explain_denial,
    explain_status,
)
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Look, Place
from tests.domain.helpers import MINUTE, NOW, SECOND

EVE = User(name="eve", privileges=("target.lab",), created=NOW, version=3)


def user(**changes: Any) -> User:
    return replace(EVE, **changes)


def disabled(**changes: Any) -> User:
    found = lifecycle.disable(user(former=("eva",)), "root", NOW, ends_live=False)
    assert found.withdrawal
    return replace(found, withdrawal=replace(found.withdrawal, **changes))


def code(call: Any, *given: Any, **named: Any) -> str:
    with pytest.raises(Refused) as found:
        call(*given, **named)
    return found.value.code


def test_a_disabled_user_is_due_at_once_and_all_names_are_looked_at() -> None:
    found = lifecycle.disable(user(former=("eva",)), "root", NOW, ends_live=True)
    assert found.status == Status(Standing.DISABLED, "root", NOW)
    assert found.withdrawal == Withdrawal(("eve", "eva"), True)
    assert (found.due, found.deadline) == (NOW, NOW)
    assert found.place == Place("users", "eve")


def test_disabling_again_keeps_since_when_and_looks_anew() -> None:
    again = lifecycle.disable(disabled(names=(), is_last=True, live=("j",)), "ben", NOW + MINUTE, ends_live=True)
    assert again.status == Status(Standing.DISABLED, "root", NOW)
    assert again.withdrawal == Withdrawal(("eve", "eva"), True)
    assert again.due == NOW + MINUTE


def test_nobody_disables_themselves() -> None:
    assert code(lifecycle.disable, user(), "eve", NOW, ends_live=True) == "own-user"


def test_who_is_enabled_is_as_before() -> None:
    assert lifecycle.enable(lifecycle.disable(user(), "root", NOW, ends_live=True)) == user()


def test_a_renamed_user_leaves_a_name_that_leads_to_the_new_one() -> None:
    former, now = lifecycle.rename(user(former=("eva",)), "evi", "root", NOW)
    assert (now.name, now.former, now.names) == ("evi", ("eve", "eva"), ("evi", "eve", "eva"))
    assert (now.privileges, now.status, now.version, now.due) == (("target.lab",), None, 0, None)
    assert former.status == Status(Standing.RENAMED, "root", NOW, to="evi")
    assert (former.privileges, former.due, former.place) == ((), NOW, Place(FORMER, "eve"))
    again = lifecycle.follow(former, "evo")
    assert again.status
    assert again.status.to == "evo"
    assert lifecycle.follow(user(), "evo") == user()


def test_a_name_without_rights_has_no_history_and_its_next_look_is_exact() -> None:
    """The index would else keep an earlier time of the row that was read."""
    was = user(revoked=(Revoked("x", "root", NOW),), indexed=Look(NOW))
    former, now = lifecycle.rename(was, "evi", "root", NOW)
    assert (former.revoked, now.revoked) == ((), was.revoked)
    assert now.indexed is None
    assert lifecycle.remove(replace(disabled(), revoked=was.revoked), "root", NOW).revoked == ()
    for again in (disabled(names=()), disabled(names=(), is_last=True, live=("j1",))):
        assert lifecycle.next_pass(replace(again, indexed=Look(NOW)), NOW).indexed is None


def test_who_is_not_renamed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert code(lifecycle.rename, user(name="oxide:hubris"), "hubris", "root", NOW) == "repository"
    assert code(lifecycle.rename, user(), "oxide:eve", "root", NOW) == "repository"
    assert code(lifecycle.rename, disabled(), "evi", "root", NOW) == "user-disabled"
    names = tuple(f"e{number}" for number in range(lifecycle.FORMER_NAMES))
    assert lifecycle.rename(user(former=names[1:]), "evi", "root", NOW)
    assert code(lifecycle.rename, user(former=names), "evi", "root", NOW) == "too-many-names"


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (user(), "is not disabled"),
        (user(status=Status(Standing.RENAMED, "root", NOW), withdrawal=Withdrawal((), True, is_last=True)), "is not"),
        (user(status=Status(Standing.DISABLED, "root", NOW)), "is not disabled"),
        (disabled(), "are still being ended"),
        (disabled(names=(), is_last=False), "are still being ended"),
        (disabled(names=("eve",), is_last=True), "are still being ended"),
        (disabled(names=(), is_last=True, live=("j1", "j2")), "still run: j1, j2; cancel"),
        (disabled(names=(), is_last=True), None),
    ],
)
def test_when_a_user_may_be_removed(one: User, why: str | None) -> None:
    found = lifecycle.why_not_removed(one)
    assert (found is None) if why is None else why in str(found)


def test_a_removed_user_is_a_name_without_rights() -> None:
    found = lifecycle.remove(disabled(names=(), is_last=True), "root", NOW + MINUTE)
    assert found.status == Status(Standing.REMOVED, "root", NOW + MINUTE)
    assert (found.privileges, found.withdrawal, found.due, found.place) == (
        (),
        None,
        NOW + MINUTE,
        Place(FORMER, "eve"),
    )


def test_how_far_the_jobs_were_looked_at() -> None:
    some = lifecycle.walked(disabled(), "j5", ["j9", "j7"]).withdrawal
    assert some == Withdrawal(("eve", "eva"), False, "j5", live=("j9", "j7"))
    name = lifecycle.walked(disabled(before="j5", live=("j9",)), "", ["j9", "j3"]).withdrawal
    assert name == Withdrawal(("eva",), False, "", live=("j9", "j3"))


def test_of_many_jobs_that_run_some_are_remembered() -> None:
    many = [f"j{number}" for number in range(LIVE + 1)]
    exact = lifecycle.walked(disabled(), "", many[:-1]).withdrawal
    assert exact
    assert (len(exact.live), exact.is_cut) == (LIVE, False)
    cut = lifecycle.walked(disabled(), "", many)
    assert cut.withdrawal
    assert (len(cut.withdrawal.live), cut.withdrawal.is_cut) == (LIVE, True)
    after = lifecycle.walked(cut, "", many[:3]).withdrawal
    assert after
    assert after.is_cut


def test_jobs_are_looked_at_again_for_those_that_were_being_submitted() -> None:
    again = lifecycle.next_pass(disabled(names=(), live=("j1",)), NOW + SECOND)
    assert again.withdrawal == Withdrawal(("eve", "eva"), False, is_last=True, live=("j1",))
    assert again.due == NOW + IN_FLIGHT
    assert lifecycle.next_pass(disabled(names=()), NOW + 2 * IN_FLIGHT).due == NOW + 2 * IN_FLIGHT
    assert lifecycle.next_pass(disabled(), NOW + SECOND) == disabled()


def test_jobs_that_were_left_running_are_watched_until_they_have_settled() -> None:
    runs = disabled(names=(), is_last=True, live=("j1",))
    assert lifecycle.next_pass(runs, NOW) == replace(runs, due=NOW + WATCHED_EVERY)
    ended = lifecycle.watched(runs, [])
    assert ended.withdrawal == Withdrawal((), False, is_last=True)
    assert lifecycle.next_pass(ended, NOW).due is None


def test_if_there_were_more_than_remembered_all_are_looked_at_again() -> None:
    again = lifecycle.next_pass(disabled(names=(), is_last=True, is_cut=True), NOW + MINUTE)
    assert again.withdrawal == Withdrawal(("eve", "eva"), False)
    assert again.due == NOW + MINUTE


def test_who_may_not_act_has_no_privilege() -> None:
    """SEC-2: whatever was granted before; and the reason says who decided it."""
    assert explain_denial(user(), ["target.lab"]) is None
    assert explain_denial(disabled(), ["target.lab"]) == "eve was disabled by root at 2026-01-02 03:04:05Z"
    assert explain_status(user()) is None
    assert [user().is_a(each) for each in Standing] == [False] * 3
    assert [disabled().is_a(each) for each in Standing] == [True, False, False]


def test_a_user_acts_for_former_names() -> None:
    """SEC-2: jobs and files keep the name of their owner; another's former name is not theirs."""
    one = user(former=("eva",))
    assert [one.may_act_for(name) for name in ("eve", "eva", "evi")] == [True, True, False]
