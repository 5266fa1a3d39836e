"""Makes a machine ready for another job: nothing of the last one is left where jobs have their files."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
from typing import Any

from .ending import end
from .family import Family
from .job import Job
from .places import Places

OF_THE_MACHINE = ("systemd-private-", "snap-private-")  # in /tmp: running services have theirs there


def clean(job: Job) -> str:
    """End and remove what a job left; return what was checked. Raises OSError for what can't be removed. [UNIT-2]"""
    return remove(job.family, job.places, str(job.config.folder), f"job {job.order.job}")


def remove(family: Family, places: Places, kept: str, whose: str) -> str:
    """The same, of whoever it is; but for the folder `kept`, which is the agent's own."""
    end(family.everybody, lambda: 0.0)
    folders = list(places.folders())
    for folder in folders:
        _empty(folder, kept)
    left = family.everybody()
    if left:
        raise OSError(f"processes {left} can't be ended")
    return f"no process of {whose} is left; nothing is in {', '.join(map(_named(places), folders))}"


def _named(places: Places) -> Any:
    return lambda folder: "its root" if places.private else folder


def _empty(folder: str, kept: str) -> None:
    """Remove all that is in a folder, but for the agent's own; what the job put in the folder's place as well."""
    if os.path.islink(folder) or os.path.isfile(folder):
        os.unlink(folder)
    if not os.path.isdir(folder):
        return
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):  # and never else: /tmp is everybody's
        with contextlib.suppress(PermissionError):
            os.chmod(folder, stat.S_IRWXU)
    for entry in os.scandir(folder):
        if entry.name.startswith(OF_THE_MACHINE):
            continue
        if entry.is_dir(follow_symlinks=False):
            if not f"{kept}/".startswith(f"{entry.path}/"):
                _remove_tree(entry.path)
        else:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(entry.path)


def _remove_tree(top: str) -> None:
    """Remove a folder, also one that is too deep for `shutil.rmtree`, which may recurse and opens a file per level."""
    try:
        shutil.rmtree(top, onerror=_opened)
    except (RecursionError, OSError) as why:
        if isinstance(why, OSError) and why.errno not in (errno.EMFILE, errno.ENAMETOOLONG):
            raise
        _flatten(top)
        shutil.rmtree(top, onerror=_opened)


def _flatten(top: str) -> None:
    """Move every folder of a tree to a new folder directly below its top."""
    flat = tempfile.mkdtemp(dir=top)
    folders = [top]
    for folder in folders:
        for entry in list(os.scandir(folder)):
            if entry.is_dir(follow_symlinks=False) and entry.path != flat:
                os.chmod(entry.path, stat.S_IRWXU)
                folders.append(f"{flat}/{len(folders)}")
                os.rename(entry.path, folders[-1])


def _opened(remove: Any, path: str, error: Any) -> None:
    """Remove what its owner had closed to itself; what is gone is clean. Raises OSError."""
    if isinstance(error[1], FileNotFoundError):
        return
    for each in (os.path.dirname(path), path):
        if not os.path.islink(each):
            os.chmod(each, stat.S_IRWXU)
    if remove in (os.unlink, os.rmdir):
        remove(path)
    else:
        shutil.rmtree(path)
