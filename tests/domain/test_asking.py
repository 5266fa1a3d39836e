"""Requests for privileges: one for each user and privilege, kept for a month."""

from __future__ import annotations

from datetime import timedelta

from penstock.domain.users import requests
from penstock.domain.users.requests import PrivilegeRequest
from penstock.domain.users.users import PRIORITY, User
from penstock.kernel.rows import Key, Place
from tests.domain.helpers import NOW

ASKED = PrivilegeRequest(user="ada", privilege="target.lab", reason="boards", by="ada", since=NOW)
DAY = timedelta(days=1)


def test_there_is_one_for_each_user_and_privilege() -> None:
    assert ASKED.key == requests.request_key("ada", "target.lab") == Key("privilegerequest#ada", "target.lab")
    assert ASKED.place == Place("privilegerequests", "ada#target.lab")


def test_it_is_kept_for_a_month_from_when_it_was_made_or_decided() -> None:
    assert ASKED.is_open
    assert ASKED.expiry == NOW + 30 * DAY
    refused = requests.decide(ASKED, "root", NOW + DAY, grant=False, answer="in May")
    assert (refused.is_open, refused.is_granted, refused.decided_by, refused.answer) == (False, False, "root", "in May")
    assert refused.expiry == NOW + 31 * DAY
    assert requests.decide(ASKED, "root", NOW, grant=True).is_granted


def test_a_user_asks_for_what_something_needs_and_they_lack() -> None:
    ada = User(name="ada", privileges=("target.lab",), created=NOW)
    assert requests.wanted({"target.lab", "resource.b"}, ada) == {"resource.b", PRIORITY}
