"""The kernel's keyrings, where programs keep passwords and tickets: no job finds an earlier one's. [UNIT-2] [SEC-1]

A user has keyrings, which last as long as the kernel wants, and a process has that of its session, which its children
inherit. Where the kernel has none, or the agent's container may not use them, its jobs cannot use any either. Python
has no functions for them, so the agent calls the kernel by number, on platforms whose numbers it knows.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import sys
import threading
from collections.abc import Iterator

KEYCTL, SETRESUID = "keyctl", "setresuid"
CALLS = {
    "x86_64": {KEYCTL: 250, SETRESUID: 117},
    "aarch64": {KEYCTL: 219, SETRESUID: 147},
    "riscv64": {KEYCTL: 219, SETRESUID: 147},
}
JOIN_SESSION, SET_PERMISSIONS, CLEAR, GET_PERSISTENT = 1, 5, 7, 22  # linux/keyctl.h
OF_THREAD, OF_USER, OF_USER_SESSION = -1, -4, -5
SELF = -1
ALL_PERMISSIONS = 0x3F3F0000  # for who holds it and for its owner
ABSENT = (errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM)
EMPTY = (126, 127, 128)  # ENOKEY, EKEYEXPIRED, EKEYREVOKED, which only Linux has: a job may end its keyrings itself


def join_new_session() -> None:
    """Give this thread, and all that it starts from now on, a session keyring with nothing in it. Raises OSError."""
    with _expecting(*ABSENT):
        _call(KEYCTL, JOIN_SESSION, 0)


def clear_keyrings(uid: int) -> None:
    """Clear the keyrings of a user, who has no processes any more. Raises OSError."""
    failures: list[OSError] = []
    thread = threading.Thread(target=_clear_as, args=(uid, failures), name="keyrings")
    thread.start()
    thread.join()
    for why in failures:
        raise OSError(why.errno, f"the keyrings of the user {uid} cannot be cleared: {why.strerror}")


def _clear_as(uid: int, failures: list[OSError]) -> None:
    """Become the user, in this thread alone, and for ever: only a user finds its keyrings."""
    try:
        with _expecting(errno.ENOSYS):
            _call(SETRESUID, uid, uid, uid)
            for ring in (OF_USER, OF_USER_SESSION):
                _clear(ring)
            with _expecting(*ABSENT, *EMPTY):
                _clear(_call(KEYCTL, GET_PERSISTENT, SELF, OF_THREAD))
    except OSError as why:
        failures.append(why)


def _clear(ring: int) -> None:
    """Clear a keyring, whatever its owner may do with it: a job can forbid itself to change it."""
    with _expecting(*ABSENT, *EMPTY):
        with _expecting(errno.EACCES):
            _call(KEYCTL, SET_PERMISSIONS, ring, ALL_PERMISSIONS)
        _call(KEYCTL, CLEAR, ring)


def _call(name: str, *words: int) -> int:
    """Call the kernel. Raises OSError. The C library would do some calls for all threads."""
    number = CALLS.get(platform.machine(), {}).get(name)
    if number is None or sys.platform != "linux" or sys.maxsize < 1 << 32:
        raise OSError(errno.ENOSYS, f"{name} is not known on this platform")
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    answer = int(libc.syscall(*map(ctypes.c_long, (number, *words))))
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return answer


@contextlib.contextmanager
def _expecting(*codes: int) -> Iterator[None]:
    """Ignore errors with these codes."""
    try:
        yield
    except OSError as why:
        if why.errno not in codes:
            raise
