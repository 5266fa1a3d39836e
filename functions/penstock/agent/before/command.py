"""`agent.pyz before NAME WORD...`: the programs of the tasks before the job's script."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .authentication import authenticate
from .clone import clone
from .setup import User, setup
from .toolchain import install, install_named, install_of
from .trying import Failed, complain

WORK: Mapping[str, Callable[..., None]] = {
    "setup": lambda name, uid, gid, home: setup(User(name, int(uid), int(gid), home)),
    "authentication": lambda *machines: authenticate(machines),
    "clone": clone,
    "toolchain": install,
    "toolchain-named": install_named,
    "toolchain-of": install_of,
}
"""Words are taken as they are: whatever a job file says, none of them is an option."""


def before(arguments: list[str]) -> int:
    """Do what one of them is to do. Return its exit code; the last line says why, if it failed."""
    name, *words = arguments
    try:
        WORK[name](*words)
    except Failed as why:
        return complain(why)
    except OSError as why:
        return complain(Failed(str(why)))
    return 0
