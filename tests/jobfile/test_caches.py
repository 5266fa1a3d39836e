"""`[cache.NAME]`: what it says, and where it is wrong."""

from __future__ import annotations

import pytest

from penstock.domain.jobfile import CacheAsk, Problems, parse, variant
from tests.jobfile.helpers import below, items

GOOD = """[cache.deps]
paths = ["target", "~/.cargo/registry", "/opt/x"]
key = 'deps-{{ hash "Cargo.lock" "crates/*/Cargo.toml" }}-{{hash "/input/x"}}'
restore_keys = ["deps-", '{{ hash "a" }}']
[cache."b.1"]
paths = ["b"]
key = "b"
"""


def test_caches_are_tables() -> None:
    found = parse(below(GOOD), "a.sh")
    assert not isinstance(found, Problems)
    first, second = found.cache
    assert (first.name, first.paths) == ("deps", ("target", "~/.cargo/registry", "/opt/x"))
    assert first.key.startswith("deps-{{ hash")
    assert first.restore_keys == ("deps-", '{{ hash "a" }}')
    assert second == CacheAsk("b.1", ("b",), "b")


HINT = 'there is {{ hash "FILE" }}, with one file or pattern in quotes, or more'


@pytest.mark.parametrize(
    ("toml", "line", "column", "message", "hint"),
    [
        ("[cache]\nx = 1", 5, 8, "`cache.x` wants a table, not a whole", 'like [cache.deps]'),
        ("cache = 1", 4, 12, "`cache` wants tables like [cache.deps]", None),
        ('[cache.a]\nkey = "k"', 4, 11, "`cache.a` has no `paths`", "like [cache.deps]"),
        ('[cache.a]\npaths = ["x"]', 4, 11, "`cache.a` has no `key`", "like [cache.deps]"),
        ('[cache.a]\npaths = []\nkey = "k"', 5, 12, "`cache.a.paths` names nothing", 'like paths = ["target"]'),
        ('[cache.a]\npaths = "x"\nkey = "k"', 5, 12, "`cache.a.paths` wants a list of paths", 'in brackets: ["x"]'),
        ('[cache.a]\npaths = ["x/../y"]\nkey = "k"', 5, 13, "an entry of `cache.a.paths`: `..` leads", "name"),
        ('[cache.a]\npaths = ["//"]\nkey = "k"', 5, 13, "an entry of `cache.a.paths` is all of", "name"),
        ('[cache.a]\npaths = [""]\nkey = "k"', 5, 13, "an entry of `cache.a.paths` is empty", None),
        ('[cache.a]\npaths = ["x"]\nkey = "{{ date }}"', 6, 10, "`cache.a.key`: `{{ date }}` is no placeholder", HINT),
        ('[cache.a]\npaths = ["x"]\nkey = "a}}"', 6, 10, "`cache.a.key`: `a}}` is no placeholder", HINT),
        ('[cache.a]\npaths = ["x"]\nkey = "{{ hash }}"', 6, 10, "`cache.a.key`: `{{ hash }}` is no placeholder", HINT),
        ('[cache.a]\npaths = ["x"]\nkey = "ä"', 6, 10, "`cache.a.key` holds characters that are not ASCII", "letters"),
        ('[cache.a]\npaths = ["x"]\nkey = "k"\nrestore_keys = ["{{"]',
         7, 20, "an entry of `cache.a.restore_keys`", HINT),
        ('[cache.a]\npaths = ["x"]\nkeys = "k"', 6, 4, "unknown key `keys`", "did you mean `key`?"),
        ('[cache."a b"]\npaths = ["x"]\nkey = "k"', 4, 11, "`cache.a b`: `a b` is not a cache's name", "letters"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line_and_column(toml, line, column, message, hint) -> None:  # type: ignore[no-untyped-def]
    found = [each for each in items(below(toml)) if each[2].startswith(message)]
    assert [each[:2] for each in found] == [(line, column)], items(below(toml))
    assert found[0][3].startswith(hint or "")


def test_there_may_be_only_so_many() -> None:
    many = "\n".join(f'[cache.c{number}]\npaths = ["x"]\nkey = "k"' for number in range(11))
    assert [each[2] for each in items(below(many))] == ["`cache` has 11 entries; it may have at most 10"]


def test_a_matrix_fills_them_in() -> None:
    toml = (
        '[matrix]\nos = ["a", "b"]\n[cache.c]\npaths = ["x-${{ matrix.os }}"]\nkey = "k-${{ matrix.os }}"\n'
        'restore_keys = ["${{ matrix.os }}"]'
    )
    found = parse(below(toml), "job.sh")
    assert not isinstance(found, Problems)
    assert variant(found, {"os": "b"}).cache == (CacheAsk("c", ("x-b",), "k-b", ("b",)),)
    (wrong,) = items(below(toml.replace("${{ matrix.os }}", "${{ matrix.so }}", 1)))
    assert wrong[2] == "there is no axis `so`"
