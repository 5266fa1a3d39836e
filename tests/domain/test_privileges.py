"""What is remembered of privileges that were taken away, and what is said of it. [SEC-2]"""

from datetime import datetime, timedelta

import pytest

from penstock.domain.jobs import jobs
from penstock.domain.jobs.jobs import Outcome
from penstock.domain.jobs.outcome import conclude
from penstock.domain.users.audit import DETAIL_CHARS, KEPT_FOR, Entry, clip_detail
from penstock.domain.users.users import ADMIN, MAX_REVOCATIONS, Revoked, User, explain_denial, with_privileges
from tests.domain.helpers import NOW, job

LATER = NOW + timedelta(hours=1)
SINCE = f"{NOW:%Y-%m-%d %H:%M:%SZ}"


def user(*privileges: str, revoked: tuple[Revoked, ...] = ()) -> User:
    return User(name="eve", privileges=privileges, revoked=revoked, created=NOW)


def test_what_is_taken_is_remembered_until_it_is_given_again() -> None:
    now = with_privileges(user("a", "b"), ["b", "c"], "root", NOW)
    assert (now.privileges, now.revoked) == (("b", "c"), (Revoked("a", "root", NOW),))
    then = with_privileges(now, ["c"], "ann", LATER)
    assert then.revoked == (Revoked("a", "root", NOW), Revoked("b", "ann", LATER))
    again = with_privileges(then, ["a", "c"], "root", LATER)
    assert again.revoked == (Revoked("b", "ann", LATER),)


def test_only_the_last_are_remembered() -> None:
    many = tuple(Revoked(f"p{at}", "root", NOW) for at in range(MAX_REVOCATIONS))
    found = with_privileges(user("a", revoked=many), [], "root", LATER).revoked
    assert (len(found), found[0].privilege, found[-1].privilege) == (MAX_REVOCATIONS, "p1", "a")


@pytest.mark.parametrize(
    ("who", "wanted", "told"),
    [
        (user("a"), [], None),
        (user("a", "b"), ["a", "b"], None),
        (user(ADMIN), ["a"], None),
        (user(), ["a"], "eve may not have this: it needs the privilege 'a'"),
        (user("a"), ["c", "b", "a"], "eve may not have this: it needs the privilege 'b'"),
        (user(revoked=(Revoked("b", "root", NOW),)), ["a"], "eve may not have this: it needs the privilege 'a'"),
        (
            user(revoked=(Revoked("a", "ann", LATER), Revoked("a", "root", NOW))), ["a"],
            f"eve may not have this any more: root revoked 'a' at {SINCE}",
        ),
        (
            user(revoked=(Revoked(ADMIN, "root", NOW),)), ["a"],
            f"eve may not have this any more: root revoked 'admin' at {SINCE}",
        ),
    ],
)  # fmt: skip
def test_why_somebody_may_not(who: User, wanted: list[str], told: str | None) -> None:
    assert explain_denial(who, wanted) == told


def test_a_job_that_is_refused_fails_whatever_ended_its_flow() -> None:
    refused = jobs.refuse(job(), "eve may not", NOW)
    assert refused.due == jobs.cancel(job(), "x", NOW).due
    for error, cause in ((None, None), ("Cancelled", "cancelled by x"), ("Lost", "silent"), ("Unsatisfiable", "y")):
        ended = conclude(refused, error, cause, NOW)
        assert (ended.end.outcome, ended.end.reason) == (Outcome.FAILED, "eve may not")
    assert conclude(jobs.cancel(job(), "x", NOW), None, None, NOW).end.outcome is Outcome.CANCELLED


@pytest.mark.parametrize(
    ("text", "told"), [("y" * DETAIL_CHARS, "y" * DETAIL_CHARS), ("y" * (DETAIL_CHARS + 1), "y" * 997 + "...")]
)
def test_a_detail_is_clipped(text: str, told: str) -> None:
    assert clip_detail(text) == told


def test_an_entry_stands_alone_is_listed_and_expires() -> None:
    at = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
    entry = Entry(id="01X", at=at, by="root", did="hold", what="worker w-1")
    assert (entry.key, entry.place, entry.expiry) == (("audit#01X", "audit"), ("audit", "01X"), at + KEPT_FOR)
    assert timedelta(days=366) < KEPT_FOR
