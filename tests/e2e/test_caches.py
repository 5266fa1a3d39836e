"""What one job saves another restores, and no branch's job changes what the trunk's have: end to end. [SEC-2]"""

from __future__ import annotations

import pytest

from tests.e2e.conftest import Local

pytestmark = pytest.mark.xdist_group("jobs")

HEAD = """#!/bin/bash
#:
#: name = "cached"
#: variety = "basic"
#:
#: [cache.tools]
#: paths = ["tools"]
#: key = "tools-1"
#:
set -e; cd "$PENSTOCK_WORK"
"""
MAKE = (
    HEAD
    + """test ! -e tools; mkdir tools; echo one > tools/a; ln -s a tools/b
bmat cache restore deps deps --key k || echo "missed: $?"
echo trunk > deps; bmat cache save deps deps --key k
"""
)
USE = (
    HEAD
    + "cat tools/b; bmat cache restore deps deps --key k; cat deps\n"
    + "echo more > deps; bmat cache save deps deps --key k\n"
)
BRANCH = (
    HEAD
    + "bmat cache restore deps deps --key k; cat deps; echo evil > deps\n"
    + "bmat cache save deps deps --key k2; bmat cache restore deps deps --key k2; cat deps\n"
)
AFTER = HEAD + "bmat cache restore deps deps --key k2 --restore-key k; cat deps\n"


def said(local: Local, script: str, *words: str) -> list[str]:
    job = local.submit(script, *words)
    assert local.settled(job)["outcome"] == "succeeded", local.log(job)
    return [line["payload"] for line in local.log(job) if line["stream"] == "stdout"]


def test_a_cache_is_restored_and_no_branch_poisons_the_trunk(local: Local) -> None:
    assert said(local, MAKE) == ["missed: 1", "saved"]
    assert said(local, USE) == ["one", "hit", "trunk", "there"]
    assert said(local, BRANCH, "--cache-scope", "pr-1") == ["hit", "trunk", "saved", "hit", "evil"]
    assert said(local, AFTER) == ["partial", "trunk"]
    found = local.json("cache", "list")
    assert sorted((each["name"], each["key"], each["scope"]) for each in found) == [
        ("deps", "k", "trunk"), ("deps", "k2", "pr-1"), ("tools", "tools-1", "trunk"),
    ]  # fmt: skip
    for each in found:
        assert local.cli("cache", "delete", each["id"]).returncode == 0
    assert local.json("cache", "list") == []
    local.put_back()
