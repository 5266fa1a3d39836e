"""`bmat resource`. Each command returns the lines to print, and raises Absent."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

from . import aws
from .facts import Absent, facts, pick, plain
from .table import table


def show_all(args: argparse.Namespace) -> Iterator[str]:
    """List names and types."""
    resources = facts()["resources"]
    rows = [[name, str(resources[name].get("type", ""))] for name in sorted(resources)]
    return table(rows, ["name", "type"], not args.no_header)


def show(args: argparse.Namespace) -> Iterator[str]:
    """Give a resource's metadata, or one value of it."""
    metadata = _metadata(args.name)
    if args.format != "json":
        yield from (aws.config if args.format == "aws-config" else aws.credentials)(args.name, metadata)
    elif args.key is None:
        yield json.dumps(metadata, indent=2, sort_keys=True)
    else:
        yield plain(_value(f"key of resource {args.name!r}:", args.key, metadata))


def _value(what: str, key: str, among: Any) -> Any:
    """Look a key up; `a.b` is b in a, where there is no key of that name. Raises Absent."""
    table_ = among if isinstance(among, dict) else {str(at): each for at, each in enumerate(among)}
    outer, dot, inner = key.partition(".")
    if key not in table_ and dot and isinstance(table_.get(outer), (dict, list)):
        return _value(f"{what} in {outer!r}", inner, table_[outer])
    return pick(what, key, table_)


def export(args: argparse.Namespace) -> Iterator[str]:
    """Give a resource's metadata as lines that a shell can evaluate: all of them, or none and why.

    A table in it becomes a variable for each of its values; a list is one, in JSON. A key that is a variable's name by
    itself, such as PGHOST, is exported by that as well: programs know it.
    """
    found: dict[str, tuple[str, str]] = {}
    for key, value in _leaves("", _metadata(args.name)):
        if "\0" in value:
            raise Absent(f"no variable can hold the zero byte in {key!r}: {_instead(args.name)}")
        for name in _variables(args.name, key):
            if name in found:
                raise Absent(f"{found[name][0]!r} and {key!r} would both be {name}: {_instead(args.name)}")
            found[name] = key, value
    return (f"export {name}={shlex.quote(value)}" for name, (_, value) in sorted(found.items()))


def _variables(resource: str, key: str) -> Iterator[str]:
    name = re.sub(r"\W", "_", f"{resource}_{key}", flags=re.ASCII).upper()
    yield f"{'_' if name[0].isdigit() else ''}{name}"
    if re.fullmatch(r"[A-Z][A-Z0-9_]*", key):
        yield key


def _leaves(path: str, table_: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in sorted(table_.items()):
        if isinstance(value, dict):
            yield from _leaves(f"{path}{key}.", value)
        else:
            yield f"{path}{key}", plain(value)


def _instead(name: str) -> str:
    return f"use `bmat resource get {name} KEY`"


def _metadata(name: str) -> dict[str, Any]:
    metadata: dict[str, Any] = pick("resource", name, facts()["resources"])["metadata"]
    return metadata
