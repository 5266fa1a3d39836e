"""The service's side of a host that several jobs share."""

from __future__ import annotations

import json
import secrets
from typing import Any

from tests.agent.control_plane import KEY, ControlPlane, Handler, order
from tests.agent.lab import TOKEN


class Room:
    """A part of the host: the workers that are still to come to it, and the one that it has."""

    def __init__(self) -> None:
        self.left: list[str] = []
        self.on = ""


class SharedLab(ControlPlane):
    """A service with a host that is divided. Each worker has a control plane of its own, for its own job."""

    def __init__(self, image: str = "", parts: int = 2) -> None:
        super().__init__(order())
        self._server.RequestHandlerClass = type("Bound", (SharedHandler,), {"plane": self})
        self.image, self.parts = image, parts
        self.rooms = {number: Room() for number in range(parts + 1)}
        self.planes: dict[str, ControlPlane] = {}
        self.asks: list[dict[str, Any]] = []
        self.proofs: dict[str, str] = {}
        self.limits = {"cpus": 0.5, "memory": 256}
        self.key: str | None = KEY

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        for plane in self.planes.values():
            plane._server.server_close()

    def add(self, part: int, **changes: Any) -> str:
        """Have a worker for a part, with a job. Returns the worker."""
        with self.changed:
            worker = f"worker-{secrets.token_hex(6)}"
            job = order(worker=worker, job=f"job-{worker}", **changes)
            self.planes[worker] = ControlPlane(job)
            self.rooms[part].left.append(worker)
            return worker

    def told(self, part: int) -> list[dict[str, Any]]:
        """What was asked of one part, or of the host."""
        return [ask for ask in self.asks if ask.get("part", 0) == part]

    def of(self, worker: str) -> list[dict[str, Any]]:
        """What was said of a worker."""
        return [ask for ask in self.asks if ask["worker"] == worker]

    def take_back(self, part: int) -> None:
        """The worker of a part is no longer wanted."""
        with self.changed:
            self.rooms[part].on = ""

    def ask(self, body: dict[str, Any]) -> dict[str, Any]:
        """Answer the host as the service does."""
        self.asks.append(body)
        room, worker = self.rooms[body.get("part", 0)], body["worker"]
        if worker and worker != room.on:
            return self._say("forget", worker)
        if not worker and not room.on:
            if body["leaving"] or not room.left:
                return self._say("wait")
            room.on = room.left.pop(0)
        if not worker:
            container = {"image": self.image, **self.limits}
            return self._say("work", room.on) | {"key": KEY, "container": container}
        if body["stage"] == "working":
            return self._say("wait", worker)
        if body["stage"] == "clean":
            self.proofs[worker], room.on = body["cleaned"], ""
            return self._say("forget", worker)
        return self._say("clean", worker)

    def _say(self, do: str, worker: str = "") -> dict[str, Any]:
        return {"do": do, "seconds": 0.1, "lease_seconds": 4, "worker": worker, "parts": self.parts, "busy": self.busy}

    @property
    def busy(self) -> list[int]:
        """The parts that have a worker."""
        return [number for number, room in self.rooms.items() if number and (room.on or room.left)]

    def plane_of(self, token: str) -> ControlPlane | None:
        return next((plane for plane in self.planes.values() if plane.token == token), None)

    def line(self, worker: str, text: str) -> None:
        """Wait until a job has printed a line."""
        self.wait_for(lambda: text in self.planes[worker].lines("stdout"))

    def wait_until_clean(self, *workers: str) -> None:
        self.wait_for(lambda: set(workers) <= self.proofs.keys())

    def results(self, *workers: str) -> list[str]:
        return [told["result"] for worker in workers for told in self.planes[worker].finishes]


class SharedHandler(Handler):
    """A call of the host, or of one of the workers' agents: its token says of which."""

    plane: SharedLab

    def work(self, endpoint: str, data: bytes) -> tuple[int, dict[str, Any]]:
        body, token = json.loads(data), (self.headers["Authorization"] or "").partition(" ")[2]
        if endpoint == "bench-7":
            return (200, self.plane.ask(body)) if token == TOKEN else (401, {"detail": "unknown token"})
        plane = self.plane.planes.get(body["worker"]) if endpoint == "hello" else self.plane.plane_of(token)
        return plane.answer(endpoint, body) if plane else (401, {"detail": "unknown token"})
