"""From the text of a site to a Site, or to everything that is wrong with the text."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from penstock.domain.errors import Fault
from penstock.domain.jobfile import parse_duration
from penstock.domain.site import Limits, Maker, ResourceType, Site, Target

T = TypeVar("T")

SITE_BYTES = 256 * 1024
SLOTS = 10_000
"""The most slots one pool may have."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PRIVILEGE = re.compile(r"[a-z0-9][a-z0-9._/-]{0,127}")
_NOT_YET = {"quotas": "quotas are not available yet", "warm": "keeping workers warm is not available yet"}
_DURATIONS = ("queue", "timeout", "timeout_most", "grace", "heartbeat", "lease", "boot")
_TABLES = ("factories", "targets", "wells", "resources", "limits", "quotas")
_KEYS = {
    "targets": ("factory", "limit", "redirect", "privilege", "warm"),
    "resources": ("well", "names", "limit", "privilege", "settings"),
}


def parse(text: str, path: str) -> Site | tuple[Fault, ...]:
    """The site that a TOML text describes, or all its faults."""
    if len(text.encode()) > SITE_BYTES:
        return (Fault(f"the site is larger than {SITE_BYTES // 1024} KiB", file=path),)
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return (_syntax(str(error), path),)
    reader = _Reader(document, path)
    site = reader.site()
    return tuple(reader.faults) or site


def _syntax(message: str, path: str) -> Fault:
    found = re.search(r"\(at line (\d+), column (\d+)\)", message)
    if not found:
        return Fault(f"this is not TOML: {message}", file=path)
    line, column = int(found[1]), int(found[2])
    return Fault(f"this is not TOML: {message[: found.start()].strip()}", file=path, line=line, column=column)


class _Reader:
    """Walks one document and collects what is wrong with it."""

    def __init__(self, document: Mapping[str, Any], path: str) -> None:
        self.document = document
        self.path = path
        self.faults: list[Fault] = []

    def site(self) -> Site:
        self._known("", self.document, _TABLES)
        if "quotas" in self.document:
            self._fault("quotas", _NOT_YET["quotas"], "take the table out for now")
        site = Site(
            factories=self._each("factories", self._maker),
            wells=self._each("wells", self._maker),
            targets=self._each("targets", self._target),
            resources=self._each("resources", self._resource),
            limits=self._limits(),
        )
        for where, message, hint in _broken_links(site):
            self._fault(where, message, hint)
        return site

    def _fault(self, where: str, message: str, hint: str | None = None) -> None:
        self.faults.append(Fault(message, where=where, file=self.path, hint=hint))

    def _known(self, where: str, table: Mapping[str, Any], keys: tuple[str, ...]) -> None:
        for key in table:
            if key not in keys:
                close = get_close_matches(key, keys, 1)
                hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(keys)}"
                self._fault(f"{where}.{key}".lstrip("."), f"unknown key {key!r}", hint)

    def _each(self, table: str, read: Callable[[str, str, Mapping[str, Any]], T]) -> dict[str, T]:
        found: dict[str, T] = {}
        entries = self.document.get(table, {})
        if not isinstance(entries, dict):
            self._fault(table, f"{table} must be a table of tables", f"write [{table}.NAME]")
            return found
        for name, entry in entries.items():
            where = f"{table}.{name}"
            if not _NAME.fullmatch(name):
                self._fault(where, f"{name!r} cannot be a name", "letters, digits, dots, dashes; at most 64")
            elif not isinstance(entry, dict):
                self._fault(where, f"{where} must be a table", f"write [{where}]")
            else:
                found[name] = read(where, name, entry)
        return found

    def _maker(self, where: str, name: str, entry: Mapping[str, Any]) -> Maker:
        settings = {key: value for key, value in entry.items() if key != "driver"}
        return Maker(name, self._text(where, entry, "driver", required=True) or "", settings)

    def _target(self, where: str, name: str, entry: Mapping[str, Any]) -> Target:
        self._known(where, entry, _KEYS["targets"])
        if "warm" in entry:
            self._fault(f"{where}.warm", _NOT_YET["warm"], "take the key out for now")
        redirect = self._text(where, entry, "redirect")
        if redirect is not None:
            for key in ("factory", "limit"):
                if key in entry:
                    self._fault(f"{where}.{key}", f"a redirect has no {key} of its own", f"take {key!r} out")
            return Target(name, redirect=redirect, privilege=self._privilege(where, entry))
        factory = self._text(where, entry, "factory", required=True)
        limit = self._whole(where, entry, "limit", 0, SLOTS, 1)
        return Target(name, factory=factory, limit=limit, privilege=self._privilege(where, entry))

    def _resource(self, where: str, name: str, entry: Mapping[str, Any]) -> ResourceType:
        self._known(where, entry, _KEYS["resources"])
        names = self._names(where, entry)
        if names is not None and "limit" in entry:
            self._fault(f"{where}.limit", "named slots are their own limit", "keep either names or limit")
        limit = len(names) if names is not None else self._whole(where, entry, "limit", 0, SLOTS, 1)
        settings = entry.get("settings", {})
        if not isinstance(settings, dict):
            self._fault(f"{where}.settings", "settings must be a table")
            settings = {}
        well = self._text(where, entry, "well", required=True) or ""
        return ResourceType(name, well, limit, names, self._privilege(where, entry), settings)

    def _limits(self) -> Limits:
        entry = self.document.get("limits", {})
        if not isinstance(entry, dict):
            self._fault("limits", "limits must be a table", "write [limits]")
            return Limits()
        keys = tuple(Limits.__dataclass_fields__)
        self._known("limits", entry, keys)
        values: dict[str, int] = {}
        for key in keys:
            if key in _DURATIONS and key in entry:
                found = parse_duration(entry[key])
                if isinstance(found, str):
                    self._fault(f"limits.{key}", found)
                else:
                    values[key] = found
            elif key in entry:
                values[key] = self._whole("limits", entry, key, 0, 5 * 1024**3, 0)
        return Limits(**values)

    def _text(self, where: str, entry: Mapping[str, Any], key: str, *, required: bool = False) -> str | None:
        value = entry.get(key)
        if isinstance(value, str) and value:
            return value
        if key in entry:
            self._fault(f"{where}.{key}", f"{key} must be a text that is not empty")
        elif required:
            self._fault(where, f"{where} lacks {key!r}", f'add {key} = "..."')
        return None

    def _privilege(self, where: str, entry: Mapping[str, Any]) -> str | None:
        value = self._text(where, entry, "privilege")
        if value is not None and not _PRIVILEGE.fullmatch(value):
            self._fault(f"{where}.privilege", f"{value!r} cannot be a privilege", "like target.lab")
        return value

    def _whole(self, where: str, entry: Mapping[str, Any], key: str, least: int, most: int, default: int) -> int:
        value = entry.get(key, default)
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        self._fault(f"{where}.{key}", f"{key} must be a whole number from {least} to {most}")
        return default

    def _names(self, where: str, entry: Mapping[str, Any]) -> tuple[str, ...] | None:
        if "names" not in entry:
            return None
        names = entry["names"]
        good = isinstance(names, list) and all(isinstance(n, str) and _NAME.fullmatch(n) for n in names)
        if not good or len(set(names)) != len(names) or len(names) > SLOTS:
            self._fault(f"{where}.names", "names must be a list of different names", 'like ["bench-1", "bench-2"]')
            return ()
        return tuple(names)


def _broken_links(site: Site) -> Iterator[tuple[str, str, str | None]]:
    """Names that lead nowhere: where, what, and what was perhaps meant."""
    for target in site.targets.values():
        where = f"targets.{target.name}"
        if target.factory is not None and target.factory not in site.factories:
            yield (
                f"{where}.factory",
                f"there is no factory {target.factory!r}",
                _close(target.factory, site.factories),
            )
        if target.redirect is not None and site.resolve(target.name) is None:
            yield (
                f"{where}.redirect",
                f"{target.redirect!r} leads to no target",
                _close(target.redirect, site.targets),
            )
    for kind in site.resources.values():
        if kind.well and kind.well not in site.wells:
            yield (
                f"resources.{kind.name}.well",
                f"there is no well {kind.well!r}",
                _close(kind.well, site.wells),
            )


def _close(name: str, known: Mapping[str, Any]) -> str | None:
    close = get_close_matches(name, known, 1)
    return f"did you mean {close[0]!r}?" if close else (f"there are: {', '.join(known)}" if known else None)
