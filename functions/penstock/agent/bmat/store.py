"""`bmat store`: values that the job and its user, or its own tasks, exchange."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

from .facts import Absent, ask

AGAIN_SECONDS = 2.0


def get(args: argparse.Namespace) -> Iterator[str]:
    """Give a value; wait until there is one."""
    found = ask({"do": "get", "name": args.name})
    while not found["there"]:
        if args.no_wait:
            raise Absent(f"there is no value {args.name!r}")
        time.sleep(AGAIN_SECONDS)
        found = ask({"do": "get", "name": args.name})
    yield str(found["value"])


def put(args: argparse.Namespace) -> Iterator[str]:
    """Put a value: the argument, or stdin without its last line end."""
    value = sys.stdin.read().removesuffix("\n") if args.value is None else args.value
    ask({"do": "put", "name": args.name, "value": value, "secret": args.secret})
    return iter(())
