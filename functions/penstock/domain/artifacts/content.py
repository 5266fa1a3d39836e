"""Content: what some bytes are, by their size and one digest that the store verifies.

S3 verifies the SHA-256 of an object that is sent in one piece, and for one that is sent in parts the digest of the
parts' digests, the composite; never both. So one of them is an object's identity, and the other is not repeated: it is
only what a sender said.
https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity-upload.html
"""

from __future__ import annotations

from penstock.kernel.frozen import dataclass


@dataclass(frozen=True)
class Content:
    """What some bytes are: their size in bytes, and in hex either `sha256` or, if sent in parts, `composite`.

    The other digest is "".
    """

    size: int
    sha256: str
    composite: str = ""

    @property
    def etag(self) -> str:
        """A text that stands for these bytes alone.

        Parts are marked: the digests of a file's parts, joined, are themselves a file whose SHA-256 is the composite.
        """
        return f"{self.composite}-parts" if self.composite else self.sha256

    def __str__(self) -> str:
        kind = "composite SHA-256" if self.composite else "SHA-256"
        return f"{self.size} bytes with the {kind} {self.composite or self.sha256}"


def announced(size: int, sha256: str, composite: str) -> Content:
    """What a sender announces. For a file in parts, its SHA-256 is left out: nobody verifies it."""
    return Content(size, "" if composite else sha256, composite)
