"""Whether a disk of the job's is full."""

from __future__ import annotations

import contextlib
import errno
import os
from typing import Any

from .places import Places

FULL_BYTES, FULL_PART, FULL_FILES = 1 << 20, 64, 8
"""A disk is full with less than that free, or than that part of it, or with room for fewer files."""
SAYS = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT))
NUMBERS = (errno.ENOSPC, errno.EDQUOT)


def full(places: Places) -> dict[str, Any] | None:
    """Return the evidence for the first of the job's folders whose disk is full, as it is now."""
    for name in ("/work", "/tmp", "/home"):
        path = places.home if name == "/home" else places.on_machine(name)
        with contextlib.suppress(OSError):
            found = _look(name, os.statvfs(path))
            if found:
                return found
    return None


def _look(name: str, disk: os.statvfs_result) -> dict[str, Any] | None:
    blocks = disk.f_bavail if os.geteuid() else disk.f_bfree  # some are kept for root
    free, total = blocks * disk.f_frsize, disk.f_blocks * disk.f_frsize
    has_no_files = bool(disk.f_files) and disk.f_favail < FULL_FILES
    if free >= min(FULL_BYTES, total // FULL_PART) and not has_no_files:
        return None
    known = {"path": name, "free_bytes": free, "total_bytes": total, "source": "statvfs"}
    return {**known, "free_files": disk.f_favail} if disk.f_files else known


def said(lines: list[str]) -> dict[str, Any] | None:
    """Return the evidence of a task that says so: it may have tidied up since."""
    last = next((line for line in reversed(lines) if any(words in line for words in SAYS)), None)
    return {"source": "the task's last lines", "error": last} if last else None


def refused(why: BaseException | None) -> dict[str, Any] | None:
    """Return the evidence of an error that a full disk has led to, here in the agent."""
    while why is not None:
        if isinstance(why, OSError) and why.errno in NUMBERS:
            return {"source": "the agent's own writing", "error": str(why)}
        why = why.__cause__
    return None
