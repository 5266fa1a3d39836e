"""The artifacts that the service of these tests knows."""

from __future__ import annotations

import hashlib
from typing import Any

SUBMITTED, SETTLED = "2026-01-01T10:00:00Z", "2026-01-01T10:02:30Z"
BYTES = b"".join(b"line %d\n" % number for number in range(4000))
ARTIFACT = {
    "id": "a1", "path": "/work/trace.bin", "size": len(BYTES), "sha256": hashlib.sha256(BYTES).hexdigest(),
    "by": "alice", "time": SUBMITTED, "job": "j1", "owners": ["job#j1"], "state": "created", "until": SETTLED,
}  # fmt: skip
UNKNOWN = ARTIFACT | {"id": "a2", "owners": [], "until": None}
KEEPER = {"owner": "job#j1", "why": "job j1 owns it, and failed", "until": None, "frees": "that time alone"}
WHY = {"artifact": ARTIFACT, "summary": "it goes when job#j1 lets it go", "keepers": [KEEPER]}
GOING = {"id": "a1", "path": "/work/trace.bin", "size": 2048, "at": SETTLED, "why": "nobody owns it"}

CACHE = {
    "id": "c1", "owner": "oxide:hubris", "name": "deps", "key": "k 1", "scope": "trunk", "target": "linux",
    "paths": "/work/deps", "size": 2048, "sha256": "0" * 64, "job": "j1", "time": SUBMITTED, "used": SUBMITTED,
    "until": SETTLED,
}  # fmt: skip


def answer(url: str, method: str, path: list[str], query: dict[str, list[str]]) -> tuple[int, Any]:
    """Status and document for a request about artifacts and caches; for any other, that there is no such path."""
    if path[0] == "caches":
        return 200, CACHE if path[1:] else {"items": [CACHE], "next": None, "bytes": 2048, "quota": 10 * 1024**3}
    return _of_artifacts(url, method, path, query)


def _of_artifacts(url: str, method: str, path: list[str], query: dict[str, list[str]]) -> tuple[int, Any]:
    match method, path:
        case "GET", ["artifacts"]:
            return 200, {"items": [ARTIFACT, UNKNOWN], "next": None}
        case "GET", ["artifacts", "a1"]:
            return 200, ARTIFACT
        case "GET", ["artifacts", "a1", "why"]:
            return 200, WHY
        case "GET", ["artifacts", "a2", "why"]:
            return 200, WHY | {"keepers": []}
        case "PUT", ["artifacts", "a1", "pin"]:
            return 200, ARTIFACT
        case "PUT", ["artifacts", "a2", "pin"]:
            return 200, UNKNOWN
        case "DELETE", ["artifacts", "a1", "pin"]:
            return 200, {}
        case "POST", ["artifacts", "a1", "sign"]:
            return 200, {"url": f"{url}/bytes?secret=1", "size": len(BYTES), "expires_in": 900}
        case "GET", ["artifacts-to-go"]:
            some = query["within"] != ["0"]
            return 200, {"items": [GOING] * some, "is_whole": query["within"] != ["3600"]}
    problem = {"type": "about:blank", "title": "Not Found", "status": 404, "code": "no-such-path"}
    return 404, problem | {"detail": f"there is no /v1/{'/'.join(path)}; see /v1/openapi.json"}
