"""The `s3` well: a prefix of a bucket, and credentials for it, for one lease. See docs/operators/wells/s3.md."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from penstock.domain.units.units import CleanProof
from penstock.drivers.wells.aws import keys
from penstock.drivers.wells.aws.calls import Absent, Connect, calling, connect
from penstock.drivers.wells.aws.lent import Lent
from penstock.drivers.wells.aws.policies import VERSION
from penstock.drivers.wells.aws.prefixes import Prefix, Removed, below
from penstock.drivers.wells.aws.sessions import PUBLIC
from penstock.ports import NotYet, Order, Ready

LEASES = ".leases/"
"""Where there is an object for each lease, out of its job's reach: a prefix may be empty, and shall be listed."""

OBJECTS = (
    "s3:AbortMultipartUpload",
    "s3:DeleteObject",
    "s3:GetObject",
    "s3:ListMultipartUploadParts",
    "s3:PutObject",
)
"""What a job may do with objects below its prefix."""

GO_ON = 1


class S3Well:
    """Lends prefixes of one bucket: `<prefix>/<site>/<well>/<unit>/`."""

    def __init__(self, settings: Mapping[str, Any], surroundings: Mapping[str, str], client: Connect = connect) -> None:
        lending, self._space = keys.s3(settings)
        self._lent, self._client = Lent(lending, surroundings, client), client
        parts = (self._space.prefix, self._lent.site, self._lent.well)
        self._root = "".join(f"{part}/" for part in parts if part)

    @staticmethod
    def complaints(settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with settings, a sentence each. Asks nobody."""
        return keys.s3_complaints(settings)

    @staticmethod
    def objections(options: Mapping[str, Any]) -> Sequence[str]:
        """Where a job may write is the site's to say, and no job's."""
        return [f"the s3 driver takes no option {key!r}; it takes none" for key in options]

    @property
    def _s3(self) -> Any:
        return self._client("s3", self._lent.lending.region)

    def create(self, order: Order) -> Ready | NotYet:
        """Note that the prefix is lent, and give out a session for it. [UNIT-1]"""
        self._note(order.id, {"job": order.job})
        session = self._lent.session(order, json.dumps(self._policy(order.id), separators=(",", ":")))
        bucket, prefix = self._space.bucket, self._prefix(order.id)
        where = {"bucket": bucket, "prefix": prefix, "url": f"s3://{bucket}/{prefix}"}
        return Ready({**order.settings, **where, **session.metadata}, expires=session.expires, public=[*where, *PUBLIC])

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """End the sessions first, and empty the prefix when nobody can write there any more. [SEC-1] [UNIT-1]"""
        revoked = self._lent.revoke(unit, now)
        if isinstance(revoked, NotYet):
            return revoked
        left = revoked.since + timedelta(seconds=self._space.settle) - now
        if left > timedelta(0):
            return NotYet(max(1, int(left.total_seconds())), "what its job may do no more is not known everywhere yet")
        return self._empty(unit, now, revoked.checked)

    def _empty(self, unit: str, now: datetime, revoked: str) -> CleanProof | NotYet:
        """Empty the prefix, as far as there is time, and then take away the note of its lease."""
        noted = self._noted(unit)
        done, is_empty = Prefix(self._s3, self._space.bucket, self._prefix(unit)).empty()
        total = done + Removed(noted.get("versions", 0), noted.get("uploads", 0))
        said = f"removed {total.versions} versions and delete markers and {total.uploads} unfinished uploads"
        if not is_empty:
            self._note(unit, {**noted, "versions": total.versions, "uploads": total.uploads})
            return NotYet(GO_ON, f"{said}, and there is more")
        _, is_gone = Prefix(self._s3, self._space.bucket, self._lease(unit)).empty()
        if not is_gone:
            return NotYet(GO_ON, f"{said}; the note of its lease is still listed")
        checked = f"{said} below s3://{self._space.bucket}/{self._prefix(unit)}, and listed none after that; {revoked}"
        return CleanProof(by="s3", time=now, checked=checked)

    def list(self) -> Iterable[str]:
        """The units whose leases are noted, and those of which there is still something. [UNIT-1]"""
        s3, bucket = self._s3, self._space.bucket
        leases = {name.removesuffix(".json") for name in below(s3, bucket, self._root + LEASES)}
        return sorted(leases | {name for name in below(s3, bucket, self._root) if f"{name}/" != LEASES})

    def _prefix(self, unit: str) -> str:
        return f"{self._root}{unit}/"

    def _lease(self, unit: str) -> str:
        return f"{self._root}{LEASES}{unit}.json"

    def _note(self, unit: str, what: Mapping[str, Any]) -> None:
        body = json.dumps(what).encode()
        with calling("PutObject"):
            self._s3.put_object(Bucket=self._space.bucket, Key=self._lease(unit), Body=body)

    def _noted(self, unit: str) -> dict[str, Any]:
        """What was noted of a lease; nothing for one that is over."""
        try:
            with calling("GetObject", "NoSuchKey"):
                body = self._s3.get_object(Bucket=self._space.bucket, Key=self._lease(unit))["Body"].read()
        except Absent:
            return {}
        found = json.loads(body)
        return found if isinstance(found, dict) else {}

    def _policy(self, unit: str) -> Mapping[str, Any]:
        """What the session of a unit may do: with objects below its prefix, and list those."""
        bucket = f"arn:{self._lent.lending.partition}:s3:::{self._space.bucket}"
        prefix = self._prefix(unit)
        return {
            "Version": VERSION,
            "Statement": [
                {"Effect": "Allow", "Action": list(OBJECTS), "Resource": f"{bucket}/{prefix}*"},
                {
                    "Effect": "Allow",
                    "Action": "s3:ListBucket",
                    "Resource": bucket,
                    "Condition": {"StringLike": {"s3:prefix": f"{prefix}*"}},
                },
            ],
        }
