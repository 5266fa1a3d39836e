"""What a session may do: a document of the site's, checked with the site's settings, and filled in for one lease.

AWS gives a session what both its role and this document allow. docs/operators/wells/sts.md tells people what to write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from penstock.toml.checks import Place, clip, listed, record, text, wanted

VERSION = "2012-10-17"
"""The only version that knows variables."""

MOST = 2048
"""Characters of a session's policy and of the ARNs of its managed ones, together. Source: AWS STS, AssumeRole."""

STATEMENTS = 40
ENTRIES = 100
LONGEST = {"job": "0" * 26, "unit": "r-" + "0" * 26, "site": "0" * 64}
"""The names that may stand as ${name} in a policy, and the longest that each may become."""

OWN_VARIABLES = ("*", "?", "$")
ASSUME = "sts:assumerole"
_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")
_EXAMPLE = '{ Effect = "Allow", Action = "s3:GetObject", Resource = "arn:aws:s3:::bucket/${job}/*" }'


def document(value: object, place: Place) -> str:
    """A policy as JSON without blanks, from JSON text, a table, or a list of statements."""
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
    """How many characters a session's policies may have at the most, with everything filled in."""
    return len(filled(policy, LONGEST)) + sum(map(len, arns))


def filled(policy: str, names: Mapping[str, str]) -> str:
    """A policy for one lease. What is no placeholder of ours stays: it is AWS's."""
    return _PLACEHOLDER.sub(lambda found: names.get(found[1], found[0]), policy)


def _parsed(value: str, place: Place) -> Any:
    try:
        return json.loads(value)
    except ValueError as error:
        place.fault(f"{place.label} is not JSON: {error}", "or write it as a list of tables in TOML")
        return None


def _policy(value: object, place: Place) -> None:
    if isinstance(value, Mapping) and value.get("Version", VERSION) != VERSION:
        (place / "Version").fault(f"{place.label} has another version than {VERSION}", "leave it out")
    _document(value, place)


def _statements(value: object, place: Place) -> tuple[Any, ...]:
    found = value if isinstance(value, list | tuple) else [value]
    if not found:
        place.fault(f"{place.label} is empty", "a session without a statement may do nothing at all")
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
            f"{place.label} lets a session assume other roles, and their sessions would outlive the lease",
            "name the services that it is for, like s3:* and sqs:SendMessage",
        )
    return found


def _may_assume(statement: Mapping[str, Any]) -> bool:
    """Whether a statement allows to assume roles: what is revoked is this role's sessions, and no other's."""
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
    """One text or a list of some."""
    return listed(_text, ENTRIES, "strings")(value, place) if isinstance(value, list | tuple) else _text(value, place)


def _text(value: object, place: Place) -> str:
    found = text(value, place, MOST)
    _check_placeholders(found, place)
    return found


def _condition(value: object, place: Place) -> Any:
    """Operators, their keys and values. Which there are, AWS knows."""
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
            ours = ", ".join(f"${{{each}}}" for each in LONGEST)
            place.fault(f"{place.label}: there is no `${{{clip(name)}}}`", f"there are {ours}, and AWS's own")


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
