"""Secrets of units: a resource's metadata, sealed for the lease it was made for, and the keys that units are made with.
[SEC-1]

Metadata is sealed when a driver answers, and opened when an agent asks for its job's resources.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import Any

from penstock.domain.site.site import Site
from penstock.domain.units.units import Unit, UnitKind
from penstock.kernel.errors import Misconfigured
from penstock.kernel.frozen import dataclass
from penstock.ports import NotYet, Ready
from penstock.system import System

METADATA_BYTES = 16 * 1024
"""Bytes of one resource's metadata, as JSON. A row has room for it, and an agent for all metadata of a job."""


@dataclass(frozen=True)
class ResourceMetadata:
    """What a job may know of a resource, and the keys whose values need not be masked in its log."""

    metadata: Mapping[str, Any] = field(default_factory=dict)
    public: Sequence[str] = ()


def bootstrap_key(signing_key: str, unit: str) -> str:
    """The key with which a worker's agent says hello, once."""
    return hmac.new(signing_key.encode(), unit.encode(), hashlib.sha256).hexdigest()


def seal_answer(on: System, site: Site, unit: Unit, done: Ready | NotYet) -> str:
    """The sealed metadata of a driver's answer; "" for a worker, whose machine is none of its job's business.

    Public are the keys that the driver or the site declares public.
    """
    if isinstance(done, NotYet) or unit.is_a is UnitKind.WORKER:
        return ""
    kind = site.resources.get(unit.type)
    return seal(on, unit, done.metadata, {*done.public, *(kind.public if kind else ())})


def seal(on: System, unit: Unit, metadata: Mapping[str, Any], public: Collection[str] = ()) -> str:
    """The sealed metadata of a resource. Raises Misconfigured if it is too big, or not JSON."""
    try:
        text = json.dumps(dict(metadata), separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise Misconfigured(f"the metadata of {unit.type} is not JSON: {error}") from error
    if len(text) > METADATA_BYTES:
        raise Misconfigured(f"the metadata of {unit.type} has {len(text)} bytes; {METADATA_BYTES} at most")
    keys = json.dumps(sorted(set(metadata).intersection(public)), separators=(",", ":")).encode()
    return on.vault.seal(b"[%s,%s]" % (text, keys), _sealed_for(unit))


def _sealed_for(unit: Unit) -> dict[str, str]:
    """What a seal is bound to: one unit and one fence are one lease."""
    return {"unit": unit.id, "fence": str(unit.lease.fence)}


def metadata_of(on: System, unit: Unit) -> ResourceMetadata:
    """The metadata of a resource, for the lease that it was sealed for."""
    if not unit.access.sealed:
        return ResourceMetadata()
    found = json.loads(on.vault.open(unit.access.sealed, _sealed_for(unit)))
    return (
        ResourceMetadata(*found) if isinstance(found, list) else ResourceMetadata(found)
    )  # sealed by a version without public keys


def unseal(on: System, unit: Unit) -> dict[str, Any]:
    """The same, without the public keys."""
    return dict(metadata_of(on, unit).metadata)


def lease_secret(signing_key: str, unit: Unit) -> str:
    """The secret a well derives passwords from: the same for each call for one lease, and different for the next."""
    return hmac.new(signing_key.encode(), f"{unit.id}/{unit.lease.fence}".encode(), hashlib.sha256).hexdigest()
