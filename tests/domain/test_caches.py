"""Caches: what is compared, what makes room, what stays. [SEC-2] [ART-1]"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.domain import caches
from penstock.domain.artifacts import artifacts, why
from penstock.domain.artifacts.content import Content
from penstock.domain.caches import TRUNK, CacheEntry, CacheUse, Shelf
from penstock.kernel import limits
from tests.domain.helpers import NOW, SECOND

SHELF = Shelf("oxide:hubris", "linux", "deps", "0" * 16)
ENTRY = CacheEntry(
    shelf=SHELF, scope=TRUNK, words="k#1/a", id="01KDVDNA01AAAAAAAAAAAAAAAA", job="J", size=10, sha256="00",
    about="/work/x", made=NOW, used=NOW, until=NOW + timedelta(days=14),
)  # fmt: skip
DAY = timedelta(days=1)


def test_an_entry_is_its_owners_under_all_that_is_compared() -> None:
    assert ENTRY.key == ("caches#oxide:hubris", f"cache#linux#deps#{'0' * 16}#trunk#k#1/a")
    assert (ENTRY.deadline, ENTRY.later) == (ENTRY.until, True)
    assert ENTRY.place == ("caches#oxide:hubris", ENTRY.id)
    assert artifacts.parts(ENTRY.owner)[0] == artifacts.CACHE
    assert caches.of_owner(ENTRY.owner) == ENTRY.key


def test_no_two_that_differ_stand_at_one_key() -> None:
    """SEC-2: no scope, name or target can be spelled so that it looks like another's."""
    each = {
        ENTRY.key,
        *(replace(ENTRY, shelf=replace(SHELF, **{part: "other"})).key for part in ("owner", "target", "name", "paths")),
        replace(ENTRY, scope="branch").key,
        replace(ENTRY, words="k").key,
    }
    assert len(each) == 7
    assert not any(caches.is_scope(f"a{each}b") for each in "# \n\x7fä")
    assert not any(caches.is_name(f"a{each}b") for each in "#/ ä\n")


def test_paths_are_compared_as_a_set() -> None:
    assert caches.digest(["/b", "/a", "/a"]) == caches.digest(["/a", "/b"]) != caches.digest(["/a"])
    assert caches.digest(["/a,b"]) != caches.digest(["/a", "b"])
    assert len(caches.digest([])) == 16


@pytest.mark.parametrize(
    ("text", "name", "key", "scope"),
    [
        ("", False, True, False),
        ("a", True, True, True),
        ("deps-1.x_y", True, True, True),
        ("-a", False, True, True),
        ("feature/a b", False, True, False),
        ("refs/heads/x", False, True, True),
        ("a" * 128, True, True, True),
        ("a" * 129, False, True, False),
        ("a" * 512, False, True, False),
        ("a" * 513, False, False, False),
        ("a\n", False, False, False),
        ("ä", False, False, False),
    ],
)
def test_what_names_things(text: str, name: bool, key: bool, scope: bool) -> None:
    assert (caches.is_name(text), caches.is_key(text), caches.is_scope(text)) == (name, key, scope)


def test_a_job_reads_from_its_own_scope_and_then_the_trunks() -> None:
    assert caches.sources("b") == ("b", TRUNK)
    assert caches.sources(TRUNK) == caches.sources("") == (TRUNK,)


def test_the_newest_is_the_one_that_was_saved_last() -> None:
    later = replace(ENTRY, made=NOW + SECOND)
    twin = replace(ENTRY, id="01KDVDNA02AAAAAAAAAAAAAAAA")
    assert caches.newest([later, ENTRY]) == caches.newest([ENTRY, later]) == later
    assert caches.newest([twin, ENTRY]) == twin
    assert caches.newest([]) is None


def test_that_it_was_used_is_written_once_in_a_while() -> None:
    assert caches.touch(ENTRY, NOW + caches.TOUCH_INTERVAL - SECOND, DAY) is ENTRY
    later = NOW + caches.TOUCH_INTERVAL
    assert caches.touch(ENTRY, later, DAY) == replace(ENTRY, used=later, until=later + DAY)


def test_a_url_is_over_before_the_bytes_go() -> None:
    """ART-1"""
    assert timedelta(minutes=1) < caches.DOWNLOAD_SECONDS < artifacts.DOWNLOAD_WITHIN


def test_what_an_owner_has_is_counted() -> None:
    use = CacheUse(owner="ada", size=5, count=1)
    more = caches.count(use, [ENTRY, ENTRY], 1)
    assert (more.size, more.count, more.key) == (25, 3, ("caches#ada", "use"))
    assert caches.count(more, [ENTRY, ENTRY], -1) == use


def test_there_is_room_up_to_the_limit() -> None:
    use = CacheUse(owner="ada", size=5, count=limits.CACHE_ENTRIES - 1)
    assert caches.is_room(use, 5, 10)
    assert not caches.is_room(use, 6, 10)
    assert not caches.is_room(replace(use, count=limits.CACHE_ENTRIES), 0, 10)


def some(*used: int, scope: str = "b") -> list[CacheEntry]:
    """Entries of ten bytes, used some days ago."""
    return [replace(ENTRY, id=f"{days}", used=NOW - days * DAY, scope=scope) for days in used]


def gone(entries: list[CacheEntry], size: int, most: int, scope: str = "b") -> list[str]:
    use = CacheUse(owner="ada", size=sum(entry.size for entry in entries), count=len(entries))
    return [entry.id for entry in caches.entries_to_evict(use, entries, size, most, scope, NOW)]


def test_what_was_unused_for_longest_goes_first_and_no_more_than_it_takes() -> None:
    assert gone(some(1, 3, 2), 10, 30) == ["3"]
    assert gone(some(1, 3, 2), 11, 30) == ["3", "2"]
    assert gone(some(1, 3, 2), 30, 30) == ["3", "2", "1"]
    assert gone(some(1, 3, 2), 31, 30) == []
    assert gone(some(1), 10, 30) == []


def test_the_older_of_two_entries_used_at_once_is_evicted() -> None:
    assert gone([replace(each, used=NOW) for each in some(2, 1)], 10, 20) == ["1"]


def test_a_branch_pushes_nothing_out_that_the_trunk_used_lately() -> None:
    """Poisoning: a branch cannot make the trunk's jobs work without what they have."""
    trunk, branch = some(0, scope=TRUNK), some(2, 1)
    assert gone([*trunk, *branch], 20, 30) == ["2", "1"]
    assert gone([*trunk, *branch], 21, 30) == []
    assert gone([*trunk, *branch], 21, 30, scope=TRUNK) == ["2", "1", "0"]
    assert gone(some(1, scope=TRUNK), 30, 30) == ["1"]
    assert gone([replace(some(1, scope=TRUNK)[0], used=NOW - DAY + SECOND)], 30, 30) == []


def test_why_an_archive_is_kept() -> None:
    known = why.by_cache(ENTRY, ENTRY.owner)
    assert known.until == ENTRY.until
    assert known.why == "the cache deps of oxide:hubris has it in the scope trunk under the key 'k#1/a'"
    assert f"penstock cache delete {ENTRY.id}" in known.frees
    assert why.by_cache(None, "cache#x").until is None


def test_the_content_of_an_entry_is_what_was_verified() -> None:
    whole = replace(ENTRY, size=3, sha256="ab", composite="")
    assert (whole.content, replace(whole, sha256="", composite="cd").content) == (
        Content(3, "ab"),
        Content(3, "", "cd"),
    )
