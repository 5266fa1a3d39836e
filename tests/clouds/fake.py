"""A cloud that does what real ones do and libcloud's own dummy does not: its lists lag, its machines take time to come
and to go, its calls fail before and after they had their effect, and asking twice makes two machines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from libcloud.compute.base import Node, StorageVolume
from libcloud.compute.drivers.dummy import DummyNodeDriver
from libcloud.compute.types import NodeState

from penstock.drivers.factories.libcloud.nodes import Cloud
from penstock.drivers.factories.libcloud.settings import Settings
from penstock.drivers.secrets import Resolve

SOMEBODYS = "dummy-1"


@dataclass
class Made:
    """A machine in the cloud's own books."""

    id: str
    name: str
    asked: Mapping[str, Any]
    hidden: int
    going: int | None = None
    state: Any = NodeState.RUNNING
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass
class Books:
    """What the cloud knows, whoever asks, and how it misbehaves."""

    machines: list[Made] = field(default_factory=list)
    lag: int = 0
    """How many lists a new machine is missing from."""
    dying: int = 0
    """How many lists a machine is still on after it was destroyed."""
    born: Any = NodeState.RUNNING
    failing: dict[str, list[Exception]] = field(default_factory=dict)
    """What the next calls of a kind raise, before they do anything."""
    lost: int = 0
    """How many of the next answers to create_node are lost: the machine is made."""
    short: Callable[[Mapping[str, Any]], Exception | None] = lambda asked: None
    """What a create_node raises by what it asks for."""
    disks: list[str] = field(default_factory=list)
    """The names of disks."""
    calls: list[str] = field(default_factory=list)
    numbers: Any = field(default_factory=count)

    def __post_init__(self) -> None:
        self.machines.append(Made("0", SOMEBODYS, {}, 0))

    def opened(self, settings: Settings, resolve: Resolve) -> Cloud:
        """What a factory connects to: another object each time, with the same books."""
        secrets = tuple(resolve(reference) for reference in settings.credentials.values())
        return Cloud(Front(self), secrets)

    @property
    def ours(self) -> list[Made]:
        return [made for made in self.machines if made.name != SOMEBODYS]


class Front(DummyNodeDriver):  # type: ignore[misc]
    """One client of the cloud."""

    def __init__(self, books: Books) -> None:
        super().__init__("0")
        self.books = books

    def list_nodes(self) -> list[Node]:
        self._begin("list_nodes")
        shown = []
        for made in list(self.books.machines):
            if made.hidden:
                made.hidden -= 1
                continue
            if made.going is not None:
                if made.going == 0:
                    self.books.machines.remove(made)
                    continue
                made.going -= 1
            shown.append(self._node(made))
        return shown[::-1]  # the newest first, as many do

    def create_node(
        self,
        name: str,
        size: Any,
        image: Any,
        location: Any = None,
        auth: Any = None,
        ex_userdata: str = "",
        ex_metadata: Mapping[str, str] | None = None,
    ) -> Node:
        asked = {
            "name": name,
            "size": size,
            "image": image,
            "location": location,
            "auth": auth,
            "ex_userdata": ex_userdata,
            "ex_metadata": ex_metadata or {},
        }
        self._begin("create_node")
        short = self.books.short(asked)
        if short:
            raise short
        made = Made(str(next(self.books.numbers) + 1), name, asked, self.books.lag, state=self.books.born)
        made.extra["metadata"] = dict(ex_metadata or {})
        self.books.machines.append(made)
        if self.books.lost:
            self.books.lost -= 1
            raise ConnectionResetError("the connection was reset")
        return self._node(made)

    def destroy_node(self, node: Node) -> bool:
        self._begin("destroy_node")
        made = next((each for each in self.books.machines if each.id == node.id), None)
        if made is not None and made.going is None:
            made.going = self.books.dying
        return True

    def list_volumes(self) -> list[StorageVolume]:
        self._begin("list_volumes")
        return [StorageVolume(f"disk-{at}", name, 8, self) for at, name in enumerate(self.books.disks)]

    def _begin(self, call: str) -> None:
        self.books.calls.append(call)
        if self.books.failing.get(call):
            raise self.books.failing[call].pop(0)

    def _node(self, made: Made) -> Node:
        born = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=int(made.id))
        return Node(made.id, made.name, made.state, [], [], self, created_at=born, extra=made.extra)
