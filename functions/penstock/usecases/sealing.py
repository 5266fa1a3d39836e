"""What a well says of a resource is for the job that leases it: sealed in its row, for this lease alone. [SEC-1]"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

from penstock.domain.errors import Misconfigured
from penstock.domain.units import Unit, UnitKind
from penstock.ports import NotYet, Ready
from penstock.system import System

MOST = 16 * 1024
"""Bytes of one resource's metadata, as JSON. A row has room for it, and an agent for all of a job's."""


def answer(on: System, unit: Unit, done: Ready | NotYet) -> str:
    """What the row keeps of a driver's answer: nothing of a machine's, for that is no job's to know."""
    if isinstance(done, NotYet) or unit.is_a is UnitKind.WORKER:
        return ""
    return seal(on, unit, done.metadata)


def seal(on: System, unit: Unit, metadata: Mapping[str, Any]) -> str:
    """What the row of a resource keeps of its metadata. Raises Misconfigured for what is too big, or is no JSON."""
    try:
        text = json.dumps(dict(metadata), separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise Misconfigured(f"the metadata of {unit.type} is not JSON: {error}") from error
    if len(text) > MOST:
        raise Misconfigured(f"the metadata of {unit.type} has {len(text)} bytes; {MOST} at most")
    return on.vault.seal(text, _of(unit))


def unseal(on: System, unit: Unit) -> dict[str, Any]:
    """The metadata of a resource, for the lease that it was made for."""
    found: dict[str, Any] = json.loads(on.vault.open(unit.sealed, _of(unit))) if unit.sealed else {}
    return found


def _of(unit: Unit) -> dict[str, str]:
    """A lease is one unit with one fence."""
    return {"unit": unit.id, "fence": str(unit.fence)}


def lease_secret(signing_key: str, unit: Unit) -> str:
    """What a well makes passwords of: the same for each call for a lease. An HMAC, so it tells nothing of others."""
    return hmac.new(signing_key.encode(), f"{unit.id}/{unit.fence}".encode(), hashlib.sha256).hexdigest()
