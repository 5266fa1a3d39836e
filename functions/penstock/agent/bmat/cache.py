"""`bmat cache`: files that later jobs find where this one had them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator

from .facts import Absent, ask


def restore(args: argparse.Namespace) -> Iterator[str]:
    """Say `hit` or `partial`, or raise Absent for a miss."""
    came = _ask("restore", args)
    if came["word"] == "miss":
        raise Absent(came["text"])
    yield from _tell(came)


def save(args: argparse.Namespace) -> Iterator[str]:
    """Say `saved`, `there` or `failed`: it is no reason for a job to fail that others will have to work more."""
    yield from _tell(_ask("save", args))


def _ask(what: str, args: argparse.Namespace) -> dict[str, str]:
    told = {"name": args.name, "paths": args.paths, "key": args.key, "restore_keys": getattr(args, "restore_keys", [])}
    return ask({"do": "cache", "what": what, "cwd": os.getcwd(), **told}, seconds=None)


def _tell(came: dict[str, str]) -> Iterator[str]:
    print(f"bmat: {came['text']}", file=sys.stderr, flush=True)
    yield came["word"]
