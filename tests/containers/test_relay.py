"""The program that connects a container's loopback to the local cloud's socket."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.drivers.factories.container import relay

CLIENT = """
import socket, sys
for _ in range(2):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5) as end:
        end.sendall(b"x" * 300000)
        end.shutdown(socket.SHUT_WR)
        found = b""
        while part := end.recv(65536):
            found += part
        print(len(found))
sys.exit(7)
"""


@pytest.fixture
def path() -> Iterator[str]:
    """A socket at which everything is sent back once its sender has ended."""
    with tempfile.TemporaryDirectory(prefix="relay") as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/s")
        listener.listen()
        threading.Thread(target=echo, args=(listener,), daemon=True).start()
        yield f"{folder}/s"


def echo(listener: socket.socket) -> None:
    for _ in range(2):
        inner, _ = listener.accept()
        with inner:
            while data := inner.recv(1 << 16):
                inner.sendall(data)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def run(path: str) -> subprocess.CompletedProcess[str]:
    port = str(free_port())
    words = [sys.executable, "-I", "-S", str(relay.__file__), port, path, sys.executable, "-c", CLIENT, port]
    return subprocess.run(words, capture_output=True, text=True, timeout=30)


def test_it_relays_both_ways_and_ends_as_its_command(path: str) -> None:
    done = run(path)
    assert (done.stdout.split(), done.returncode) == (["300000", "300000"], 7), done.stderr


def test_without_the_socket_connections_just_end(path: str) -> None:
    Path(path).unlink()
    assert run(path).returncode != 0


def test_it_needs_nothing_of_penstocks() -> None:
    assert "penstock" not in [line.split()[1] for line in Path(str(relay.__file__)).read_text().splitlines()
                              if line.startswith(("import", "from"))]  # fmt: skip
