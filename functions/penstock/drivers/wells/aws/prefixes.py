"""What is in a bucket below one prefix: counted, and removed with all its versions. [UNIT-1]

A step removes as much as there is time for, and says that it is not done if more is left: docs/operators/wells/s3.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.drivers.wells.aws.calls import Absent, calling, check_each

PAGE = 1000
"""As many are listed at a time, and removed at a time. Source: Amazon S3, ListObjectVersions and DeleteObjects."""

UPLOADS = 50
"""As many unfinished uploads are listed at a time: each is aborted by a call of its own."""

AT_ONCE = 20
"""Pages that are removed in one step. Each takes a second or two, and a function of ours lives for two minutes."""

NO_UPLOAD = "NoSuchUpload"


@dataclass(frozen=True)
class Removed:
    """What was removed: versions and delete markers of objects, and uploads that were never finished."""

    versions: int = 0
    uploads: int = 0

    def __add__(self, other: Removed) -> Removed:
        return Removed(self.versions + other.versions, self.uploads + other.uploads)


@dataclass(frozen=True)
class Prefix:
    """All whose names begin so, in one bucket."""

    s3: Any
    bucket: str
    prefix: str

    def empty(self) -> tuple[Removed, bool]:
        """Remove what there is, at most AT_ONCE pages; and whether the last look found nothing. Raises DriverError."""
        done = Removed()
        for _ in range(AT_ONCE):
            uploads, versions = self._uploads(), self._versions()
            if not uploads and not versions:
                return done, True
            self._abort(uploads)
            self._delete(versions)
            done += Removed(len(versions), len(uploads))
        return done, False

    def _versions(self) -> list[dict[str, str]]:
        """The first versions and delete markers. In a bucket that keeps none each object is one, called null."""
        with calling("ListObjectVersions"):
            found = self.s3.list_object_versions(Bucket=self.bucket, Prefix=self.prefix, MaxKeys=PAGE)
        each = [*found.get("Versions", ()), *found.get("DeleteMarkers", ())]
        return [{"Key": one["Key"], "VersionId": one["VersionId"]} for one in each]

    def _uploads(self) -> list[dict[str, str]]:
        with calling("ListMultipartUploads"):
            found = self.s3.list_multipart_uploads(Bucket=self.bucket, Prefix=self.prefix, MaxUploads=UPLOADS)
        return [{"Key": one["Key"], "UploadId": one["UploadId"]} for one in found.get("Uploads", ())]

    def _abort(self, uploads: list[dict[str, str]]) -> None:
        for one in uploads:
            try:
                with calling("AbortMultipartUpload", NO_UPLOAD):
                    self.s3.abort_multipart_upload(Bucket=self.bucket, **one)
            except Absent:
                continue

    def _delete(self, versions: list[dict[str, str]]) -> None:
        if versions:
            with calling("DeleteObjects"):
                wanted = {"Objects": versions, "Quiet": True}
                check_each("DeleteObjects", self.s3.delete_objects(Bucket=self.bucket, Delete=wanted))


def below(s3: Any, bucket: str, prefix: str) -> Iterator[str]:
    """The names that come next below a prefix, of objects and of further prefixes; page by page. Raises DriverError."""
    with calling("ListObjectsV2"):
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, Delimiter="/")
        for page in pages:
            yield from (each["Key"][len(prefix) :] for each in page.get("Contents", ()))
            yield from (each["Prefix"][len(prefix) : -1] for each in page.get("CommonPrefixes", ()))
