"""What drivers say of options, ours and strangers', old and new, and what jobs get told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from penstock import drivers
from penstock.drivers import Registry
from penstock.ports import Option

KNOWN = (
    Option("version", "string", "of the server", "16", ("15", "16")),
    Option("size", "whole number", "in GiB"),
    Option("ratio", "number"),
    Option("fast", "true or false"),
    Option("tags", "list"),
    Option("deep", "table"),
)


class New:
    """A driver as they are now: what it takes depends on the site."""

    @staticmethod
    def options(well: Mapping[str, Any], kind: Mapping[str, Any]) -> Sequence[Option]:
        return [Option("version", "string", "of the server", allowed=(*well["versions"], *kind.get("more", ())))]

    @staticmethod
    def objections(options: Mapping[str, Any], well: Mapping[str, Any], kind: Mapping[str, Any]) -> Sequence[str]:
        return ["not on a Sunday"] if options.get("version") == well.get("closed") else []


class Old:
    """A driver that knows options only, and says nothing of those that there are."""

    @staticmethod
    def objections(options: Mapping[str, Any]) -> Sequence[str]:
        return [f"no {name}" for name in options]


class Quiet:
    """A driver that says what it takes, and has nothing to add."""

    @staticmethod
    def options(well: Mapping[str, Any], kind: Mapping[str, Any]) -> Sequence[Option]:
        return KNOWN

    @staticmethod
    def objections(*told: Any) -> Sequence[str]:
        assert len(told) == 3
        return []


class Broken:
    """A driver that fails over options."""

    @staticmethod
    def objections(options: Mapping[str, Any]) -> Sequence[str]:
        raise KeyError("x" * 10_000)


class Chatty:
    """A driver that never ends."""

    @staticmethod
    def objections(options: Mapping[str, Any]) -> Sequence[str]:
        return ["x" * 10_000] * 10_000


THEIRS = {"new": New, "old": Old, "quiet": Quiet, "broken": Broken, "chatty": Chatty}


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    load = drivers._load
    monkeypatch.setattr(drivers, "_load", lambda kind, name: THEIRS.get(name) or load(kind, name))
    return Registry({})


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, []),
        ({"version": "15", "size": 3, "ratio": 0.5, "fast": False, "tags": [1], "deep": {"a": 1}}, []),
        ({"ratio": 2}, []),
        ({"versoin": "15"}, ["there is no option 'versoin'; did you mean 'version'?"]),
        ({"zzz": 1}, ["there is no option 'zzz'; there are: deep, fast, ratio, size, tags, version"]),
        ({"version": 15}, ["option 'version' wants a string, not 15; allowed are: 15, 16"]),
        ({"version": "14"}, ["option 'version' cannot be '14'; allowed are: 15, 16"]),
        ({"size": 1.5}, ["option 'size' wants a whole number, not 1.5"]),
        ({"size": True}, ["option 'size' wants a whole number, not True"]),
        ({"ratio": True}, ["option 'ratio' wants a number, not True"]),
        ({"fast": 1}, ["option 'fast' wants a true or false, not 1"]),
        ({"tags": "a", "deep": []}, ["option 'tags' wants a list, not 'a'", "option 'deep' wants a table, not []"]),
    ],
)
def test_what_is_wrong_with_options(registry: Registry, options: Mapping[str, Any], told: list[str]) -> None:
    assert registry.objections("well", "quiet", options) == told


def test_a_driver_judges_by_the_settings_that_it_has_here(registry: Registry) -> None:
    well = {"versions": ["15", "16"], "closed": "16"}
    assert registry.objections("well", "new", {"version": "15"}, well, {}) == []
    assert registry.objections("well", "new", {"version": "17"}, well, {}) == [
        "option 'version' cannot be '17'; allowed are: 15, 16"
    ]
    assert registry.objections("well", "new", {"version": "17"}, well, {"more": ["17"]}) == []
    assert registry.objections("well", "new", {"version": "16"}, well, {}) == ["not on a Sunday"]
    assert registry.options("new", well, {"more": ["17"]}) == (
        Option("version", "string", "of the server", allowed=("15", "16", "17")),
    )


def test_a_driver_that_knows_options_only_works_still(registry: Registry) -> None:
    assert registry.objections("well", "old", {"a": 1}, {"x": 1}, {}) == ["no a"]
    assert registry.options("old", {}, {}) is None


def test_a_driver_that_there_is_not_says_nothing(registry: Registry) -> None:
    assert registry.options("none", {}, {}) is None
    assert "there is no well driver" in registry.objections("well", "none", {})[0]


def test_what_a_driver_says_is_bounded_and_its_failure_is_an_objection(registry: Registry) -> None:
    assert registry.objections("well", "broken", {"a": 1}) == ["the driver failed while it checked them: KeyError"]
    assert registry.objections("well", "new", {}, {}, {}) == ["the driver failed while it checked them: KeyError"]
    found = registry.objections("well", "chatty", {"a": 1})
    assert (len(found), {len(text) for text in found}) == (drivers.MOST_OBJECTIONS, {drivers.OBJECTION_CHARS})
    many = registry.objections("well", "quiet", {f"{'y' * 600}{at}": {"x": ["z" * 900]} for at in range(99)})
    assert len(many) == drivers.MOST_OBJECTIONS
    assert max(map(len, many)) < 200


def test_a_lock_has_no_options(registry: Registry) -> None:
    assert registry.options("lock", {}, {}) == ()
    assert registry.objections("well", "lock", {"speed": 1}) == ["there is no option 'speed'; there are: none"]
