"""Output rules and durations."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.domain.jobfile import OutputRule, parse_duration, parse_output_rule


@pytest.mark.parametrize(
    ("text", "ignore", "require", "change", "shown"),
    [
        ("/a", False, False, False, "/a"),
        ("!/a", True, False, False, "!/a"),
        ("=/a", False, True, False, "=/a"),
        ("%/a", False, False, True, "%/a"),
        ("=%/a", False, True, True, "%=/a"),
        ("%=/a", False, True, True, "%=/a"),
    ],
)
def test_sigils(text: str, ignore: bool, require: bool, change: bool, shown: str) -> None:
    rule = parse_output_rule(text)
    assert rule == OutputRule("/a", ignore, require, change, text)
    assert str(rule) == shown


def test_sigils_after_the_slash_are_part_of_the_path() -> None:
    rule = parse_output_rule("/!=%/x")
    assert isinstance(rule, OutputRule)
    assert (rule.path, rule.ignore) == ("/!=%/x", False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "output rule pattern must be absolute path"),
        ("=", "output rule pattern must be absolute path"),
        ("!", "output rule pattern must be absolute path"),
        ("work/a", "wanted sigil/absolute path, not 'w'"),
        (" /a", "wanted sigil/absolute path, not ' '"),
        ("==/a", "'=' unexpected in output rule"),
        ("%%/a", "'%' unexpected in output rule"),
        ("=!/a", "'!' unexpected in output rule"),
        ("%a", "'a' unexpected in output rule"),
        ("!=/a", "wanted '/', not '=', in output rule"),
        ("!!/a", "wanted '/', not '!', in output rule"),
        ("=%=/a", "wanted '/', not '=', in output rule"),
        ("%=x", "wanted '/', not 'x', in output rule"),
    ],
)
def test_wrong_rules(text: str, message: str) -> None:
    assert parse_output_rule(text) == message


@settings(deadline=None)
@given(st.text(alphabet="!=%/a", max_size=6))
def test_a_rule_shown_is_the_same_rule(text: str) -> None:
    rule = parse_output_rule(text)
    if isinstance(rule, OutputRule):
        again = parse_output_rule(str(rule))
        assert isinstance(again, OutputRule)
        assert str(again) == str(rule)
        assert again.path == rule.path


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("90s", 90),
        ("30m", 1800),
        ("2h", 7200),
        ("1d", 86400),
        ("1h30m", 5400),
        ("1d2h3m4s", 93784),
        ("0s", 0),
        (90, 90),
        (0, 0),
    ],
)
def test_durations(value: object, seconds: int) -> None:
    assert parse_duration(value) == seconds


@pytest.mark.parametrize(
    "value",
    [
        "",
        "90",
        "1.5h",
        "30m1h",
        "1h 30m",
        "-1s",
        "2H",
        "1w",
        "٣m",
        "9" * 99 + "s",
        -1,
        10**9 + 1,
        2.0,
        True,
        None,
        [],
    ],
)
def test_wrong_durations(value: object) -> None:
    found = parse_duration(value)
    assert isinstance(found, str)
    assert found.startswith("wanted")
