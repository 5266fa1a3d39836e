"""ULIDs: canonical, told from other texts, and sorted by age."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.kernel.rows import RANDOM_BYTES, born, is_ulid, ulid, ulid_in
from tests.domain.helpers import NOW

instants = st.datetimes(datetime(1970, 1, 1), datetime(9999, 1, 1), timezones=st.just(UTC))
chances = st.binary(min_size=RANDOM_BYTES, max_size=RANDOM_BYTES)


@given(instants, chances)
def test_an_id_is_canonical_and_tells_when_it_was_made(now: datetime, chance: bytes) -> None:
    made = ulid(now, chance)
    assert is_ulid(made)
    assert abs(born(made) - now) <= timedelta(milliseconds=2)


@given(instants, instants, chances, chances)
def test_ids_sort_by_age(one: datetime, other: datetime, chance: bytes, luck: bytes) -> None:
    early, late = sorted((one, other))
    if late - early > timedelta(milliseconds=2):
        assert ulid(early, chance) < ulid(late, luck)


@given(chances, chances)
def test_ids_of_one_instant_differ_by_chance(chance: bytes, luck: bytes) -> None:
    assert (ulid(NOW, chance) == ulid(NOW, luck)) is (chance == luck)


def test_the_specs_own_example() -> None:
    made = ulid(datetime.fromtimestamp(1469918176.385, UTC), bytes(RANDOM_BYTES))
    assert made == "01ARYZ6S41" + "0" * 16


@pytest.mark.parametrize("size", [0, RANDOM_BYTES - 1, RANDOM_BYTES + 1])
def test_any_other_number_of_random_bytes_is_a_mistake(size: int) -> None:
    with pytest.raises(ValueError, match="takes 10 random bytes"):
        ulid(NOW, bytes(size))


@pytest.mark.parametrize(
    "text",
    ["", "0" * 25, "0" * 27, "8" + "0" * 25, "0" * 25 + "u", "0" * 25 + "I", "0" * 25 + "U", "0" * 26 + "\n"],
)
def test_what_is_no_id(text: str) -> None:
    assert not is_ulid(text)


@pytest.mark.parametrize(("unit", "found"), [("w-" + "0" * 26, "0" * 26), ("0" * 26, "0" * 26), ("w-1", None)])
def test_the_ulid_in_the_id_of_a_unit(unit: str, found: str | None) -> None:
    assert ulid_in(unit) == found
