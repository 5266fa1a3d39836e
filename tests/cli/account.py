"""What the service of the tests says about account diffs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

LEFTOVER = {
    "maker": "factory/aws", "kind": "volume", "id": "vol-1", "unit": "w-1", "owner": "ada",
    "made": "2026-01-01T01:00:00.000Z", "seconds_old": 7200.0, "why": "its unit is gone",
}  # fmt: skip
STRANGE = LEFTOVER | {"id": "vol-2", "unit": None, "owner": None, "made": None, "seconds_old": None}
DIFF = {
    "id": "20260101T030000", "began": "2026-01-01T03:00:00.000Z", "finished": "2026-01-01T03:00:09.000Z", "by": None,
    "things": 9, "left": 2, "unlisted": 1,
}  # fmt: skip
WHOLE = DIFF | {
    "makers": [
        {"maker": "factory/aws", "things": 9, "left": 2, "problem": None},
        {"maker": "well/pg", "things": None, "left": None, "problem": "Unknown: refused"},
    ],
    "leftovers": [STRANGE, LEFTOVER],
}
CLEAN = WHOLE | {"left": 0, "unlisted": 0, "makers": WHOLE["makers"][:1], "leftovers": []}  # type: ignore[index]


@dataclass
class Diffs:
    """The diffs. `looks` is how often one that is asked for is looked at until it is finished."""

    newest: dict[str, Any] = field(default_factory=lambda: dict(WHOLE))
    looks: int = 2
    asked: list[str] = field(default_factory=list)

    def answer(self, method: str, what: str, query: dict[str, list[str]]) -> tuple[int, Any]:
        self.asked.append(f"{method} {what} {query.get('id', [''])[0]}".strip())
        if method == "POST":
            return 202, self.newest | {"id": "20260101T120000", "finished": None}
        if what == "diffs":
            return 200, {"items": [DIFF], "next": None}
        if query.get("id") == ["20260101T120000"]:
            self.looks -= 1
            return 200, self.newest | {"id": "20260101T120000"} | ({"finished": None} if self.looks > 0 else {})
        return 200, self.newest
