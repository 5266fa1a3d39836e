"""The service's side of hosts, with work for one of them."""

import os
from typing import Any

from tests.agent.control_plane import KEY, ControlPlane, order

TOKEN = "pst_of-bench-7"
WORKERS = [f"worker-{os.getpid()}-{number}" for number in range(4)]


class Lab(ControlPlane):
    """A service with work for one host: `left` are the workers that are still to come, `on` is the one that it has."""

    def __init__(self, **changes: Any) -> None:
        super().__init__(order(**changes))
        self.left = list(WORKERS[:1])
        self.on = ""
        self.asks: list[dict[str, Any]] = []
        self.proofs: dict[str, str] = {}
        self.refusal: int | None = None
        self.is_ended, self.held = False, False

    def _bench(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.asks.append(body)
        if self.refusal:
            return self.refusal, {"detail": "as the test wants"}
        if body["worker"] and body["worker"] != self.on:
            return 200, self._say("forget", body["worker"])
        if not self.on and not body["worker"]:
            if body["leaving"] or not self.left:
                return 200, self._say("wait")
            self.on, self.token = self.left.pop(0), None
            self.events.clear()
        if not body["worker"]:
            return 200, self._say("work", self.on) | {"key": KEY}
        if body["stage"] == "working":
            return 200, self._say("wait", self.on)
        if self.held:
            return 200, self._say("wait", self.on) | {"held_seconds": 60}
        if body["stage"] == "clean":
            self.proofs[self.on], self.on = body["cleaned"], ""
            return 200, self._say("forget", body["worker"])
        return 200, self._say("clean", self.on)

    def token_for(self, endpoint: str) -> str | None:
        return TOKEN if endpoint == "bench-7" else super().token_for(endpoint)

    def _say(self, do: str, worker: str = "") -> dict[str, Any]:
        return {"do": do, "seconds": 0.1, "lease_seconds": 4, "worker": worker}

    def answer(self, endpoint: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return self._bench(body) if endpoint == "bench-7" else super().answer(endpoint, body)

    def wait_until_clean(self, *workers: str) -> None:
        self.wait_for(lambda: set(workers) <= self.proofs.keys())
