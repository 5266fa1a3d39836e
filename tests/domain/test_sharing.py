"""The key `share` of a target: what it may say, and the slots that its hosts have."""

from __future__ import annotations

import pytest

from penstock.domain.pools.pools import Serves, Sharing
from penstock.domain.site import parse
from penstock.domain.site.site import Site, slot_names
from penstock.domain.units.hosts import slot_name

LAB = '[factories.lab]\ndriver = "hosts"\n[targets.lab]\nfactory = "lab"\n'
HOSTS = 'names = ["bench-7", "bench-8"]\n'
MACHINE = 'machine = { cpus = 4, memory = "16GiB" }\n'


@pytest.mark.parametrize(
    ("said", "share"),
    [
        ("share = true", Sharing(4)),
        ("share = {}", Sharing(4)),
        ('share = { parts = 2, serves = "site" }', Sharing(2, Serves.SITE)),
        ("share = false", None),
        ("", None),
    ],
)
def test_how_jobs_share_hosts(said: str, share: Sharing | None) -> None:
    found = parse.parse(f"{LAB}{HOSTS}{MACHINE}{said}\n", "site.toml")
    assert isinstance(found, Site), found
    target = found.targets["lab"]
    assert target.share == share
    names = tuple(f"bench-{host}/{part}" for host in (7, 8) for part in range(1, (share.parts if share else 0) + 1))
    assert target.slots == (names or ("bench-7", "bench-8"))
    shape = found.pools()["target/lab"]
    assert (shape.limit, shape.names, shape.share, shape.hosts) == (len(target.slots), target.slots, share, True)


def test_a_large_host_has_no_more_parts_than_a_commit_has_room_for() -> None:
    found = parse.parse(f"{LAB}{HOSTS}{MACHINE.replace('4,', '96,')}share = true\n", "site.toml")
    assert isinstance(found, Site), found
    assert found.targets["lab"].share == Sharing(32)


@pytest.mark.parametrize(
    ("text", "where", "message", "hint"),
    [
        (f"{HOSTS}{MACHINE}share = {{ parts = 1 }}", "share.parts", "must be from 2 to 32", ""),
        (f"{HOSTS}{MACHINE}share = 8", "share", "wants true or false", ""),
        (f"{HOSTS}{MACHINE}share = {{ part = 8 }}", "share", "unknown key `part`", "did you mean `parts`?"),
        (f"{HOSTS}share = true", "share", "how many cpus and how much memory", "machine = {"),
        (f"{HOSTS}machine = {{ cpus = 4 }}\nshare = true", "share", "how many cpus and how much memory", ""),
        (f"{HOSTS}{MACHINE.replace('4,', '1,')}share = true", "share", "there is nothing to share", "parts = 4"),
        (f"limit = 2\n{MACHINE}share = true", "share", "only hosts are shared", "`names`"),
        (
            f"names = {[f'bench-{number}' for number in range(40)]}\n{MACHINE}share = {{ parts = 32 }}",
            "share",
            "it has 40 hosts with 32 parts each; there may be 1000 parts in all",
            "fewer parts",
        ),
    ],
)
def test_a_wrong_share_is_told(text: str, where: str, message: str, hint: str) -> None:
    found = parse.parse(f"{LAB}{text}\n", "site.toml")
    assert isinstance(found, tuple)
    assert any(message in each.message and hint in (each.hint or "") for each in found), found
    assert any((each.where or "").startswith(f"targets.lab.{where}") for each in found), found


def test_the_names_of_slots() -> None:
    assert [slot_name("bench-7", part) for part in (0, 3)] == ["bench-7", "bench-7/3"]
    assert [slot_names(None, 2), slot_names(("a",), 1)] == [None, ("a",)]
    assert slot_names(("a", "b"), 2) == ("a/1", "a/2", "b/1", "b/2")
