"""The program with which a container begins: it fetches the agent, verifies it, and becomes it.

Its source is in the task definition, as an argument of Python: the image needs Python 3.9, and neither a shell nor
coreutils. What is of one worker, its key too, comes in an environment variable, which only root of the container can
read. It prints no secret.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import urllib.request

GIVEN = "PENSTOCK_WORKER"
HOME = "/opt/penstock"
TRIES, PAUSE_SECONDS, FETCH_SECONDS = 8, 4, 30


def main(home: str = HOME) -> None:
    """Run the agent in the place of this program."""
    given = json.loads(os.environ.pop(GIVEN))
    os.umask(0o077)
    os.makedirs(home, exist_ok=True)
    os.chdir(home)
    file = fetch(given["config"]["url"] + "/v1/agent/agent.pyz")
    if hashlib.sha256(file).hexdigest() != given["sha256"]:
        sys.exit("penstock: this is not the agent")
    write("agent.pyz", file)
    write("agent.json", json.dumps(given["config"]).encode())
    os.execv(sys.executable, [sys.executable, "agent.pyz", "run", "--config", "agent.json"])


def fetch(url: str) -> bytes:
    """The agent's file. The network of a task may not be ready when it begins."""
    for attempt in range(1, TRIES + 1):
        try:
            with urllib.request.urlopen(url, timeout=FETCH_SECONDS) as answer:
                return bytes(answer.read())
        except OSError as error:
            print("penstock: the agent cannot be fetched, try", attempt, "-", error, flush=True)
            time.sleep(attempt * PAUSE_SECONDS)
    sys.exit("penstock: the agent cannot be fetched")


def write(name: str, content: bytes) -> None:
    """Write a file for root alone."""
    with open(name, "wb") as file:
        file.write(content)


if __name__ == "__main__":
    main()
