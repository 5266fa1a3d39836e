"""Connects a container's loopback to a service on the loopback of its host, through a socket that the container sees.

A container has a loopback of its own. If the service is on that of the host, as a local cloud is, the host's agent
listens on a unix socket and passes connections on to the service; and the agent in the container listens on the port of
the service and passes connections on to the socket. So the service's URLs mean the same on both sides, and the
container reaches nothing else of the host's loopback. [SEC-2]
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

SOCKET = "api.sock"
CHUNK = 1 << 16
BACKLOG = 128
FULL_SECONDS = 0.1


def loopback_port(url: str) -> int | None:
    """Return the port of a URL on the loopback; None for any other URL."""
    parts = urlsplit(url)
    if parts.hostname not in ("127.0.0.1", "localhost", "::1"):
        return None
    return parts.port or (443 if parts.scheme == "https" else 80)


def serve_socket(folder: Path, url: str) -> None:
    """Listen on a socket in a folder, and pass connections on to a service on the loopback. Raises OSError."""
    folder.mkdir(mode=0o755, exist_ok=True)
    (folder / SOCKET).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        listener.bind(f"/proc/self/fd/{opened}/{SOCKET}")  # the path itself may be longer than a socket's may be
    finally:
        os.close(opened)
    (folder / SOCKET).chmod(0o666)  # the folder above is closed to others
    listener.listen(BACKLOG)
    there = urlsplit(url).hostname, loopback_port(url)
    _serve(listener, lambda: socket.create_connection(there))


def serve_loopback(url: str, path: str) -> None:
    """Listen on the port of a service on the loopback, and pass connections on to a socket. Raises OSError."""
    _serve(socket.create_server(("127.0.0.1", loopback_port(url) or 0), backlog=BACKLOG), lambda: _connect(path))


def _connect(path: str) -> socket.socket:
    outer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    outer.connect(path)
    return outer


def _serve(listener: socket.socket, connect: Callable[[], socket.socket]) -> None:
    threading.Thread(target=_accept, args=(listener, connect), name="relay", daemon=True).start()


def _accept(listener: socket.socket, connect: Callable[[], socket.socket]) -> None:
    while True:
        try:
            inner, _ = listener.accept()
        except OSError:  # too many files are open, for example: later there may be fewer
            time.sleep(FULL_SECONDS)
            continue
        threading.Thread(target=_join, args=(inner, connect), daemon=True).start()


def _join(inner: socket.socket, connect: Callable[[], socket.socket]) -> None:
    """Pass on what both sides send, until both have ended."""
    with inner, contextlib.suppress(OSError), connect() as outer:
        back = threading.Thread(target=_pass_on, args=(outer, inner), daemon=True)
        back.start()
        _pass_on(inner, outer)
        back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    """Send on what one side sends; when it ends, tell the other."""
    with contextlib.suppress(OSError):
        while True:
            data = source.recv(CHUNK)
            if not data:
                break
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
