"""The key of a log opens that log alone, for 10 to 20 minutes."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.logs.keys import WINDOW, is_good, key
from tests.domain.helpers import NOW

seconds = st.integers(0, 10**9)


@given(seconds, st.integers(0, 3600))
def test_a_key_is_good_for_ten_to_twenty_minutes(begin: int, later: int) -> None:
    """SEC-2: at any moment, and not a second longer."""
    begun = NOW + timedelta(seconds=begin)
    after = begun + timedelta(seconds=later)
    found = is_good(key("s", "J1", begun), "s", "J1", after)
    assert found or later >= WINDOW.total_seconds()
    assert not found or later < 2 * WINDOW.total_seconds()


@given(seconds)
def test_all_who_ask_in_a_window_get_the_same_key(begin: int) -> None:
    start = NOW.replace(minute=0, second=0, microsecond=0) + begin // 600 * WINDOW
    assert len({key("s", "J1", start + timedelta(seconds=each)) for each in (0, 1, 299, 599)}) == 1
    assert key("s", "J1", start) != key("s", "J1", start + WINDOW)


def test_a_key_opens_one_log_of_one_deployment() -> None:
    """SEC-2."""
    shown = key("s", "J1", NOW)
    assert is_good(shown, "s", "J1", NOW)
    assert not is_good(shown, "s", "J2", NOW)
    assert not is_good(shown, "t", "J1", NOW)
    window, _, signed = shown.partition(".")
    later, before = (f"{int(window) + by}.{signed}" for by in (1, -1))
    forged = ["", ".", window, shown[:-1], later, before, f"{shown}0", "é", "\ud800"]
    assert [each for each in forged if is_good(each, "s", "J1", NOW)] == []
    assert not is_good(key("s", "J1", NOW + WINDOW), "s", "J1", NOW), "a key of the future"
