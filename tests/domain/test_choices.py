"""Expressions over the labels of things."""

import pytest

from penstock.domain.pools import choices
from penstock.domain.pools.choices import Choice, Unparsed
from penstock.kernel import limits

LABELS = {"board": "gimlet", "rack": "4", "zone": "a b"}


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("", True),
        ("board == gimlet", True),
        ("board==gimlet", True),
        ("board == sidecar", False),
        ("board != sidecar", True),
        ("board != gimlet", False),
        ("debugger != yes", True),
        ("debugger == yes", False),
        ("debugger", False),
        ("board", True),
        ("!debugger", True),
        ("!!board", True),
        ("!(board && rack)", False),
        ("board == gimlet && rack != 4", False),
        ("board == sidecar || rack == 4", True),
        ("board == sidecar && rack == 5 || rack == 4", True),
        ("board == sidecar && (rack == 5 || rack == 4)", False),
        ('zone == "a b"', True),
        ('zone != "a b"', False),
        ("name == bench-3", True),
        ("name != bench-3", False),
        ("name == bench-4 || name == bench-3  ", True),
    ],
)
def test_an_expression_says_which_things_are_meant(text: str, fits: bool) -> None:
    choices.check(text or "board")
    assert Choice(text).fits("bench-3", LABELS) is fits


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("  ", "wanted a label, like `board`, not the end, at column 1"),
        ("board ==", "wanted a value after `==`, not the end, at column 9"),
        ("board != ||", "wanted a value after `!=`, not '||', at column 10"),
        ("board = gimlet", "'=' at column 7 cannot stand here"),
        ('board == "gimlet', "'\"' at column 10 cannot stand here"),
        ("board gimlet", "wanted `&&`, `||`, or the end, not 'gimlet', at column 7"),
        ("(board == gimlet", "wanted `)`, not the end, at column 17"),
        ("(board == gimlet && !", "wanted a label, like `board`, not the end, at column 22"),
        ("(board !", "wanted `)`, not '!', at column 8"),
        ("board == gimlet &&", "wanted a label, like `board`, not the end, at column 19"),
        ('"board" == gimlet', "wanted a label, like `board`, not 'board', at column 1"),
        ("(" * 30, "it is nested deeper than 20 levels"),
        ("!" * 400 + "a", "it is nested deeper than 20 levels"),
        ("a" * 501, f"it has 501 characters; it may have at most {limits.LABELS_CHARS}"),
    ],
)
def test_what_is_no_expression_says_where(text: str, said: str) -> None:
    with pytest.raises(Unparsed) as caught:
        choices.check(text)
    assert str(caught.value) == said


def test_parentheses_may_be_nested_as_deep_as_it_says() -> None:
    depth = choices.MAX_DEPTH - 1
    choices.check("(" * depth + "board" + ")" * depth)


def test_a_choice_says_what_it_wants() -> None:
    assert str(Choice("board == gimlet")) == "board == gimlet"
    assert str(Choice("board == gimlet", exclusive=True)) == "board == gimlet for itself"
    assert str(Choice(exclusive=True)) == "for itself"
