"""What the format that job files were written for says of a file: rule by rule, in the order of the rules.

It shares nothing with penstock.jobfile, not even the reader of TOML.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

ACCEPTED = "accepted"
DISABLED = ("enabled", "disable", "disabled")
SHARED = ("name", "variety", "enable", "dependencies")
BASIC = ("target", "output_rules", "rust_toolchain", "access_repos", "publish", "skip_clone")
PUBLISH = ("from_output", "series", "name")


@dataclass(frozen=True)
class Verdict:
    """`rule` is what refuses the file, or "accepted"; then `parse` is what it says: all ten keys, with defaults."""

    rule: str
    parse: Mapping[str, Any] | None = None

    @property
    def digest(self) -> str:
        """The first 16 hex digits of what the parse has in JSON; "-" for a refusal."""
        if self.parse is None:
            return "-"
        return hashlib.sha256(json.dumps(self.parse, sort_keys=True).encode()).hexdigest()[:16]


class Broken(Exception):
    """A rule that a file breaks."""


def read(data: bytes) -> Verdict:
    """What the format says of a file's content."""
    try:
        return Verdict(ACCEPTED, _job(_document(_header(_text(data)))))
    except Broken as rule:
        return Verdict(str(rule))


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise Broken("not text") from None


def _header(text: str) -> list[str]:
    """The lines of TOML: those that begin with `#:` in the run of `#` lines right below the interpreter's."""
    first, *rest = text.split("\n")
    if not first.startswith("#!"):
        raise Broken("no interpreter line")
    found = []
    for line in rest:
        if not line.startswith("#"):
            break
        bare = line
        while bare.startswith("#:"):
            bare = bare[2:]
        if bare != line:
            found.append(bare)
    return found


def _document(lines: list[str]) -> dict[str, Any]:
    try:
        return dict(tomlkit.parse("\n".join(lines)).unwrap())
    except (TOMLKitError, ValueError, RecursionError):
        raise Broken("not TOML") from None


def _job(given: Mapping[str, Any]) -> dict[str, Any]:
    """All ten keys. What every variety has is looked at first; of a job that is off, no more than that."""
    for key in ("name", "variety"):
        if key not in given:
            raise Broken(f"no {key}")
    job: dict[str, Any] = {
        "name": _typed(given["name"], str, "name"),
        "variety": _typed(given["variety"], str, "variety"),
        "enable": _typed(given.get("enable", True), bool, "enable"),
        "dependencies": _dependencies(given.get("dependencies", {})),
    }
    if job["variety"] != "basic":
        raise Broken("wrong variety")
    if job["enable"]:
        for word in DISABLED:
            if word in given:
                raise Broken("a word for enable")
        if job["name"] in job["dependencies"].values():
            raise Broken("a circle")
        job |= _basic({key: value for key, value in given.items() if key not in SHARED})
    return job


def _basic(given: Mapping[str, Any]) -> dict[str, Any]:
    for key in given:
        if key not in BASIC:
            raise Broken("unknown key")
    toolchain = given.get("rust_toolchain")
    if toolchain is not None and not isinstance(toolchain, bool | str):
        raise Broken("wrong type of rust_toolchain")
    return {
        "target": _typed(given.get("target", "default"), str, "target"),
        "output_rules": [_rule(each) for each in _strings(given.get("output_rules", []), "output_rules")],
        "rust_toolchain": toolchain,
        "access_repos": _strings(given.get("access_repos", []), "access_repos"),
        "publish": [_published(each) for each in _typed(given.get("publish", []), list, "publish")],
        "skip_clone": _typed(given.get("skip_clone", False), bool, "skip_clone"),
    }


def _typed(value: Any, kind: type, key: str) -> Any:
    if type(value) is not kind:
        raise Broken(f"wrong type of {key}")
    return value


def _strings(value: Any, key: str) -> list[str]:
    return [_typed(each, str, key) for each in _typed(value, list, key)]


def _dependencies(value: Any) -> dict[str, str]:
    """By name the other job's name. The format ignores unknown keys."""
    found = {}
    for name, table in _typed(value, dict, "dependencies").items():
        settings = _typed(table, dict, "dependencies")
        if "job" not in settings:
            raise Broken("no job in dependencies")
        found[name] = _typed(settings["job"], str, "dependencies")
    return found


def _published(value: Any) -> list[str]:
    table = _typed(value, dict, "publish")
    for key in table:
        if key not in PUBLISH:
            raise Broken("unknown key")
    for key in PUBLISH:
        if key not in table:
            raise Broken(f"no {key} in publish")
    return [_typed(table[key], str, "publish") for key in PUBLISH]


def _rule(text: str) -> list[Any]:
    """The pattern, and what the sigils say: ignore, require a match, the size may change."""
    sigils = "".join(_sigils(text))
    if sigils not in ("", "!", "=", "%", "=%", "%="):
        raise Broken("wrong output rule")
    return [text[len(sigils) :], "!" in sigils, "=" in sigils, "%" in sigils]


def _sigils(text: str) -> Iterator[str]:
    """What stands before the path, which must be absolute."""
    before, slash, _ = text.partition("/")
    if not slash:
        raise Broken("wrong output rule")
    yield before
