"""Secrets."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.domain.site.site import Site
from penstock.domain.units.units import Unit, UnitKind
from penstock.kernel.errors import Misconfigured
from penstock.ports import NotYet, Ready
from penstock.system import System


def bootstrap_key(signing_key: str, unit: str) -> str:
    """The key with which a worker's agent says hello, once."""
    return hmac.new(signing_key.encode(), unit.encode(), hashlib.sha256).hexdigest()


METADATA_BYTES = 16 * 1024
"""Bytes of one resource's metadata, as JSON. A row has room for it, and an agent for all of a job's."""


@dataclass(frozen=True)
class ResourceMetadata:
    """What a job may know of a resource, and the keys of it that need not be hidden in its log."""

    metadata: Mapping[str, Any] = field(default_factory=dict)
    public: Sequence[str] = ()


def seal_answer(on: System, site: Site, unit: Unit, done: Ready | NotYet) -> str:
    """What the row keeps of a driver's answer: nothing of a machine's, for that is no job's to know.

    What is public is what the driver says is, and the site.
    """
    if isinstance(done, NotYet) or unit.is_a is UnitKind.WORKER:
        return ""
    kind = site.resources.get(unit.type)
    return seal(on, unit, done.metadata, {*done.public, *(kind.public if kind else ())})


def seal(on: System, unit: Unit, metadata: Mapping[str, Any], public: Collection[str] = ()) -> str:
    """What the row of a resource keeps of its metadata. Raises Misconfigured for what is too big, or is no JSON."""
    try:
        text = json.dumps(dict(metadata), separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise Misconfigured(f"the metadata of {unit.type} is not JSON: {error}") from error
    if len(text) > METADATA_BYTES:
        raise Misconfigured(f"the metadata of {unit.type} has {len(text)} bytes; {METADATA_BYTES} at most")
    keys = json.dumps(sorted(set(metadata).intersection(public)), separators=(",", ":")).encode()
    return on.vault.seal(b"[%s,%s]" % (text, keys), _sealed_for(unit))


def metadata_of(on: System, unit: Unit) -> ResourceMetadata:
    """What the job may know of a resource, for the lease that it was made for."""
    if not unit.sealed:
        return ResourceMetadata()
    found = json.loads(on.vault.open(unit.sealed, _sealed_for(unit)))
    return (
        ResourceMetadata(*found) if isinstance(found, list) else ResourceMetadata(found)
    )  # sealed before wells said what is public


def unseal(on: System, unit: Unit) -> dict[str, Any]:
    """The metadata of a resource, for the lease that it was made for."""
    return dict(metadata_of(on, unit).metadata)


def _sealed_for(unit: Unit) -> dict[str, str]:
    """A lease is one unit with one fence."""
    return {"unit": unit.id, "fence": str(unit.fence)}


def lease_secret(signing_key: str, unit: Unit) -> str:
    """What a well makes passwords of: the same for each call for a lease. An HMAC, so it tells nothing of others."""
    return hmac.new(signing_key.encode(), f"{unit.id}/{unit.fence}".encode(), hashlib.sha256).hexdigest()
