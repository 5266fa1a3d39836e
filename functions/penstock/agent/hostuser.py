"""Whether the jobs of a host, which run as a user of their own, can reach its agent. Checked when the agent starts.

Most checks are made as that user, so the kernel answers them. [SEC-2]
"""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from .account import Account, existing_account
from .machine import Machine
from .prepare import Failed, ways_to_root

SH = 'how=$1; shift; for each; do if [ "$how" "$each" ]; then printf "%s\\0" "$each"; fi; done'
PROBE_SECONDS = 20.0


def host_account(name: str, root: Path | None) -> Account:
    """Return the account of a host's jobs. Raises OSError, which says what to do, if there cannot be one."""
    if os.geteuid() != 0:
        raise OSError(f"only root can run jobs as {name}: start the agent as root, or leave out --user")
    if not sys.platform.startswith("linux"):
        raise OSError(f"--user needs Linux, and this is {sys.platform}")
    if root is None:
        raise OSError("--user needs a --root: the default is below --state, where jobs may not look")
    return existing_account(name)


def check_apart(account: Account, machine: Machine, state: Path, token: Path | None) -> None:
    """Make sure that the jobs' user can neither read the agent's secrets nor change what it runs. Raises OSError."""
    secrets = [str(state), *([str(token.absolute())] if token else [])]
    programs = [os.path.realpath(sys.argv[0]), os.path.realpath(sys.executable)]
    for why in (
        *_home_faults(account),
        *_secret_faults(account, secrets),
        *_writable_faults(account, [*secrets, *programs, machine.root, machine.program]),
        *_root_faults(account, machine),
    ):
        raise OSError(why)


def _home_faults(account: Account) -> Iterator[str]:
    """A home of the user's own is not emptied after jobs, so it must not be one: it may be a person's."""
    home = pwd.getpwnam(account.name).pw_dir
    if os.path.isdir(home) and (_owns(account, home) or _allowed(account, "-w", [home])):
        yield (
            f"jobs of {account.name} could leave something in its home {home} for later ones: "
            f"give it none (useradd --system --no-create-home), or one that belongs to root"
        )


def _secret_faults(account: Account, paths: Sequence[str]) -> Iterator[str]:
    for path in paths:
        if _owns(account, path) or any(_allowed(account, how, [path]) for how in ("-r", "-w", "-x")):
            yield f"{account.name} must not be able to use {path}: chown root {path}; chmod go= {path}"


def _writable_faults(account: Account, paths: Iterable[str]) -> Iterator[str]:
    """Neither the paths may be writable nor the folders above, where they could be exchanged."""
    all_ = sorted({each for path in paths for each in _with_parents(path) if os.path.lexists(each)})
    writable = {each for each in _allowed(account, "-w", all_) if not _is_sticky(each)}
    for path in all_:
        if path in writable or _owns(account, path):
            yield f"{account.name} must not be able to change {path}: chown root {path}; chmod go-w {path}"


def _root_faults(account: Account, machine: Machine) -> Iterator[str]:
    if not _allowed(account, "-x", [machine.root]):
        yield f"{account.name} cannot enter the --root {machine.root}: chmod go+x it and the folders above"
    try:
        ways = ways_to_root(account)
    except Failed as why:
        raise OSError(str(why)) from why
    if ways:
        yield f"{account.name} can become root: {'; '.join(ways)}. Take this away from it, or choose another user"


def _with_parents(path: str) -> Iterator[str]:
    """Yield a path and the folders above, as they are named and as links lead there."""
    for each in {os.path.abspath(path), os.path.realpath(path)}:
        yield each
        yield from map(str, Path(each).parents)


def _owns(account: Account, path: str) -> bool:
    return os.lstat(path).st_uid == account.uid


def _is_sticky(path: str) -> bool:
    """Return whether only the owners of a folder's entries may exchange them."""
    found = os.stat(path)
    return stat.S_ISDIR(found.st_mode) and bool(found.st_mode & stat.S_ISVTX)


def _allowed(account: Account, how: str, paths: Sequence[str]) -> list[str]:
    """Return the paths that the user may read (-r), write (-w), or enter or run (-x)."""
    done = subprocess.run(
        ["/bin/sh", "-c", SH, "-", how, *paths], cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, timeout=PROBE_SECONDS, check=True, **account.popen_options(),
    )  # fmt: skip
    return [os.fsdecode(each) for each in done.stdout.split(b"\0") if each]
