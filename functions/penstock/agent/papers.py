"""What the machine can show of itself: in EC2 its signed identity document, fetched as IMDSv2 wants it."""

from __future__ import annotations

from .control import Control
from .errors import ServiceError, Unreachable
from .exchange import exchange, persist
from .log import log

TRIES = 6  # about ten seconds: a machine that has just booted may have to wait for its metadata
SECONDS = 5.0
TOKEN = "/latest/api/token"
IDENTITY = "/latest/dynamic/instance-identity/"


def papers(metadata: str, control: Control) -> dict[str, str]:
    """Ask the metadata service at an address for the document and its signature; without them the service decides."""
    try:
        return persist(control, "identity", lambda: _fetch(metadata), TRIES)
    except ServiceError as why:
        log(f"this machine cannot show what it is: {why}")
        return {}


def _fetch(metadata: str) -> dict[str, str]:
    token = _ask("PUT", metadata + TOKEN, {"X-aws-ec2-metadata-token-ttl-seconds": "60"})
    shown = {"X-aws-ec2-metadata-token": token}
    return {name: _ask("GET", metadata + IDENTITY + name, shown) for name in ("document", "signature")}


def _ask(method: str, url: str, headers: dict[str, str]) -> str:
    status, answer = exchange(method, url, b"" if method == "PUT" else None, headers, SECONDS)
    if status != 200:
        raise Unreachable(f"HTTP {status}")
    return answer.decode()
