"""The user that runs a job's tasks on a machine that was made for its jobs alone."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Account:
    """A user of the machine, by numbers that are the same everywhere: it may not be there yet."""

    name: str
    uid: int
    gid: int
    home: str

    def groups(self) -> list[int]:
        """Return the groups that it is in, which an image may have given it more of."""
        with contextlib.suppress(OSError):
            return os.getgrouplist(self.name, self.gid)
        return [self.gid]

    def options(self) -> dict[str, Any]:
        """Return what has `subprocess` start something as this user."""
        return {"user": self.uid, "group": self.gid, "extra_groups": self.groups()}


BUILD = Account("build", 12345, 12345, "/home/build")
"""As in buildomat, whose job files name it."""
