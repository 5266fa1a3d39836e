"""Of what parts a big object consists, and what is said of them."""

from __future__ import annotations

import hashlib

import pytest

from penstock.domain.artifacts import volumes
from penstock.domain.artifacts.volumes import MAX_PARTS, PART_BYTES, PARTS_PER_CALL, Part

DIGEST = "0" * 64


@pytest.mark.parametrize(
    ("size", "count"), [(1, 1), (PART_BYTES, 1), (PART_BYTES + 1, 2), (MAX_PARTS * PART_BYTES, MAX_PARTS)]
)
def test_an_object_has_as_few_parts_as_hold_it(size: int, count: int) -> None:
    assert volumes.count_parts(size) == count


def test_every_part_is_full_but_the_last() -> None:
    named = volumes.name_parts(2 * PART_BYTES + 5, 2, [DIGEST, "1" * 64])
    assert named == [Part(2, PART_BYTES, DIGEST), Part(3, 5, "1" * 64)]
    assert volumes.name_parts(PART_BYTES, 1, [DIGEST]) == [Part(1, PART_BYTES, DIGEST)]


@pytest.mark.parametrize(
    ("first", "digests", "what"),
    [
        (0, [DIGEST], "of its 200 parts, 0 to 0 were named"),
        (200, [DIGEST] * 2, "of its 200 parts, 200 to 201 were named"),
        (7, [], "of its 200 parts, 7 to 6 were named"),
        (1, [DIGEST] * (PARTS_PER_CALL + 1), "name at most 100 parts at once"),
        (1, [DIGEST, "A" * 64], "64 hex digits, in lower case"),
        (1, ["0" * 65], "64 hex digits, in lower case"),
    ],
)
def test_only_parts_that_there_are_can_be_named(first: int, digests: list[str], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        volumes.name_parts(200 * PART_BYTES, first, digests)


def test_as_many_can_be_named_as_there_are_and_as_fit_in_a_call() -> None:
    assert len(volumes.name_parts(PARTS_PER_CALL * PART_BYTES, 1, [DIGEST] * PARTS_PER_CALL)) == PARTS_PER_CALL


def test_the_digest_of_parts_is_that_of_their_digests_in_order() -> None:
    one, two = hashlib.sha256(b"one"), hashlib.sha256(b"two")
    both = hashlib.sha256(one.digest() + two.digest()).hexdigest()
    assert volumes.composite([one.hexdigest(), two.hexdigest()]) == both
    assert volumes.composite([two.hexdigest(), one.hexdigest()]) != both
