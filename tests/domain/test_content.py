"""What bytes are known by."""

from __future__ import annotations

from penstock.domain.artifacts.content import Content, announced
from penstock.domain.artifacts.inputs import Input
from tests.domain.helpers import NOW

DIGEST, COMPOSITE = "ab" * 32, "cd" * 32


def test_a_file_in_parts_is_known_by_its_composite_alone() -> None:
    assert announced(3, DIGEST, "") == Content(3, DIGEST)
    assert announced(3, DIGEST, COMPOSITE) == Content(3, "", COMPOSITE)


def test_no_etag_of_a_file_in_parts_is_that_of_a_whole_one() -> None:
    """The digests of the parts, joined, are a file whose SHA-256 is the composite."""
    assert Content(3, DIGEST).etag == DIGEST
    assert Content(3, "", DIGEST).etag == f"{DIGEST}-parts"


def test_the_content_of_an_input_is_what_was_announced() -> None:
    given = Input(job="j", artifact="", name="data", until=NOW, size=3, sha256=DIGEST)
    assert given.content == Content(3, DIGEST)
