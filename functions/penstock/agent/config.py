"""The files in the agent's folder: its config, its token, and how far it is with its job."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path


@dataclass(frozen=True)
class Config:
    """The service's URL, the worker's id and bootstrap key, the job's root, and the folder of the config file.

    `identity` is the address of the machine's metadata service, empty if no identity document is needed. `alone`: the
    machine was made for this worker, and serves nothing else.
    """

    url: str
    worker: str
    key: str = field(repr=False)
    root: str
    folder: Path
    identity: str = ""
    alone: bool = False

    @classmethod
    def load(cls, path: Path) -> Config:
        """Read a config. Raises OSError, ValueError or KeyError for a file that can't be used."""
        data = json.loads(path.read_text(encoding="utf-8"))
        root = os.path.realpath(data.get("root", "/"))
        return cls(
            data["url"].rstrip("/"), data["worker"], data["key"], root, path.resolve().parent,
            data.get("identity", ""), data.get("alone") is True,
        )  # fmt: skip

    def token(self) -> str:
        """Return the worker token. It is chosen once, so that a hello whose answer was lost can be repeated. [SEC-2]"""
        path = self.folder / "token"
        return path.read_text(encoding="ascii").strip() if path.exists() else self.new_token()

    def new_token(self) -> str:
        """Choose the token for the next job, in place of the last job's."""
        token = secrets.token_urlsafe(48)
        write_secret(self.folder / "token", token)
        return token


def write_secret(path: Path, text: str) -> None:
    """Write a file that only its owner can read: atomically, and flushed to disk."""
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


class Step(Enum):
    """How far the agent is with its job."""

    NONE, STARTED, FINISHED = "", "started", "finished"


class Progress:
    """How far the agent is with its job, in a file, so that no restart runs the job twice. [JOB-2]"""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "progress"

    def read(self) -> Step:
        """Return the last step. A truncated file means that the job was started."""
        if not self._path.exists():
            return Step.NONE
        return Step.FINISHED if self._path.read_text(encoding="utf-8").startswith("finished") else Step.STARTED

    def note(self, step: Step, job: str) -> None:
        self._path.write_text(f"{step.value} {job}\n", encoding="utf-8")
