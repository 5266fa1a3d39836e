"""What differs between two sites, key by key, for whoever is about to apply one and for the audit log.

The values of a site are compared, field by field, so that no table or key can be left out. What is shown of them is
what the two files say, so that a reader finds what they wrote. "30m" instead of 1800 is no difference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import Any

from penstock.domain.money import Micros
from penstock.domain.pools.pools import Warm
from penstock.domain.site.sections import format_span
from penstock.domain.site.site import Maker, NamedThing, ResourceType, Site, Target
from penstock.kernel.frozen import dataclass
from penstock.toml.checks import clip

SHOWN_CHARS = 80
"""How much of a value is shown."""

SHOWN_ENTRIES = 20
"""How many entries that a list lost or got are named."""

KEYS = {(Warm, "least"): "min", (Warm, "most"): "max"}
"""The keys of a file whose fields have other names."""

BARE = r"[A-Za-z0-9_-]+"

SECRET_KEY = r"(?i)pass|secret|token|key|cred|auth|private|pin$|user_?data"
"""What keys of a driver's settings are called whose value may be a secret."""

REFERENCE = r"(env|secretsmanager|ssm):[\w/+=.@#-]+"
"""Where a secret is, instead of the secret itself."""

PLAIN = r"[^\s@]{0,80}"
"""A text with nothing in it that may be a script, or a URL with a password."""

HIDDEN = "(not shown)"

ABSENT: Any = None
"""What a file does not say: TOML has no null."""


class Sign(StrEnum):
    """What became of a key."""

    ADDED = "+"
    REMOVED = "-"
    CHANGED = "~"


@dataclass(frozen=True)
class Difference:
    """One key of the site that differs, and both values as text; "" where there is none to show."""

    sign: Sign
    path: str
    before: str = ""
    after: str = ""

    def __str__(self) -> str:
        if self.sign is Sign.CHANGED:
            return f"{self.path}: {self.before} -> {self.after}"
        value = self.before or self.after
        return f"{self.sign} {self.path}{f': {value}' if value else ''}"


@dataclass(frozen=True)
class Side:
    """A value on one side: what the site has, and what its file says there."""

    value: Any
    said: Any = ABSENT

    def entry(self, key: str) -> Side:
        """One entry of a mapping."""
        return Side(self.value.get(key), self.said.get(key) if isinstance(self.said, Mapping) else ABSENT)

    def field(self, name: str) -> Side:
        """One field of a dataclass."""
        key = KEYS.get((type(self.value), name), name)
        return Side(getattr(self.value, name), self.said.get(key) if isinstance(self.said, Mapping) else ABSENT)

    @property
    def settings(self) -> Side:
        """What the driver of a factory or well is set to: in the file it stands beside the driver."""
        return Side(self.value.settings, self.said)

    @property
    def metadata(self) -> Side:
        """What jobs are told of a thing: in the file it stands beside the labels."""
        return Side(self.value.metadata, self.said)


def compare(
    before: Site, after: Site, said_before: Mapping[str, Any], said_after: Mapping[str, Any]
) -> list[Difference]:
    """What differs, in the order of the site's tables. `said_…` is the TOML of each site's file."""
    return list(_of_fields((), Side(before, said_before), Side(after, said_after), secret=False))


def _walk(path: tuple[str, ...], was: Side, now: Side, *, secret: bool) -> Iterator[Difference]:
    """What differs at a path. `secret`: it is among the settings of a driver."""
    if was.value == now.value:
        return
    if was.value is None or now.value is None:
        yield _one_sided(path, was, now, secret)
    elif is_dataclass(was.value):
        yield from _of_fields(path, was, now, secret=secret)
    elif isinstance(was.value, Mapping) and isinstance(now.value, Mapping):
        yield from _of_entries(path, was, now, secret=secret)
    elif isinstance(was.value, tuple) and set(was.value) != set(now.value):
        yield from _of_lists(path, was.value, now.value)
    else:
        yield Difference(Sign.CHANGED, _written(path), *_both(path, was, now, secret))


def _of_fields(path: tuple[str, ...], was: Side, now: Side, *, secret: bool) -> Iterator[Difference]:
    for each in fields(was.value):
        if each.name == "settings" and isinstance(was.value, Maker):
            yield from _walk(path, was.settings, now.settings, secret=True)
        elif each.name == "metadata" and isinstance(was.value, NamedThing):
            yield from _walk(path, was.metadata, now.metadata, secret=True)
        elif each.name != "limit" or not (_is_named(was.value) and _is_named(now.value)):
            key = KEYS.get((type(was.value), each.name), each.name)
            below = was.field(each.name), now.field(each.name)
            yield from _walk((*path, key), *below, secret=secret or each.name == "settings")


def _is_named(value: Any) -> bool:
    """Whether its names say how many it has, instead of its limit."""
    return isinstance(value, Target | ResourceType) and value.names is not None


def _of_entries(path: tuple[str, ...], was: Side, now: Side, *, secret: bool) -> Iterator[Difference]:
    for key in [*now.value, *(key for key in was.value if key not in now.value)]:
        yield from _walk((*path, key), was.entry(key), now.entry(key), secret=secret)


def _of_lists(path: tuple[str, ...], was: Sequence[Any], now: Sequence[Any]) -> Iterator[Difference]:
    """The entries that a list lost, and those that it got."""
    for sign, some, others in ((Sign.REMOVED, was, set(now)), (Sign.ADDED, now, set(was))):
        found = [entry for entry in some if entry not in others]
        for entry in found[:SHOWN_ENTRIES]:
            yield Difference(sign, _written(path), _shown(entry))
        if len(found) > SHOWN_ENTRIES:
            yield Difference(sign, _written(path), f"{len(found) - SHOWN_ENTRIES} more")


def _one_sided(path: tuple[str, ...], was: Side, now: Side, secret: bool) -> Difference:
    """What only one side has. Of whole tables the path says enough: their keys stand in the file."""
    side, sign = (was, Sign.REMOVED) if now.value is None else (now, Sign.ADDED)
    if is_dataclass(side.value):
        return Difference(sign, _written(path))
    return Difference(sign, _written(path), _value(path, side, Side(None), secret))


def _both(path: tuple[str, ...], was: Side, now: Side, secret: bool) -> tuple[str, str]:
    """Two values as text. If the same is shown of both, as of long scripts, that they differ is all that is said."""
    before, after = (_value(path, side, other, secret) for side, other in ((was, now), (now, was)))
    return (before, after) if before != after else (before, f"{after}, changed")


def _value(path: tuple[str, ...], side: Side, other: Side, secret: bool) -> str:
    """A value as the file has it, or the default; a secret never. [SEC-1]"""
    value = side.value if side.said is ABSENT else side.said
    if secret and not _is_harmless(path, value):
        return HIDDEN
    if side.said is not ABSENT:
        return _shown(value)
    if isinstance(value, Micros):
        return f"{value} (default)"
    if isinstance(other.said, str) and isinstance(value, int):
        value = format_span(value)
    return f"{_shown(value)} (default)"


def _is_harmless(path: tuple[str, ...], value: Any) -> bool:
    """Whether a driver's setting is surely no secret: by its key, and by what it looks like. [SEC-1]"""
    if isinstance(value, Mapping):
        return all(_is_harmless((*path, key), one) for key, one in value.items())
    if isinstance(value, list | tuple):
        return all(_is_harmless(path, one) for one in value)
    if isinstance(value, str) and re.fullmatch(REFERENCE, value):
        return True
    return not any(re.search(SECRET_KEY, each) for each in path[2:]) and (
        not isinstance(value, str) or bool(re.fullmatch(PLAIN, value))
    )


def _shown(value: Any) -> str:
    """A value as TOML has it, shortened."""
    if isinstance(value, str) and (len(value) > SHOWN_CHARS or "\n" in value):
        return f"a text of {len(value)} characters"
    return clip(json.dumps(value, ensure_ascii=False), SHOWN_CHARS + 2)


def _written(path: tuple[str, ...]) -> str:
    """A path as TOML has it: names with dots in quotes."""
    return ".".join(key if re.fullmatch(BARE, key) else json.dumps(clip(key), ensure_ascii=False) for key in path)
