"""A program in a container, which waits until its services are ready: `wait.py WAITING GO COMMAND...`.

It makes the file WAITING, waits until the file GO is there, and becomes the command.

It is copied into containers as it is: it imports nothing of Penstock's, and runs with Python 3.9.
"""

from __future__ import annotations

import os
import sys
import time

LOOK_SECONDS = 0.1


def main(waiting: str, go: str, command: list[str]) -> None:
    """Wait, and run a command in the place of this program."""
    with open(waiting, "w", encoding="utf-8"):
        pass
    while not os.path.exists(go):
        time.sleep(LOOK_SECONDS)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
