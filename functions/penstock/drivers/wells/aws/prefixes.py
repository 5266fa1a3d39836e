"""Deletes what is in a bucket below a prefix, with all versions and unfinished uploads, and counts it. [UNIT-1]

One step deletes as much as it has time for, and says whether more is left. See docs/operators/wells/s3.md.

Jobs choose the names of objects, and S3 takes any characters. XML 1.0, in which S3 lists them and takes lists of them,
does not: lists are asked for in URL encoding, and what no list of ours can name is deleted by itself.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote_plus

from penstock.drivers.wells.aws.calls import Absent, call_errors, check_each
from penstock.kernel.frozen import dataclass

PAGE = 1000
"""Versions that are listed and deleted by one call. Source: Amazon S3, ListObjectVersions and DeleteObjects."""

UPLOADS = 50
"""Unfinished uploads that are listed by one call. Aborting each takes one call."""

SINGLES = 50
"""Versions of one page that get a call each, because DeleteObjects cannot name them. The next page has the rest."""

PAGES_PER_STEP = 20
"""Pages that one step deletes at most. Each takes a second or two, and more with many uploads."""

STEP_SECONDS = 30
"""Seconds after which a step begins no page. A call of a driver is broken off after twice as many."""

NO_UPLOAD = "NoSuchUpload"

NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""A character that XML 1.0 cannot express, not even escaped. Source: its production 2, Char."""


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
    monotonic: Callable[[], float] = time.monotonic

    def empty(self) -> tuple[Removed, bool]:
        """Delete as many pages as there is time for; also whether the last list was empty. Raises DriverError."""
        done, until = Removed(), self.monotonic() + STEP_SECONDS
        for _ in range(PAGES_PER_STEP):
            uploads, versions = self._uploads(), self._versions()
            if not uploads and not versions:
                return done, True
            self._abort(uploads)
            done += Removed(self._delete(versions), len(uploads))
            if self.monotonic() > until:
                break
        return done, False

    def _versions(self) -> list[dict[str, str]]:
        """The first page of versions and delete markers. Without versioning, objects have one version: null."""
        with call_errors("ListObjectVersions"):
            found = self.s3.list_object_versions(Bucket=self.bucket, Prefix=self.prefix, MaxKeys=PAGE)
        each = [*found.get("Versions", ()), *found.get("DeleteMarkers", ())]
        return [{"Key": one["Key"], "VersionId": one["VersionId"]} for one in each]

    def _uploads(self) -> list[dict[str, str]]:
        """The first page of unfinished uploads. For this list, unlike others, botocore does not care for encodings."""
        wanted = {"Bucket": self.bucket, "Prefix": self.prefix, "MaxUploads": UPLOADS, "EncodingType": "url"}
        with call_errors("ListMultipartUploads"):
            found = self.s3.list_multipart_uploads(**wanted)
        decoded = unquote_plus if found.get("EncodingType") == "url" else str
        return [{"Key": decoded(one["Key"]), "UploadId": one["UploadId"]} for one in found.get("Uploads", ())]

    def _abort(self, uploads: list[dict[str, str]]) -> None:
        for one in uploads:
            try:
                with call_errors("AbortMultipartUpload", NO_UPLOAD):
                    self.s3.abort_multipart_upload(Bucket=self.bucket, **one)
            except Absent:
                continue

    def _delete(self, versions: list[dict[str, str]]) -> int:
        """Delete versions; how many. More than SINGLES that XML cannot name are left for the next page."""
        named = [one for one in versions if not NO_XML.search(one["Key"])]
        singles = [one for one in versions if NO_XML.search(one["Key"])][:SINGLES]
        if named:
            with call_errors("DeleteObjects"):
                wanted = {"Objects": named, "Quiet": True}
                check_each("DeleteObjects", self.s3.delete_objects(Bucket=self.bucket, Delete=wanted))
        for one in singles:
            with call_errors("DeleteObject"):
                self.s3.delete_object(Bucket=self.bucket, **one)
        return len(named) + len(singles)


def names_below(s3: Any, bucket: str, prefix: str) -> Iterator[str]:
    """The next parts of the names below a prefix: objects and sub-prefixes, page by page. Raises DriverError."""
    with call_errors("ListObjectsV2"):
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, Delimiter="/")
        for page in pages:
            yield from (each["Key"][len(prefix) :] for each in page.get("Contents", ()))
            yield from (each["Prefix"][len(prefix) : -1] for each in page.get("CommonPrefixes", ()))
