"""The published files that the service of these tests knows."""

from __future__ import annotations

from typing import Any

from tests.cli.artifacts import ARTIFACT, BYTES, SETTLED, SUBMITTED

NAME = ["alice", "nightly", "v1", "trace.bin"]
FILE = {
    "owner": "alice", "series": "nightly", "version": "v1", "name": "trace.bin", "size": len(BYTES),
    "sha256": ARTIFACT["sha256"], "composite": None, "url": "/v1/public/file/alice/nightly/v1/trace.bin",
    "path": "/work/out/log.txt",
    "job": "j9", "by": "alice", "time": SUBMITTED, "withdrawn": None, "withdrawn_by": None,
}  # fmt: skip
GONE = FILE | {"withdrawn": SETTLED, "withdrawn_by": "bob"}
SERIES = {"items": [{"series": "*", "access": "private", "privilege": None}], "next": None}


def answer(url: str, method: str, path: list[str], query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
    """Status and document for a request about published files."""
    match method, path:
        case "GET", ["published"]:
            return 200, {"items": [] if query.get("owner") == ["bob"] else [FILE], "next": None}
        case "GET", ["published", *name] if name == NAME:
            return 200, FILE
        case "GET", ["published", "alice", "nightly", "v0", "trace.bin"]:
            return 200, GONE
        case "DELETE", ["published", *name] if name == NAME:
            return 200, GONE
        case "POST", ["published", *name, "sign"] if name == NAME:
            return 200, {"url": f"{url}/bytes?secret=1", "size": len(BYTES), "expires_in": 900}
        case "GET", ["series", owner]:
            return 200, SERIES if owner == "alice" else {"items": [], "next": None}
        case "PUT", ["series", _]:
            return 200, SERIES
    problem = {"type": "about:blank", "title": "Not Found", "status": 404, "code": "no-such-path"}
    return 404, problem | {"detail": f"there is no {'/'.join(path)}"}
