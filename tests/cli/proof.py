"""A factory's test as the service tells of it: scripted pages, and what cancel, hold and release change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

CHECKS = ("settings", "ordered", "agent said hello", "job ran", "output came back", "destroyed", "not listed any more")
GOING = {"over": False, "passed": False, "state": "acquiring", "waits": "the job waits for target/lab"}
GONE = {"over": True, "state": "settled", "waits": None}
HELD = {"state": "settled", "waits": None, "held_until": "2026-01-01T11:00:00Z"}


def page(known: int, failed: str | None = None, **changes: Any) -> dict[str, Any]:
    """A page on which the first few checks are known, and all of these are ok but one."""
    checks = [
        {
            "check": name,
            "ok": name != failed if at < known else None,
            "detail": "no such image\nconsole: nothing" if name == failed else "it is so" if at < known else "",
            "seconds": 2.5 if at < known and at else None,
        }
        for at, name in enumerate(CHECKS)
    ]
    fields = {"job": "t1", "factory": "aws", "target": "lab", "worker": "w1", "held_until": None, **GOING}
    return fields | {"checks": checks} | changes


PASSED = page(7, passed=True, **GONE)


@dataclass
class Proof:
    """Each look shows the next page, the last one again and again; `after` are those that follow an action."""

    output: dict[str, Any]
    pages: list[dict[str, Any]] = field(default_factory=lambda: [page(1), page(3), PASSED])
    after: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    waits: list[str] = field(default_factory=list)
    begun: list[Any] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    def answer(self, method: str, path: list[str], body: Any, url: str) -> tuple[int, Any] | None:
        """Status and document for a request that is about a test; None for others."""
        match method, path:
            case "POST", ["factories", name, "test"]:
                return self._begin(name, body)
            case "GET", ["factories", "aws", "tests", "t1"]:
                return 200, self.pages.pop(0) if len(self.pages) > 1 else self.pages[0]
            case "POST", ["jobs", "t1", "cancel"]:
                self.act("cancel")
                return _refused(409, "job t1 is settled already")
            case "GET", ["jobs", "t1", "outputs"]:
                return 200, {"items": [self.output | {"path": "/work/penstock-test.txt"}], "next": None}
            case "POST", ["jobs", "t1", "outputs", "o1", "sign"]:
                return 200, {"url": f"{url}/bytes?secret=1", "size": self.output["size"], "expires_in": 900}
        return None

    def _begin(self, name: str, body: Any) -> tuple[int, Any]:
        if name != "aws":
            return _refused(404, "there is no factory; there are: aws")
        if body.get("target") == "closed":
            return _refused(409, "target/closed is paused by an operator")
        self.begun.append(body)
        return 201, {"id": "t1", "target": body.get("target", "lab"), "waits": self.waits}

    def act(self, what: str) -> None:
        """Somebody cancelled the job, or held or released its worker."""
        self.done.append(what)
        self.pages = self.after.get(what, self.pages)


def _refused(status: int, why: str) -> tuple[int, Any]:
    return status, {"type": "about:blank", "title": "no", "status": status, "code": "no", "detail": why, "errors": []}
