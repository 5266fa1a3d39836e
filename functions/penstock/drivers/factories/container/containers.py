"""The containers of one factory at an engine: each is found by its name, and known as ours by its labels. [UNIT-1]"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from penstock.drivers.factories.container.engine import CONFLICT, MISSING, Engine
from penstock.drivers.factories.container.spec import SERVICE, UNIT, Deployment
from penstock.drivers.factories.container.streams import output, pull
from penstock.kernel.errors import Misconfigured, Unknown
from penstock.kernel.frozen import dataclass

NOT_STARTED = ("created", "configured", "initialized")
ENDING = ("removing", "stopping", "dead")
ENDED = ("exited", "stopped")
"""States of a container, as the two engines call them."""

NO_CONTAINER = b"no such container"
"""What both engines say, in capital letters or not."""


@dataclass(frozen=True)
class Container:
    """A container of ours: the engine's id of it, its state, and why it failed, if the engine says so.

    `started` is when it was started, as the engine writes it; `code` is with what its program ended. `is_bounded`: the
    engine bounds its memory, which some do not without root, and do not say.
    """

    id: str
    state: str
    why: str = ""
    started: str = ""
    code: int = 0
    is_bounded: bool = True


@dataclass(frozen=True)
class Entry:
    """A container in a list: the engine's id of it, its worker, and which service of that it is, "" for none."""

    id: str
    unit: str
    service: str = ""


class Containers:
    """The containers of one factory."""

    def __init__(self, engine: Engine, of_us: Deployment) -> None:
        self._engine, self._of_us = engine, of_us

    def has_image(self, image: str) -> bool:
        """Whether an image is there; if not, pull it, as far as one call can."""
        there = self._engine.call("GET", f"/images/{image}/json", None, None, MISSING).status != MISSING
        return there or pull(self._engine, image)

    def find(self, name: str, unit: str) -> Container | None:
        """The container of a worker that has a name. Raises Misconfigured if it is not of this factory."""
        answer = self._engine.call("GET", f"/containers/{name}/json", None, None, MISSING)
        if answer.status == MISSING:
            if NO_CONTAINER not in answer.body.lower():  # a path that is not there is no proof that a container is not
                raise garbage("answer to a question for a container")
            return None
        found = answer.json()
        try:
            labels, state = found["Config"]["Labels"] or {}, found["State"]
            made = _container(str(found["Id"]), state, is_bounded=int(found["HostConfig"]["Memory"]) > 0)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise garbage("description of a container") from error
        if not self._is_ours(labels) or labels.get(UNIT) != unit:
            raise Misconfigured(f"the engine has a container named {name} that this factory did not make: remove it")
        return made

    def make(self, name: str, unit: str, description: Mapping[str, Any]) -> Container | None:
        """Create a container. Another call may have been first: the engine makes one of a name only."""
        try:
            self._engine.call("POST", "/containers/create", {"name": name}, description, CONFLICT)
        except Unknown:
            if self.find(name, unit) is None:
                raise
        return self.find(name, unit)

    def start(self, found: Container) -> None:
        """Start a container. If another call has, nothing happens."""
        self._engine.call("POST", f"/containers/{found.id}/start")

    def put(self, found: Container, files: bytes) -> None:
        """Put files into a container: a tar, below its root."""
        self._engine.call("PUT", f"/containers/{found.id}/archive", {"path": "/"}, files)

    def has_file(self, found: Container, path: str) -> bool:
        """Whether a file is in a container."""
        answer = self._engine.call("HEAD", f"/containers/{found.id}/archive", {"path": path}, None, MISSING)
        return answer.status != MISSING

    def succeeds(self, found: Container, command: str, seconds: float) -> bool:
        """Whether a command for the shell succeeds in a container. One that takes longer does not."""
        asked = {"Cmd": ["/bin/sh", "-c", command], "AttachStdout": True, "AttachStderr": True}
        run = self._engine.call("POST", f"/containers/{found.id}/exec", None, asked).json()
        path = f"/exec/{run.get('Id')}" if isinstance(run, dict) else ""
        attached = {"Detach": False, "Tty": False}  # Podman does not notice the end of one that is detached
        with suppress(Unknown), self._engine.stream("POST", f"{path}/start", None, seconds, attached) as parts:
            for _ in parts:
                pass
        state = self._engine.call("GET", f"{path}/json").json()
        if not isinstance(state, dict) or "Running" not in state:
            raise garbage("description of a command")
        return not state["Running"] and state.get("ExitCode") == 0

    def remove(self, id: str) -> None:
        """Remove a container by force, whatever runs in it; it need not exist."""
        self._engine.call("DELETE", f"/containers/{id}", {"force": "1", "v": "1"}, None, MISSING, CONFLICT)

    def listed(self, unit: str = "") -> Sequence[Entry]:
        """The containers of this factory, in whatever state; or those of one worker."""
        labels = {**self._of_us.labels, **({UNIT: unit} if unit else {})}
        wanted = [f"{label}={value}" for label, value in labels.items()]
        query = {"all": "1", "filters": json.dumps({"label": wanted})}
        found = self._engine.call("GET", "/containers/json", query).json()
        try:
            return list(self._entries(found, unit))
        except (KeyError, TypeError, AttributeError) as error:
            raise garbage("list") from error

    def _entries(self, found: Any, unit: str) -> Iterable[Entry]:
        for each in found:
            labels = each["Labels"]
            if self._is_ours(labels) and unit in ("", labels[UNIT]):
                yield Entry(str(each["Id"]), str(labels[UNIT]), str(labels.get(SERVICE, "")))

    def _is_ours(self, labels: Mapping[str, str]) -> bool:
        return self._of_us.labels.items() <= labels.items()

    def output(self, id: str) -> str:
        """The end of what a container printed."""
        return output(self._engine, id)


def _container(id: str, state: Mapping[str, Any], *, is_bounded: bool) -> Container:
    more = str(state.get("Error") or ""), str(state.get("StartedAt") or ""), int(state.get("ExitCode") or 0)
    return Container(id, str(state["Status"]).lower(), *more, is_bounded)


def garbage(what: str) -> Unknown:
    """The failure for an answer of another form than the engine's documents say."""
    return Unknown(f"the container engine sent a {what} that has not the documented form", "Garbage")
