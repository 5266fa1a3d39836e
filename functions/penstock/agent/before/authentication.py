"""Where git and curl find the job's token. It is in no environment, no command, and no file of the repository's."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Sequence

from .trying import Failed, persist, say

NAME = "GITHUB_TOKEN"
LOGIN = "x-access-token"


def authenticate(machines: Sequence[str]) -> None:
    """Wait for the token, and write ~/.netrc. Raises Failed, OSError. [SEC-1]"""
    token = persist(_token)
    home = os.environ["HOME"]
    path = os.path.join(home, ".netrc")
    _write(path, "".join(f"machine {each}\nlogin {LOGIN}\npassword {token}\n" for each in machines))
    say(f"~/.netrc has the job's token for {' and '.join(machines)}")


def _token() -> str:
    """Ask as any script may: who hands it out has it hidden in the log before."""
    asked = subprocess.run(["bmat", "store", "get", NAME], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    token = asked.stdout.decode("utf-8", "replace").strip()
    if asked.returncode:
        raise Failed(f"{NAME} cannot be had", passing=True)
    if not token:
        raise Failed(f"{NAME} is empty; the job's log says why there is none")
    if len(token.split()) != 1:
        raise Failed(f"{NAME} is no token")
    return token


def _write(path: str, text: str) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    draft = f"{path}.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(draft)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(draft, path)
