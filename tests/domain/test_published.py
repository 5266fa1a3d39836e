"""Published names: what they may be, what they stand for, and who may read them. [SEC-2]"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from penstock.domain import published
from penstock.domain.artifacts.content import Content
from penstock.domain.jobfile import Publish
from penstock.domain.jobs.jobs import Publication
from penstock.domain.published import ALL_SERIES, Access, Published, Series
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused

NOW = datetime(2026, 1, 1, 10, 30, tzinfo=UTC)
ROW = Published(
    of="oxide:hubris", series="image", version_name="v1", name="a.zip", artifact="A", size=3, sha256="ab",
    path="/work/a.zip", job="J", by="ada", time=NOW,
)  # fmt: skip


def user(name: str, *privileges: str) -> User:
    return User(name=name, privileges=privileges, created=NOW)


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("a", True), ("v1.2_3-x", True), ("x" * 100, True), ("x" * 101, False), ("", False), ("a/b", False),
        ("a#b", False), (".", False), ("..", False), ("...a", True), ("a b", False), ("\u00e9", False), ("a\n", False),
    ],
)  # fmt: skip
def test_what_can_be_a_part_of_a_name(text: str, good: bool) -> None:
    assert published.is_part(text) is good


def test_where_a_name_stands_and_what_it_is_called() -> None:
    assert ROW.key == ("published#oxide:hubris", "file#image#v1#a.zip")
    assert ROW.owner == "published#oxide:hubris/image/v1/a.zip"
    said = Series(of="ada", name="image", access=Access.PRIVATE)
    assert said.key == ("published#ada", "series#image")


@pytest.mark.parametrize(
    ("said", "env", "version"),
    [("v1", {"GITHUB_SHA": "c0ffee"}, "v1"), ("", {"GITHUB_SHA": "c0ffee"}, "c0ffee"), ("", {}, "JOB")],
)
def test_the_version_is_what_the_file_says_or_the_commit_or_the_job(
    said: str, env: dict[str, str], version: str
) -> None:
    asked = Publish("/work/a", "image", "a", said)
    assert published.resolve([asked], env, "JOB") == (Publication("/work/a", "image", version, "a"),)


def test_what_cannot_be_a_name_is_said_with_its_place() -> None:
    bad = [Publish("/a", "s", "n"), Publish("/a", "${{ matrix.x }}", "n/", "v")]
    found = published.resolve(bad, {"GITHUB_SHA": "a b"}, "JOB")
    assert isinstance(found, Refused)
    assert (found.status, found.code) == (400, "bad-request")
    assert [(fault.where, fault.hint) for fault in found.faults] == [
        ("publish[0].version", "without `version` it is the commit in GITHUB_SHA"),
        ("publish[1].series", None),
        ("publish[1].name", None),
    ]
    assert "`a b` cannot be a version; it has 1 to 100" in found.faults[0].message
    long = published.resolve([Publish("/a", "s" * 200, "n", "v")], {}, "J")
    assert isinstance(long, Refused)
    assert f"`{'s' * 100}` cannot be a series" in long.faults[0].message


def test_a_name_stands_for_its_bytes_alone() -> None:
    assert published.has_content(ROW, Content(3, "ab"))
    for other in (Content(4, "ab"), Content(3, "cd"), Content(3, "", "ab"), Content(3, "ab", "ab")):
        assert not published.has_content(ROW, other)


def test_the_refusals_say_what_is_there() -> None:
    there = published.already_taken(ROW)
    assert (there.status, there.code) == (409, "published-otherwise")
    assert there.detail == (
        "oxide:hubris/image/v1/a.zip was given other bytes: 3 bytes with the SHA-256 ab, from /work/a.zip of job J, "
        "at 2026-01-01 10:30 UTC, and is published; a name is given once; publish under another version"
    )
    row = published.withdraw(ROW, "bob", NOW)
    assert row == replace(ROW, withdrawn=NOW, withdrawn_by="bob")
    assert "and is withdrawn by bob; a name" in published.already_taken(row).detail
    gone = published.withdrawn(row)
    assert (gone.status, gone.code) == (410, "withdrawn")
    assert gone.detail == "oxide:hubris/image/v1/a.zip was withdrawn by bob at 2026-01-01 10:30 UTC"


PRIVATE = Series(of="ada", name="inner", access=Access.PRIVATE)
OPEN = Series(of="ada", name="inner", access=Access.PUBLIC)
SOME = Series(of="ada", name="inner", access=Access.PRIVILEGE, privilege="releases")
OTHERS = Series(of="ada", name=ALL_SERIES, access=Access.PRIVATE)


@pytest.mark.parametrize(
    ("said", "readers"),
    [
        ([], "nobody ada eve root rel"),
        ([OPEN], "nobody ada eve root rel"),
        ([PRIVATE], "ada root"),
        ([SOME], "ada root rel"),
        ([OTHERS], "ada root"),
        ([OTHERS, OPEN], "nobody ada eve root rel"),
        ([replace(OPEN, name="other")], "nobody ada eve root rel"),
        ([replace(PRIVATE, name="other")], "nobody ada eve root rel"),
        ([replace(PRIVATE, privilege="releases")], "ada root"),
    ],
)
def test_who_may_read(said: list[Series], readers: str) -> None:
    people = {
        "nobody": None, "ada": user("ada"), "eve": user("eve"), "root": user("root", "admin"),
        "rel": user("rel", "releases"),
    }  # fmt: skip
    assert [name for name, who in people.items() if published.may_read(who, "ada", "inner", said)] == readers.split()
