"""Runs several commands in one process, on the terminal that it has: `python -m tests.cli.every JSON`.

JSON is a list of lists of words. Before the output of each command stands a line with a mark.
"""

from __future__ import annotations

import contextlib
import json
import sys

from penstock.cli.app import cli

MARK = "====="


def main(commands: list[list[str]]) -> None:
    """Run one command after another, whatever becomes of each."""
    for words in commands:
        print(MARK, flush=True)
        with contextlib.suppress(SystemExit):
            cli.main(words)
        sys.stderr.flush()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
