"""Session policies: IAM policy documents in the site's settings, checked there and filled in for each lease.

A session may do what both its role and this document allow. docs/operators/wells/sts.md describes what to write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from penstock.toml.checks import Place, clip, listed, record, text, wanted

VERSION = "2012-10-17"
"""The only version of policies that has variables."""

MOST = 2048
"""Characters of the session policy and the ARNs of managed policies together. Source: AWS STS, AssumeRole."""

STATEMENTS = 40
ENTRIES = 100
LONGEST = {"job": "0" * 26, "unit": "r-" + "0" * 26, "site": "0" * 64}
"""The placeholders ${name} of a policy, each with its longest possible value."""

OWN_VARIABLES = ("*", "?", "$")
ASSUME = "sts:assumerole"
_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")
_EXAMPLE = '{ Effect = "Allow", Action = "s3:GetObject", Resource = "arn:aws:s3:::bucket/${job}/*" }'


def document(value: object, place: Place) -> str:
    """A policy as compact JSON, from JSON text, a table, or a list of statements."""
    before = len(place.faults)
    found = _parsed(value, place) if isinstance(value, str) else value
    if isinstance(found, list | tuple):
        found = {"Statement": list(found)}
    if len(place.faults) == before:
        _policy(found, place)
    if len(place.faults) > before or not isinstance(found, Mapping):
        return ""
    return json.dumps({"Version": VERSION, **found}, separators=(",", ":"))


def size(policy: str, arns: Sequence[str]) -> int:
    """The most characters that a session's policies can have after filling in."""
    return len(filled(policy, LONGEST)) + sum(map(len, arns))


def filled(policy: str, names: Mapping[str, str]) -> str:
    """A policy for one lease. Variables of AWS stay as they are."""
    return _PLACEHOLDER.sub(lambda found: names.get(found[1], found[0]), policy)


def _parsed(value: str, place: Place) -> Any:
    try:
        return json.loads(value)
    except ValueError as error:
        place.fault(f"{place.label} is not JSON: {error}", "correct it, or write it as a list of tables in TOML")
        return None


def _policy(value: object, place: Place) -> None:
    if isinstance(value, Mapping) and value.get("Version", VERSION) != VERSION:
        (place / "Version").fault(f"{place.label} must have the version {VERSION}", "leave it out")
    _document(value, place)


def _statements(value: object, place: Place) -> tuple[Any, ...]:
    found = value if isinstance(value, list | tuple) else [value]
    if not found:
        place.fault(f"{place.label} is empty", "add a statement: a session without one may do nothing")
    checked: tuple[Any, ...] = listed(_statement, STATEMENTS, "statements")(found, place)
    return checked


def _statement(value: object, place: Place) -> Any:
    found = _fields(value, place)
    if not isinstance(value, Mapping):
        return found
    for one, other in (("Action", "NotAction"), ("Resource", "NotResource")):
        if (one in value) == (other in value):
            place.fault(f"{place.label} needs either `{one}` or `{other}`", f"like {_EXAMPLE}")
    if value.get("Effect") == "Allow" and _may_assume(value):
        place.fault(
            f"{place.label} lets a session assume other roles, whose sessions would outlive the lease",
            "allow only the services that jobs need, like s3:* and sqs:SendMessage",
        )
    return found


def _may_assume(statement: Mapping[str, Any]) -> bool:
    """Whether a statement allows assuming roles. Only sessions of the well's own role can be revoked."""
    if "NotAction" in statement:
        return not _names(statement["NotAction"])
    return _names(statement.get("Action", ()))


def _names(actions: object) -> bool:
    patterns = actions if isinstance(actions, list | tuple) else [actions]
    return any(fnmatchcase(ASSUME, str(pattern).lower().replace("[", "[[]")) for pattern in patterns)


def _effect(value: object, place: Place) -> str:
    found = text(value, place)
    if found and found not in ("Allow", "Deny"):
        place.fault(f"{place.label}: `{clip(found)}` is neither Allow nor Deny")
    return found


def _texts(value: object, place: Place) -> Any:
    """A string, or a list of strings."""
    return listed(_text, ENTRIES, "strings")(value, place) if isinstance(value, list | tuple) else _text(value, place)


def _text(value: object, place: Place) -> str:
    found = text(value, place, MOST)
    _check_placeholders(found, place)
    return found


def _condition(value: object, place: Place) -> Any:
    """Condition operators with their keys and values. AWS checks their names."""
    if not isinstance(value, Mapping) or not all(isinstance(keys, Mapping) for keys in value.values()):
        wanted("a table of tables", value, place, 'like { StringLike = { "s3:prefix" = "${job}/*" } }')
        return {}
    for operator, keys in value.items():
        for key, found in keys.items():
            if not isinstance(found, bool | int):
                _texts(found, place / operator / key)
    return value


def _check_placeholders(found: str, place: Place) -> None:
    for name in _PLACEHOLDER.findall(found):
        if name not in LONGEST and ":" not in name and name not in OWN_VARIABLES:
            known = ", ".join(f"${{{each}}}" for each in LONGEST)
            place.fault(
                f"{place.label}: there is no placeholder `${{{clip(name)}}}`", f"use {known}, or a variable of AWS"
            )


_fields = record(
    {"Effect": _effect},
    {
        "Sid": text,
        "Action": _texts,
        "NotAction": _texts,
        "Resource": _texts,
        "NotResource": _texts,
        "Condition": _condition,
    },
    _EXAMPLE,
)
_document = record({"Statement": _statements}, {"Version": text, "Id": text}, f"{{ Statement = [{_EXAMPLE}] }}")
