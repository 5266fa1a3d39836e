"""Answers `bmat` while tasks run."""

from __future__ import annotations

import contextlib
import os
import shlex
import socketserver
import sys
import tempfile
import threading
from collections.abc import Iterator

from . import shims
from .clerk import Clerk
from .control import Control
from .job import Job
from .places import Places

ASKED_BYTES = 1 << 22
"""The longest line that is read: a command and its environment, escaped as JSON."""


@contextlib.contextmanager
def desk(job: Job) -> Iterator[None]:
    """Give every connection what it asks of the job, for as long as it is ours.

    Credentials of resources, and secrets of the store, are given out here alone, to the job's own user. [SEC-1]
    """
    answer = type("Answer", (Answer,), {"clerk": Clerk(job), "control": job.control})
    with tempfile.TemporaryDirectory(prefix="bmat-", dir=_short_folder(job.places)) as folder:
        path = os.path.join(folder, "socket")
        with socketserver.ThreadingUnixStreamServer(path, answer) as server:
            os.chmod(path, 0o600)
            for each in (folder, path):
                job.places.give(each)
            _install(job.places, path)
            threading.Thread(target=server.serve_forever, args=(0.1,), name="bmat", daemon=True).start()
            yield
            server.shutdown()


class Answer(socketserver.StreamRequestHandler):
    """One connection."""

    clerk: Clerk
    control: Control
    timeout = 5.0

    def handle(self) -> None:
        line = self.rfile.readline(ASKED_BYTES)
        if not self.control.abandoned:
            self.wfile.write(self.clerk.answer(line))


def _short_folder(places: Places) -> str:
    """Return a folder for sockets, whose paths may have about 100 bytes. Jobs tidy up their own /tmp."""
    return places.bin if places.private and len(os.fsencode(places.bin)) < 70 else "/tmp"


def _install(places: Places, path: str) -> None:
    """Put `bmat` on the job's PATH: this very file, run so that it works whatever the caller's environment is.

    Beside it are the commands that a script expects, and this machine lacks.
    """
    command = shlex.join([sys.executable, "-I", "-S", places.program, "bmat"])
    text = f'#!/bin/sh\nPENSTOCK_SOCKET={shlex.quote(path)} exec {command} "$@"\n'
    shims.put(os.path.join(places.bin, "bmat"), text)
    shims.install(places.bin)
