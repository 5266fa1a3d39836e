"""Pins: users keep an artifact, whatever becomes of the job that made it. [ART-1]"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from penstock.domain.artifacts import artifacts
from penstock.domain.artifacts.artifacts import PIN, Artifact, Pin, parts, pin_key
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.kernel.errors import Refused, not_found
from penstock.kernel.rows import Change, Check, Create, Delete, Replace
from penstock.system import System, transact
from penstock.usecases.artifacts import owners
from penstock.usecases.users import audit


def find(on: System, user: User, id: str) -> Artifact:
    """An artifact that a user may see. Another's is treated as nonexistent. Raises Refused 404. [SEC-2]"""
    found = owners.find(on, id)
    if found is None or not user.may_see(found.by):
        raise not_found("artifact", id[:64])
    return found


def pin(on: System, user: User, id: str, reason: str, seconds: int | None) -> Artifact:
    """Keep an artifact, for some seconds or until unpinned. A user's second pin replaces the first.

    Raises Refused 400, 404; 409 if its bytes are not there, or it has too many owners.
    """
    if not reason.strip():
        raise Refused(400, "bad-request", "say why it is to be kept, for others to read")

    def decide() -> tuple[Sequence[Change], Artifact]:
        found, now = find(on, user, id), on.world.now()
        if not found.has_bytes:
            raise Refused(409, "no-bytes", f"the bytes of artifact {id} are not there")
        until = now + timedelta(seconds=seconds) if seconds else None
        made = Pin(artifact=id, by=user.name, reason=reason, since=now, until=until)
        known = on.store.get(made.key, Pin)
        after = artifacts.own(found, made.owner)
        if len(after.owners) > limits.OWNERS:
            raise Refused(409, "too-many-owners", f"an artifact has at most {limits.OWNERS} owners")
        own: Change = Check(found) if after == found else Replace(found, after)
        changes = [Replace(known, made) if known else Create(made), own]
        return audit.record(on, changes, _audited_as(user, found), "pin", f"artifact {id}", reason), after

    return transact(on, decide)


def _audited_as(user: User, artifact: Artifact) -> str:
    """Who is audited: nobody, for what users do with what is theirs."""
    return "" if artifact.by == user.name else user.name


def unpin(on: System, user: User, id: str, by: str) -> None:
    """Remove a user's pin; what nobody else owns goes. Only operators remove another's pin.

    Raises Refused 403, 404, or 409 where there is no pin.
    """
    if by not in user.names and not user.is_admin:
        raise Refused(403, "privilege-missing", "only operators take back the pins of others")

    def decide() -> tuple[Sequence[Change], None]:
        found = find(on, user, id)
        pinned = on.store.get(pin_key(id, by), Pin)
        if pinned is None:
            raise Refused(409, "not-pinned", f"{by} has not pinned artifact {id}")
        changes = [Delete(pinned), *owners.release_changes(on, found, pinned.owner)]
        return audit.record(on, changes, _audited_as(user, found), "unpin", f"artifact {id}"), None

    transact(on, decide)


def expire(on: System, id: str, by: str) -> None:
    """End a pin whose time has come. [ART-2]"""

    def decide() -> tuple[Sequence[Change], None]:
        row = on.store.get(pin_key(id, by), Pin)
        if row is None or row.until is None or row.until > on.world.now():
            return [], None
        return [Delete(row), *owners.release_changes(on, owners.find(on, id), row.owner)], None

    transact(on, decide)


def pins_of(on: System, artifact: Artifact) -> dict[str, Pin | None]:
    """The pins on an artifact, by owner."""
    owners = [owner for owner in artifact.owners if parts(owner)[0] == PIN]
    return {owner: on.store.get(pin_key(artifact.id, parts(owner)[1]), Pin) for owner in owners}
