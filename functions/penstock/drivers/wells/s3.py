"""The `s3` well: a prefix of a bucket for one lease, with credentials for it. See docs/operators/wells/s3.md."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from penstock.domain.account import Thing
from penstock.domain.units.units import CleanProof
from penstock.drivers.wells.aws import settings as aws_settings
from penstock.drivers.wells.aws.calls import Absent, Connect, call_errors, connect
from penstock.drivers.wells.aws.policies import VERSION
from penstock.drivers.wells.aws.prefixes import Prefix, Removed, names_below
from penstock.drivers.wells.aws.sessions import PUBLIC, LentRole
from penstock.ports import NotYet, Order, Ready

LEASES = ".leases/"
"""The folder with an object for each lease, which jobs cannot reach, so that leases with empty prefixes are listed."""

OBJECTS = (
    "s3:AbortMultipartUpload",
    "s3:DeleteObject",
    "s3:GetObject",
    "s3:ListMultipartUploadParts",
    "s3:PutObject",
)
"""The actions that a job may do on objects below its prefix."""

CONTINUE_SECONDS = 1


class S3Well:
    """Lends prefixes of one bucket: `<prefix>/<site>/<well>/<unit>/`."""

    def __init__(self, settings: Mapping[str, Any], environment: Mapping[str, str], client: Connect = connect) -> None:
        role, self._bucket = aws_settings.s3(settings)
        self._role, self._client = LentRole(role, environment, client), client
        parts = (self._bucket.prefix, self._role.site)
        self._of_site = "".join(f"{part}/" for part in parts if part)
        self._root = f"{self._of_site}{self._role.well}/"

    @staticmethod
    def complaints(settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with settings, one sentence each. Calls no service."""
        return aws_settings.s3_complaints(settings)

    @staticmethod
    def objections(options: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with options: there are none. The site alone decides where jobs may write."""
        return [f"the s3 driver has no option {key!r}; it has no options" for key in options]

    @property
    def _s3(self) -> Any:
        return self._client("s3", self._role.settings.region)

    def create(self, order: Order) -> Ready | NotYet:
        """Write the lease's record, then begin a session for its prefix. [UNIT-1]"""
        self._write_record(order.id, {"job": order.job})
        session = self._role.session(order, json.dumps(self._policy(order.id), separators=(",", ":")))
        bucket, prefix = self._bucket.bucket, self._prefix(order.id)
        where = {"bucket": bucket, "prefix": prefix, "url": f"s3://{bucket}/{prefix}"}
        return Ready({**order.settings, **where, **session.metadata}, expires=session.expires, public=[*where, *PUBLIC])

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Revoke the sessions; empty the prefix when nobody can write there any more. [SEC-1] [UNIT-1]"""
        revoked = self._role.revoke(unit, now)
        if isinstance(revoked, NotYet):
            return revoked
        left = revoked.since + timedelta(seconds=self._bucket.settle) - now
        if left > timedelta(0):
            return NotYet(
                max(1, int(left.total_seconds())), "the denial of its sessions is not effective everywhere yet"
            )
        return self._empty(unit, now, revoked.checked)

    def _empty(self, unit: str, now: datetime, revoked: str) -> CleanProof | NotYet:
        """Empty the prefix, as far as there is time; then delete the lease's record."""
        record = self._read_record(unit)
        done, is_empty = Prefix(self._s3, self._bucket.bucket, self._prefix(unit)).empty()
        total = done + Removed(record.get("versions", 0), record.get("uploads", 0))
        summary = f"removed {total.versions} versions and delete markers and {total.uploads} unfinished uploads"
        if not is_empty:
            self._write_record(unit, {**record, "versions": total.versions, "uploads": total.uploads})
            return NotYet(CONTINUE_SECONDS, f"{summary}, and there is more")
        _, is_gone = Prefix(self._s3, self._bucket.bucket, self._record_key(unit)).empty()
        if not is_gone:
            return NotYet(CONTINUE_SECONDS, f"{summary}; the record of its lease is still listed")
        checked = f"{summary} below s3://{self._bucket.bucket}/{self._prefix(unit)}, and then listed none; {revoked}"
        return CleanProof(by="s3", time=now, checked=checked)

    def list(self) -> Iterable[str]:
        """The units whose leases have a record, or whose prefixes have objects. [UNIT-1]"""
        s3, bucket = self._s3, self._bucket.bucket
        leases = {name.removesuffix(".json") for name in names_below(s3, bucket, self._root + LEASES)}
        return sorted(leases | {name for name in names_below(s3, bucket, self._root) if f"{name}/" != LEASES})

    def things(self) -> Iterable[Thing]:
        """The prefixes and records of leases of all wells of this site in the bucket, and the denials on the role."""
        s3, bucket = self._s3, self._bucket.bucket
        for well in names_below(s3, bucket, self._of_site):
            root = f"{self._of_site}{well}/"
            for name in names_below(s3, bucket, root + LEASES):
                yield Thing("lease record", f"{root}{LEASES}{name}", name.removesuffix(".json"), maker=well)
            for name in names_below(s3, bucket, root):
                if f"{name}/" != LEASES:
                    yield Thing("prefix", f"{root}{name}/", name, maker=well)
        yield from self._role.denials.things()

    def _prefix(self, unit: str) -> str:
        return f"{self._root}{unit}/"

    def _record_key(self, unit: str) -> str:
        return f"{self._root}{LEASES}{unit}.json"

    def _write_record(self, unit: str, record: Mapping[str, Any]) -> None:
        body = json.dumps(record).encode()
        with call_errors("PutObject"):
            self._s3.put_object(Bucket=self._bucket.bucket, Key=self._record_key(unit), Body=body)

    def _read_record(self, unit: str) -> dict[str, Any]:
        """The record of a lease; empty if it has ended."""
        try:
            with call_errors("GetObject", "NoSuchKey"):
                body = self._s3.get_object(Bucket=self._bucket.bucket, Key=self._record_key(unit))["Body"].read()
        except Absent:
            return {}
        found = json.loads(body)
        return found if isinstance(found, dict) else {}

    def _policy(self, unit: str) -> Mapping[str, Any]:
        """The session policy of a unit: use and list the objects below its prefix."""
        bucket = f"arn:{self._role.settings.partition}:s3:::{self._bucket.bucket}"
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
