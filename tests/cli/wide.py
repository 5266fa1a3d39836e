"""A service all of whose lists are as wide as they get: its answers are made from the API's own document."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import resources
from typing import Any

from tests.cli.service import Service

ULIDS = ("01KDVDNA02G83EFRTNJJN6PQ8A", "01KDVDNA03ZZZZZZZZZZZZZZZZ", "01KDVDNB00G83EFRTNJJN6PQ8B")
"""Ids of things, of which no two are alike in their first nine letters but the first two."""

BEFORE = {"workers": "w-", "resources": "r-", "artifacts": f"{ULIDS[0]}.", "caches": f"{ULIDS[0]}."}
"""What stands before the ULID in the ids of a list."""

IDS = ("id", "job", "worker", "probe", "parent")
TIMES = re.compile(
    r"(since|until|time|used|created|expires|received|due|withdrawn|submitted|ready|acquired|started|settled|began|finished|made|ended)"
)
SHORT = ("owner", "series", "version", "slot")
LONG = f"a text about {ULIDS[0]} that is far too long for a terminal of eighty columns"


class Wide(Service):
    """Three entries in every list; all of them with a value for every property."""

    def answer(
        self, method: str, path: list[str], query: dict[str, list[str]], body: Any, key: str | None
    ) -> tuple[int, Any]:
        schema = _schema("/v1/" + "/".join(path)) if method == "GET" else None
        if schema is None:
            return super().answer(method, path, query, body, key)
        found = example(schema) | {"next": None}
        for item in found["items"] if path[0] in BEFORE else ():
            item["id"] = BEFORE[path[0]] + item["id"]
        return 200, found


@cache
def _document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(resources.files("penstock.api").joinpath("openapi.json").read_text())
    return found


def _schema(path: str) -> dict[str, Any] | None:
    """What a GET of a path answers; None if the document has no such path."""
    for known, operations in _document()["paths"].items():
        if "get" in operations and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", known), path):
            found: dict[str, Any] = operations["get"]["responses"]["200"]["content"]["application/json"]["schema"]
            return found
    return None


def example(schema: dict[str, Any], name: str = "", number: int = 0) -> Any:
    """A value of a schema, for a property with a name, in the entry with a number. There is no problem."""
    if name == "problem":
        return None
    if "$ref" in schema:
        return example(_document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]], name, number)
    if "anyOf" in schema:
        return example(schema["anyOf"][0], name, number)
    if "enum" in schema:
        return max(schema["enum"], key=len)
    match schema.get("type"):
        case "object" if "properties" in schema:
            return {key: example(value, key, number) for key, value in schema["properties"].items()}
        case "object":
            return {"team": "infrastructure", "purpose": LONG}
        case "array":
            return [example(schema["items"], name, at) for at in range(3)]
        case "integer" | "number":
            return 123
        case "boolean":
            return True
    return _text(name, number)


def _text(name: str, number: int) -> str:
    if name in IDS:
        return ULIDS[number]
    if TIMES.fullmatch(name):
        return "2026-01-01T10:00:00.123Z"
    if name == "pool":
        return "target/ubuntu-24.04"
    if name == "state":
        return "quarantined"
    return name if name in SHORT else "build-of-everything-for-illumos" if name == "name" else LONG
