"""The bounds fit the keys and the items that they were chosen for."""

from penstock.domain.pools.pools import RANK_BASE
from penstock.kernel import limits

ITEM_BYTES = 400 * 1024
"""The most that one DynamoDB item can hold."""


def test_a_rank_has_three_digits_for_every_priority() -> None:
    assert 100 <= RANK_BASE - limits.PRIORITY < RANK_BASE + limits.PRIORITY <= 999


def test_an_order_has_two_digits_and_an_attempt_four() -> None:
    assert limits.RESOURCES <= 99
    assert limits.RETRIES + 1 <= 9999


def test_the_largest_script_fits_a_row_and_the_largest_row_an_item() -> None:
    assert limits.SCRIPT_BYTES < limits.ROW_BYTES < ITEM_BYTES


def test_a_batch_of_events_fits_an_item_and_holds_at_least_one_line() -> None:
    assert limits.EVENT_LINE_BYTES < limits.EVENT_BATCH_BYTES < ITEM_BYTES
    assert limits.EVENT_BATCH_BYTES < limits.BODY_BYTES


def test_a_request_can_carry_the_largest_script() -> None:
    assert 2 * limits.SCRIPT_BYTES < limits.BODY_BYTES
