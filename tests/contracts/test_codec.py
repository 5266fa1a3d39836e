"""Rows as JSON has them: what is dumped can be loaded again, defaults are left out, and bad values are refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import pytest

from penstock.aws import codec, dynamodb
from penstock.kernel.frozen import dataclass

AT = datetime(2026, 11, 29, 4, 36, 2, 5000, UTC)


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    """A value in a row."""

    count: int
    when: datetime | None = None


@dataclass(frozen=True)
class Outer:
    """A value with a field of each type that rows have."""

    name: str
    colour: Colour = Colour.RED
    part: float = 0.5
    is_on: bool = False
    inner: Inner | None = None
    many: tuple[Inner, ...] = ()
    pair: tuple[str, int] = ("", 0)
    named: Mapping[str, Inner] = field(default_factory=dict)
    free: Any = None


FULL = Outer(
    "n", part=1.5, is_on=True, inner=Inner(1, AT), many=(Inner(2), Inner(3)), pair=("a", 4), named={"x": Inner(5)},
    free={"any": [1]},
)  # fmt: skip
PLAIN = {
    "name": "n", "part": 1.5, "is_on": True, "inner": {"count": 1, "when": "2026-11-29T04:36:02.005000+00:00"},
    "many": [{"count": 2}, {"count": 3}], "pair": ["a", 4], "named": {"x": {"count": 5}}, "free": {"any": [1]},
}  # fmt: skip


def test_a_value_is_dumped_and_loaded_again() -> None:
    assert codec.dump(FULL) == PLAIN
    assert codec.load(Outer, json.loads(json.dumps(PLAIN))) == FULL


def test_defaults_are_left_out_also_those_that_are_made_anew() -> None:
    assert codec.dump(Outer("n", named={})) == {"name": "n"}
    assert codec.load(Outer, {"name": "n"}) == Outer("n")


def test_none_is_written_where_it_is_not_the_default() -> None:
    @dataclass(frozen=True)
    class Asked:
        most: int | None = 3

    assert codec.dump(Asked(None)) == {"most": None}
    assert codec.load(Asked, {"most": None}) == Asked(None)


def test_an_enumeration_is_a_text_and_becomes_a_member_again() -> None:
    @dataclass(frozen=True)
    class Painted:
        colour: Colour

    assert type(codec.dump(Painted(Colour.RED))["colour"]) is str
    assert codec.dump(Painted("red")) == {"colour": "red"}  # type: ignore[arg-type]
    assert codec.load(Painted, {"colour": "red"}).colour is Colour.RED


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"name": "n", "colour": "blue"},
        {"name": "n", "inner": {"count": "x"}},
        {"name": "n", "inner": {"count": 1, "when": "soon"}},
        {"name": "n", "pair": ["a"]},
        {"name": "n", "part": []},
    ],
)
def test_what_cannot_be_read_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        codec.load(Outer, wrong)


def test_unknown_names_are_passed_over() -> None:
    assert codec.load(Inner, {"count": 1, "later": 2}) == Inner(1)


@pytest.mark.parametrize("hint", [int | str | None, Mapping[int, str], bytes, list[int], "Inner"])
def test_a_type_that_no_row_has_is_refused(hint: Any) -> None:
    with pytest.raises(TypeError):
        codec.codec_of(hint)


@pytest.mark.parametrize("kind", dynamodb.KINDS.values(), ids=dynamodb.KINDS)
def test_all_fields_of_all_rows_have_a_codec(kind: Any) -> None:
    assert callable(codec.codec_of(kind).load)
