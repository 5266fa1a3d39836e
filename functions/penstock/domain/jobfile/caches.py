"""`cache`: folders and files that are there already when the job begins, and kept for later jobs when it succeeded."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.domain.jobfile.matrix import REFERENCE, fill
from penstock.kernel import limits
from penstock.toml.checks import Place, clip, entries, listed, matching, record, text

__all__ = ["CacheAsk", "check_caches", "fill_cache"]

EXAMPLE = '[cache.deps] with paths = ["deps"], key = "deps-1"'
PLACEHOLDER = re.compile(r'\{\{\s*hash(\s+"[^"{}]+")+\s*\}\}')
PLACEHOLDER_HINT = 'there is {{ hash "FILE" }}, with one file or pattern in quotes, or more'
PLAIN = re.compile(r"[ -~]*")


@dataclass(frozen=True)
class CacheAsk:
    """One cache that a job restores before its first task and saves when it has succeeded. The last three as written:
    the agent knows where a path is, and what a placeholder stands for."""

    name: str
    paths: tuple[str, ...]
    key: str
    restore_keys: tuple[str, ...] = ()


_name = matching(
    f"[0-9A-Za-z][0-9A-Za-z._-]{{0,{limits.CACHE_NAME_CHARS - 1}}}", "a cache's name", "letters, digits and . _ - only"
)


def check_caches(value: object, place: Place) -> tuple[CacheAsk, ...]:
    """A table of tables; the order stays."""
    asks = []
    for name, settings in entries(value, place, limits.CACHES, f"tables like {EXAMPLE}"):
        _name(name, place / name)
        asks.append(CacheAsk(**{"paths": (), "key": "", **_table(settings, place / name), "name": name}))
    return tuple(asks)


def _paths(value: object, place: Place) -> tuple[str, ...]:
    found: tuple[str, ...] = _listed_paths(value, place)
    if isinstance(value, list) and not value:
        place.fault(f"{place.label} names nothing", 'like paths = ["target"]')
    return found


def _path(value: object, place: Place) -> str:
    found = text(value, place, most=limits.CACHE_PATH_CHARS)
    steps = found.strip("/").split("/")
    if ".." in steps:
        place.fault(f"{place.label}: `..` leads out of what is named", "name the folder itself")
    elif found and not any(steps):
        place.fault(f"{place.label} is all of the machine", "name a folder")
    return found


def _template(value: object, place: Place) -> str:
    """A text in which placeholders may stand, and references to values of a matrix."""
    found = text(value, place, most=limits.CACHE_KEY_CHARS)
    left = PLACEHOLDER.sub("", REFERENCE.sub("", found))
    if "{{" in left or "}}" in left:
        at = max(left.find("{{"), 0)
        place.fault(f"{place.label}: `{clip(left[at:])}` is no placeholder", PLACEHOLDER_HINT)
    elif not PLAIN.fullmatch(found):
        place.fault(f"{place.label} holds characters that are not ASCII", "letters, digits, spaces and punctuation")
    return found


def fill_cache(ask: CacheAsk, values: Mapping[str, str]) -> CacheAsk:
    """A cache with the values of one combination of a matrix."""
    filled: dict[str, Any] = {
        "paths": tuple(fill(each, values) for each in ask.paths),
        "key": fill(ask.key, values),
        "restore_keys": tuple(fill(each, values) for each in ask.restore_keys),
    }
    return replace(ask, **filled)


_listed_paths = listed(_path, limits.CACHE_PATHS, "paths")
_table = record(
    {"paths": _paths, "key": _template},
    {"restore_keys": listed(_template, limits.CACHE_RESTORE_KEYS, "beginnings of keys")},
    EXAMPLE,
)
