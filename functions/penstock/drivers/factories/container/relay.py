"""A program in a container, which connects its loopback to a unix socket: `relay.py PORT SOCKET COMMAND...`.

The local cloud listens on the machine's loopback, which a container has not. It also listens on a socket, which the
container has as a mount. So the URLs of the local cloud are the same in a container, and nothing else of the machine's
loopback is in it. [SEC-2]

It is copied into containers as it is: it imports nothing of Penstock's, and runs with Python 3.9.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from contextlib import suppress

CHUNK = 1 << 16


def main(port: int, path: str, command: list[str]) -> int:
    """Relay connections while a command runs. Return its exit code."""
    listener = socket.create_server(("127.0.0.1", port), backlog=128)
    threading.Thread(target=serve, args=(listener, path), daemon=True).start()
    return subprocess.call(command)


def serve(listener: socket.socket, path: str) -> None:
    """Connect each connection to the socket."""
    while True:
        inner, _ = listener.accept()
        threading.Thread(target=connect, args=(inner, path), daemon=True).start()


def connect(inner: socket.socket, path: str) -> None:
    """Pass on what both sides send, until both have ended."""
    with inner, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as outer, suppress(OSError):
        outer.connect(path)
        back = threading.Thread(target=pass_on, args=(outer, inner), daemon=True)
        back.start()
        pass_on(inner, outer)
        back.join()


def pass_on(source: socket.socket, target: socket.socket) -> None:
    """Send on what one side sends; when it ends, tell the other."""
    with suppress(OSError):
        while data := source.recv(CHUNK):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
