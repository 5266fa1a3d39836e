"""`bmat identity`: what the job shows to others instead of a secret."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

from .facts import ask


def token(args: argparse.Namespace) -> Iterator[str]:
    """Give a token for an audience, a new one each time; as JSON with when it ends."""
    found = ask({"do": "identity", "audience": args.audience})
    yield json.dumps(found) if args.format == "json" else str(found["token"])
