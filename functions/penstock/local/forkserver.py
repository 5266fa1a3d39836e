"""A process that has imported what functions share, and forks one for each environment that is asked for.

    python -P forkserver.py SOCKET SCRIPT FOLDER...

runs SCRIPT in each. FOLDERs are the code and its layers: this file is run by its path, so that the `penstock` which is
imported is the deployed one. SOCKET brings four descriptors for each: standard input, output, error, and one that
nobody writes to and that closes when the process ends. The first line of the new process' input says
{"env", "cwd"}, the first line of its output its id. The server ends when the other end of the socket is closed.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import sys
from types import ModuleType

SHARED = ("boto3", "penstock.bootstrap", "penstock.aws.sqs")
PACKAGES = ("penstock.usecases", "penstock.api")
"""Of these every module: no handler imports all of them, and none much besides."""


def main() -> None:
    """Import, then fork for whoever asks, until nobody can ask any more."""
    descriptor, script = int(sys.argv[1]), sys.argv[2]
    sys.path[:0] = sys.argv[3:]
    _import()
    gc.freeze()  # what is shared is never looked at again, so that its pages stay shared
    given = _forked(descriptor)
    if given:
        _become(given)
        runpy.run_path(script, run_name="__main__")


def _import() -> None:
    for module in SHARED:
        _imported(module)
    for package in PACKAGES:
        for each in pkgutil.iter_modules(getattr(_imported(package), "__path__", []), f"{package}."):
            _imported(each.name)


def _imported(module: str) -> ModuleType | None:
    """A module, if it can be had: a function that needs one that cannot meets the same, and says which it was."""
    with contextlib.suppress(Exception):
        return importlib.import_module(module)
    return None


def _forked(descriptor: int) -> list[int]:
    """In each child, its descriptors; in the server none, when it has nothing left to do."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who has ended is gone: nobody waits for it here
    with socket.socket(fileno=descriptor) as asked:
        while given := socket.recv_fds(asked, 1, 4)[1]:
            if os.fork() == 0:
                return given
            for each in given:
                os.close(each)
    return []


def _become(given: list[int]) -> None:
    """A process like one that was just started."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for standard, each in enumerate(given[:3]):
        os.dup2(each, standard)
        os.close(each)
    os.set_inheritable(given[3], False)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
    told = json.loads(sys.stdin.readline())
    os.environ.clear()
    os.environ.update(told["env"])
    os.chdir(told["cwd"])
    print(os.getpid(), flush=True)


if __name__ == "__main__":
    main()
