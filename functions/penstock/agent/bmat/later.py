"""Commands that are known but not available yet."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

COMMANDS = {
    "cache": "caches",
}


class NotYet(Exception):
    """A command is not available yet."""


def refuse(args: argparse.Namespace) -> Iterator[str]:
    raise NotYet(f"bmat {args.command} is not available yet")
