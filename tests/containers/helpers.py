"""A factory at the fake, and an order."""

from __future__ import annotations

import socket
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from penstock.drivers import MAKER
from penstock.drivers.factories.container.factory import SITE, ContainerFactory
from penstock.drivers.factories.container.spec import CLOUD_SOCKET
from penstock.ports import Order
from tests.containers.fake import FakeEngine

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = "k" * 64
IMAGE = f"registry.example.com:5000/ci/python@sha256:{'ab' * 32}"
SETTINGS: dict[str, Any] = {"image": IMAGE}
WORKER = "w-01kdvg4000000000000000001a"


def factory(engine: FakeEngine, home: Path, name: str = "boxes", **more: Any) -> ContainerFactory:
    """A driver that shares nothing with others but the engine and the local cloud's home."""
    home.mkdir(parents=True, exist_ok=True)
    surroundings = {"PENSTOCK_HOME": str(home), SITE: "Penstock.here", MAKER: name}
    return ContainerFactory({**SETTINGS, "socket": engine.path, **more}, surroundings)


def listen(home: Path) -> socket.socket:
    """The local cloud's socket."""
    home.mkdir(parents=True, exist_ok=True)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.bind(str(home / CLOUD_SOCKET))
    made.listen()
    return made


def order(worker: str = WORKER, url: str = "https://penstock.example") -> Order:
    return Order(worker, "linux", "1", url=url, key=KEY)


class Place:
    """An engine and a local cloud's home, in a folder with a short path, until `end`."""

    def __init__(self, *images: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="engine")  # the path of a socket has 107 bytes at most
        self.folder = Path(self._folder.name)
        self.home = self.folder / "home"
        self.engine = FakeEngine(self.folder, *(images or (IMAGE,)))
        self._cloud = listen(self.home)

    def factory(self, name: str = "boxes", **more: Any) -> ContainerFactory:
        return factory(self.engine, self.home, name, **more)

    def end(self) -> None:
        self.engine.close()
        self._cloud.close()
        self._folder.cleanup()
