"""What this host is at, kept in files, so that one that is started again goes on where it was. [JOB-2] [UNIT-2]

<state>/standing.json    the worker, and how far this host is with it
        session          what this agent is known by: another machine of the same name has another
        worker/          the folder of the worker's own agent
        lock             held by this agent for as long as it runs
        root/            the job's root, if no other is given
"""

from __future__ import annotations

import json
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

from .config import write_secret

WORKING, ENDED, CLEAN = "working", "ended", "clean"


@dataclass
class Standing:
    """The worker that holds this host, none when it is empty, and how far this host is with it."""

    folder: Path
    worker: str = ""
    stage: str = WORKING
    cleaned: str = ""
    pid: int = 0

    @classmethod
    def load(cls, folder: Path) -> Standing:
        """Read where this host was. Raises OSError or ValueError for a file that can't be read."""
        path = folder / "standing.json"
        return cls(folder, **(json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}))

    def note(self, worker: str, stage: str, cleaned: str = "", pid: int = 0) -> None:
        """Write where this host is, before it does what follows."""
        self.worker, self.stage, self.cleaned, self.pid = worker, stage, cleaned, pid
        told = {"worker": worker, "stage": stage, "cleaned": cleaned, "pid": pid}
        write_secret(self.folder / "standing.json", json.dumps(told))

    def forget(self) -> None:
        """This host is free; nothing of its last worker is left."""
        shutil.rmtree(self.crew, ignore_errors=True)
        self.note("", WORKING)

    @property
    def crew(self) -> Path:
        """The folder of the worker's own agent."""
        return self.folder / "worker"

    def session(self) -> str:
        """What this agent is known by; chosen once."""
        path = self.folder / "session"
        if not path.exists():
            write_secret(path, secrets.token_urlsafe(48))
        return path.read_text(encoding="ascii").strip()
