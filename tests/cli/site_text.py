"""The configuration of the service that the command line's tests talk to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

APPLIED = "2026-01-01T00:00:00.000Z"
WARNING = "target a: anybody's jobs share its hosts"


@dataclass
class SiteText:
    """What is in force, and what any other configuration would change.

    `meanwhile`: what somebody else applies just before each of the next requests to apply one.
    """

    toml: str = '[targets.a]\nfactory = "here"  # ours\n'
    differences: list[tuple[str, str]] = field(default_factory=lambda: [("~", "targets.a.limit: 2 -> 4")])
    losses: list[str] = field(default_factory=list)
    drift: list[dict[str, Any]] = field(default_factory=list)
    meanwhile: list[str] = field(default_factory=list)

    @property
    def base(self) -> str:
        """Its tag."""
        return f"tag-{hash(self.toml)}"

    def answer(self, method: str, query: dict[str, list[str]], body: Any, base: str | None) -> tuple[int, Any]:
        """Status and document for a request; no document is a refusal."""
        applied = {"base": self.base, "applied_at": APPLIED, "applied_by": "eve"}
        if method == "GET":
            return 200, {"toml": self.toml, **applied}
        if "check" in query:
            return 200, self._plan() | applied
        if self.meanwhile:
            self.toml = self.meanwhile.pop(0)
        if base != self.base:
            return 412, None
        changes = [said for _, said in self.differences] if body["toml"] != self.toml else []
        self.toml = body["toml"]
        return 200, {"changes": changes, "warnings": [WARNING]}

    def _plan(self) -> dict[str, Any]:
        return {
            "changes": [said for _, said in self.differences],
            "warnings": [WARNING],
            "differences": [{"sign": sign, "path": "", "before": "", "after": ""} for sign, _ in self.differences],
            "losses": [{"summary": each} for each in self.losses],
            "drift": self.drift,
        }
