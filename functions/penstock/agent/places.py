"""Where the job's directories are."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass


@dataclass(frozen=True)
class Places:
    """On a machine of its own `root` is `/`; else job paths are looked up below `root`."""

    root: str

    @property
    def private(self) -> bool:
        return self.root != "/"

    def on_machine(self, path: str) -> str:
        """Return where a job's absolute path really is; `..` can't leave the root."""
        return os.path.join(self.root, os.path.normpath("/" + path).lstrip("/"))

    def in_job(self, path: str) -> str:
        """Return the name that the job knows a path of the machine by."""
        return path[len(self.root) :] if self.private else path

    def holds(self, path: str) -> bool:
        """Tell whether a path, its symlinks followed, is below the root."""
        return os.path.realpath(path).startswith(self.root.rstrip("/") + "/")

    @property
    def home(self) -> str:
        return self.on_machine("/home") if self.private else pwd.getpwuid(os.getuid()).pw_dir

    @property
    def bin(self) -> str:
        return self.on_machine("/bin" if self.private else "/usr/local/bin")

    def make(self) -> None:
        """Make the job's directories."""
        for path in (*map(self.on_machine, ("/work", "/input", "/tmp")), self.home, self.bin):
            os.makedirs(path, mode=0o755, exist_ok=True)
