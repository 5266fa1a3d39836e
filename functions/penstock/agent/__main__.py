"""The agent's command line. What is imported depends on the command: `bmat` is called often and starts fast."""

from __future__ import annotations

import os
import sys


def main(argv: list[str]) -> int:
    """Run the agent, bmat or a preparation program, as the call's name or first argument says. Return the exit code."""
    as_bmat = argv[1:] if os.path.basename(argv[0]) == "bmat" else argv[2:] if argv[1:2] == ["bmat"] else None
    if as_bmat is not None:
        from .bmat import bmat

        return bmat(as_bmat)
    if argv[1:2] == ["prepare"]:
        from .prepare import prepare

        return prepare(argv[2:])
    from .cli import agent

    return agent(argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv))
