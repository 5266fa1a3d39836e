"""`bmat factory`: where the job runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from .facts import facts, plain


def show(args: argparse.Namespace) -> Iterator[str]:
    """Give one fact: the factory's name, which is its id, or the worker's id. Raises Absent."""
    yield plain(facts()["worker" if args.fact == "private" else "factory"])
