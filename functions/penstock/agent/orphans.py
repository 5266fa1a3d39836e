"""Processes of the job whose parents have died. Linux only."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys

PR_SET_CHILD_SUBREAPER = 36


def adopt() -> None:
    """Have the job's orphans handed to the agent, so that nothing it starts can get lost."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def bury(keep: set[int]) -> None:
    """Collect dead orphans; the dead children `keep` are left to whoever started them."""
    while sys.platform == "linux":
        try:
            dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if dead is None or dead.si_pid in keep:
            return
        os.waitpid(dead.si_pid, 0)
