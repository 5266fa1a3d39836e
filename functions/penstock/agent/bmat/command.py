"""What `bmat` does with its arguments."""

from __future__ import annotations

import sys

from .facts import Absent
from .usage import parser


def bmat(arguments: list[str]) -> int:
    """Print what was asked for. Return the exit code: 1, it is not there; 2 is for wrong usage."""
    args = parser().parse_args(arguments)
    try:
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogatepass")  # type: ignore[union-attr]
        for line in args.action(args):
            print(line)
    except Absent as why:
        print(f"bmat: {why}", file=sys.stderr)
        return 1
    return 0
