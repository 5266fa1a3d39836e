"""Deletes what is in a bucket below a prefix, with all versions and unfinished uploads, and counts it. [UNIT-1]

One step deletes as much as it has time for, and says whether more is left. See docs/operators/wells/s3.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.drivers.wells.aws.calls import Absent, call_errors, check_each
from penstock.kernel.frozen import dataclass

PAGE = 1000
"""Versions that are listed and deleted by one call. Source: Amazon S3, ListObjectVersions and DeleteObjects."""

UPLOADS = 50
"""Unfinished uploads that are listed by one call. Aborting each takes one call."""

PAGES_PER_STEP = 20
"""Pages that one step deletes. Each takes a second or two, and the function has two minutes."""

NO_UPLOAD = "NoSuchUpload"


@dataclass(frozen=True)
class Removed:
    """How much was deleted: versions and delete markers of objects, and unfinished uploads."""

    versions: int = 0
    uploads: int = 0

    def __add__(self, other: Removed) -> Removed:
        return Removed(self.versions + other.versions, self.uploads + other.uploads)


@dataclass(frozen=True)
class Prefix:
    """The objects in one bucket whose names begin with a prefix."""

    s3: Any
    bucket: str
    prefix: str

    def empty(self) -> tuple[Removed, bool]:
        """Delete at most PAGES_PER_STEP pages; also whether the last list was empty. Raises DriverError."""
        done = Removed()
        for _ in range(PAGES_PER_STEP):
            uploads, versions = self._uploads(), self._versions()
            if not uploads and not versions:
                return done, True
            self._abort(uploads)
            self._delete(versions)
            done += Removed(len(versions), len(uploads))
        return done, False

    def _versions(self) -> list[dict[str, str]]:
        """The first page of versions and delete markers. Without versioning, objects have one version: null."""
        with call_errors("ListObjectVersions"):
            found = self.s3.list_object_versions(Bucket=self.bucket, Prefix=self.prefix, MaxKeys=PAGE)
        each = [*found.get("Versions", ()), *found.get("DeleteMarkers", ())]
        return [{"Key": one["Key"], "VersionId": one["VersionId"]} for one in each]

    def _uploads(self) -> list[dict[str, str]]:
        with call_errors("ListMultipartUploads"):
            found = self.s3.list_multipart_uploads(Bucket=self.bucket, Prefix=self.prefix, MaxUploads=UPLOADS)
        return [{"Key": one["Key"], "UploadId": one["UploadId"]} for one in found.get("Uploads", ())]

    def _abort(self, uploads: list[dict[str, str]]) -> None:
        for one in uploads:
            try:
                with call_errors("AbortMultipartUpload", NO_UPLOAD):
                    self.s3.abort_multipart_upload(Bucket=self.bucket, **one)
            except Absent:
                continue

    def _delete(self, versions: list[dict[str, str]]) -> None:
        if versions:
            with call_errors("DeleteObjects"):
                wanted = {"Objects": versions, "Quiet": True}
                check_each("DeleteObjects", self.s3.delete_objects(Bucket=self.bucket, Delete=wanted))


def names_below(s3: Any, bucket: str, prefix: str) -> Iterator[str]:
    """The next parts of the names below a prefix: objects and sub-prefixes, page by page. Raises DriverError."""
    with call_errors("ListObjectsV2"):
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, Delimiter="/")
        for page in pages:
            yield from (each["Key"][len(prefix) :] for each in page.get("Contents", ()))
            yield from (each["Prefix"][len(prefix) : -1] for each in page.get("CommonPrefixes", ()))
