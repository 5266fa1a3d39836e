"""The user that a job's tasks run as, on a machine that was made for its jobs alone. Only what is missing is made."""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import shutil
from dataclasses import dataclass

from .trying import Failed, run, say

SUDOERS = "/etc/sudoers.d"


@dataclass(frozen=True)
class User:
    """The user that there is to be."""

    name: str
    uid: int
    gid: int
    home: str


def setup(user: User) -> None:
    """Make the user, with folders that are its own and leave to become root. Raises Failed, OSError."""
    _account(user)
    for folder in (user.home, "/work"):
        os.makedirs(folder, exist_ok=True)
        os.chown(folder, user.uid, user.gid)
        os.chmod(folder, 0o700)
    _give("/input", user)
    _sudo(user)


def _account(user: User) -> None:
    with contextlib.suppress(KeyError):
        found = pwd.getpwnam(user.name)
        if (found.pw_uid, found.pw_gid) != (user.uid, user.gid):
            ids = f"uid {found.pw_uid} and gid {found.pw_gid}, not {user.uid} and {user.gid}"
            raise Failed(f"this machine has a user {user.name} with {ids}")
        return
    with contextlib.suppress(KeyError):
        raise Failed(f"this machine has a user {pwd.getpwuid(user.uid).pw_name} with uid {user.uid}")
    try:
        grp.getgrgid(user.gid)
    except KeyError:
        run(["groupadd", "-g", str(user.gid), user.name])
    about = ["-u", str(user.uid), "-g", str(user.gid), "-d", user.home, "-M", "-s", "/bin/bash"]
    run(["useradd", *about, user.name])
    say(f"made the user {user.name}, uid {user.uid}")


def _give(top: str, user: User) -> None:
    """Inputs were fetched before there was a user to own them."""
    os.makedirs(top, exist_ok=True)
    os.chown(top, user.uid, user.gid)
    for folder, folders, files in os.walk(top):
        for name in (*folders, *files):
            os.lchown(os.path.join(folder, name), user.uid, user.gid)


def _sudo(user: User) -> None:
    """Whoever has the machine to itself may do with it what it likes, as root too."""
    if not shutil.which("sudo"):
        say("there is no sudo on this machine: jobs cannot become root")
        return
    path, rule = os.path.join(SUDOERS, user.name), f"{user.name} ALL=(ALL:ALL) NOPASSWD: ALL\n"
    with contextlib.suppress(OSError), open(path, encoding="utf-8") as file:
        if file.read() == rule:
            return
    os.makedirs(SUDOERS, mode=0o750, exist_ok=True)
    draft = f"{path}~"  # sudo passes over names with a ~
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o440), "w", encoding="utf-8") as file:
        file.write(rule)
    os.replace(draft, path)
    say(f"{user.name} may become root by sudo")
