"""`bmat resource`. Each command returns the lines to print, and raises Absent."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

from . import aws
from .facts import facts, pick, plain
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
        yield plain(pick(f"key of resource {args.name!r}:", args.key, metadata))


def export(args: argparse.Namespace) -> Iterator[str]:
    """Give a resource's metadata as lines that a shell can evaluate.

    A key that is a variable's name by itself, such as PGHOST, is exported by that as well: programs know it.
    """
    for key, value in sorted(_metadata(args.name).items()):
        variable = re.sub(r"\W", "_", f"{args.name}_{key}", flags=re.ASCII).upper()
        yield f"export {'_' if variable[0].isdigit() else ''}{variable}={shlex.quote(plain(value))}"
        if re.fullmatch(r"[A-Z][A-Z0-9_]*", key):
            yield f"export {key}={shlex.quote(plain(value))}"


def _metadata(name: str) -> dict[str, Any]:
    metadata: dict[str, Any] = pick("resource", name, facts()["resources"])["metadata"]
    return metadata
