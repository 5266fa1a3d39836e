"""What the service of the tests says about leases without a job."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

BENCH = {"name": "bench", "type": "bench", "state": "ready", "slot": "bench-3", "fence": 7}
HELD: dict[str, Any] = {
    "id": "01KDVDNA00000000000000000L", "name": "lease", "owner": "alice", "state": "held", "outcome": None,
    "reason": None, "resources": [BENCH], "submitted": "2026-01-01T10:00:00.000Z", "since": "2026-01-01T10:00:05.000Z",
    "until": "2026-01-01T10:10:05.000Z", "ended": None, "priority": 0, "tags": {}, "why": None,
}  # fmt: skip
WAITING = HELD | {
    "state": "waiting", "since": None, "until": None, "why": "the lease waits for bench: held are bench-3 by j1",
    "resources": [BENCH | {"state": "waiting", "slot": None, "fence": None}],
}  # fmt: skip
ENDED = HELD | {
    "state": "ended", "outcome": "failed", "reason": "nobody renewed it", "until": None,
    "ended": "2026-01-01T10:20:00.000Z",
}  # fmt: skip
METADATA = {"name": "bench-3", "PGHOST": "db.example", "deep": {"key": "it's secret"}}


def _refusal(code: str, detail: str) -> tuple[int, dict[str, Any]]:
    return 409, {"title": "no", "status": 409, "code": code, "detail": detail}


@dataclass
class Leases:
    """One lease. `looks` is how often it is looked at until it is held; `ends` says that it is over when it is renewed;
    `metadata` is what it has."""

    looks: int = 0
    ends: bool = False
    never: bool = False
    metadata: dict[str, Any] = field(default_factory=lambda: dict(METADATA))
    bodies: list[Any] = field(default_factory=list)
    released: int = 0
    renewed: int = 0

    def answer(self, method: str, path: list[str], body: Any) -> tuple[int, Any]:
        match method, path:
            case "POST", []:
                self.bodies.append(body)
                return 201, {"id": HELD["id"]}
            case "GET", []:
                return 200, {"items": [WAITING, HELD, ENDED], "next": None}
            case "POST", [_, "release"]:
                self.released += 1
                return 200, ENDED | {"outcome": "succeeded", "reason": "released by alice"}
            case "POST", [_, "renew"]:
                self.renewed += 1
                if self.ends:
                    return _refusal("lease-ended", "lease L has ended: failed: nobody renewed it")
                return 200, HELD
        return 200, self._look()

    def _look(self) -> dict[str, Any]:
        self.looks -= 1
        return WAITING if self.looks >= 0 else ENDED if self.never else HELD

    def resources(self) -> dict[str, Any]:
        """What its owner is told of what it has."""
        return {"resources": {"bench": {"type": "bench", "metadata": self.metadata, "public": ["name"]}}}
