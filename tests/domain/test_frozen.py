"""Frozen dataclasses with shared methods do what those of the standard library do."""

from __future__ import annotations

import dataclasses
import pickle
import threading
from collections.abc import Callable
from dataclasses import field, fields, replace
from typing import Any, ClassVar

import pytest

from penstock.kernel import frozen


def declared(decorator: Any) -> Any:
    """The same classes with each decorator."""

    @decorator(frozen=True, kw_only=True)
    class Base:
        number: int = 0

    @decorator(frozen=True)
    class Thing(Base):
        kind: ClassVar[str] = "thing"
        name: str
        size: int = 1
        tags: list[str] = field(default_factory=list)
        there: bool = field(default=True, init=False)
        spot: int | None = field(default=None, compare=False)
        secret: str = field(default="", repr=False)

    return Thing


STANDARD, SHARED = declared(dataclasses.dataclass), declared(frozen.dataclass)

CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    (("a",), {}),
    (("a", 2), {"number": 3}),
    (("a", 2, ["x"], 5, "hidden"), {}),
    ((), {"name": "a", "spot": 4}),
    ((), {}),
    ((), {"size": 2}),
    (("a", 2, [], None, "", "too many"), {}),
    (("a",), {"name": "twice"}),
    (("a",), {"unknown": 1}),
    ((), {"unknown": 1}),
    (("a",), {"there": False}),
    (("a",), {"kind": "other"}),
    (("a", 1, [], None, "", 7), {}),
]


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (TypeError, ValueError, AttributeError) as error:
        return type(error)


@pytest.mark.parametrize(("given", "named"), CALLS)
def test_a_value_is_made_as_by_the_standard_library(given: tuple[Any, ...], named: dict[str, Any]) -> None:
    def made(cls: Any) -> Any:
        return outcome(lambda: (repr(value := cls(*given, **named)), dataclasses.asdict(value)))

    assert made(SHARED) == made(STANDARD)


def test_a_refusal_says_what_is_taken() -> None:
    with pytest.raises(TypeError, match=r"Thing\(\) was given 1 values and \['size', 'unknown'\].* needs \['name'\]"):
        SHARED("a", size=2, unknown=3)


def test_values_are_equal_by_the_fields_that_are_compared() -> None:
    for cls in (SHARED, STANDARD):
        value = cls("a", 1, (), 4)
        assert value == cls("a", 1, (), 5)
        assert hash(value) == hash(cls("a", 1, (), 5))
        assert value != cls("a", 1, (), 4, number=9)
        assert value != cls("a", 2, (), 4)
    assert SHARED("a") != STANDARD("a")
    assert (SHARED("a") == "a") is False


def test_what_is_cached_on_a_value_is_not_compared() -> None:
    value = SHARED("a")
    vars(value)["cached"] = 1
    assert value == SHARED("a")


def test_classes_without_fields_and_with_one() -> None:
    @frozen.dataclass(frozen=True)
    class Empty:
        """Nothing."""

    @frozen.dataclass(frozen=True)
    class One:
        name: str

    assert Empty() == Empty()
    assert hash(Empty()) == hash(Empty())
    assert One("a") == One("a") != One("b")
    assert hash(One("a")) == hash(One("a"))


def test_a_value_never_changes() -> None:
    for cls in (SHARED, STANDARD):
        value = cls("a")
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'name'"):
            value.name = "b"
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'name'"):
            del value.name
        assert replace(value, name="b", number=2) == cls("b", number=2)
        assert value == cls("a")


def test_a_class_without_equality_by_value_is_equal_to_itself_alone() -> None:
    @frozen.dataclass(frozen=True, eq=False)
    class Metric:
        name: str

    metric = Metric("a")
    assert metric == metric
    assert metric != Metric("a")
    assert hash(metric) != hash(Metric("a"))


def test_own_methods_are_kept_and_a_value_may_check_itself() -> None:
    @frozen.dataclass(frozen=True)
    class Own:
        name: str

        def __repr__(self) -> str:
            return f"<{self.name}>"

        def __post_init__(self) -> None:
            if not self.name:
                raise ValueError("no name")

    assert repr(Own("a")) == "<a>"
    with pytest.raises(ValueError, match="no name"):
        Own("")


def test_matching_by_position_takes_the_positional_fields() -> None:
    match SHARED("a", 2):
        case SHARED(name, size):  # type: ignore[misc]
            assert (name, size) == ("a", 2)
    assert SHARED.__match_args__ == STANDARD.__match_args__


@pytest.mark.parametrize(
    "first", [fields, lambda cls: cls("a"), lambda cls: cls.__match_args__, dataclasses.is_dataclass]
)
def test_a_class_is_finished_by_its_first_use_whatever_that_is(first: Callable[[Any], Any]) -> None:
    cls = declared(frozen.dataclass)
    assert first(cls)
    assert [each.name for each in fields(cls)] == [each.name for each in fields(STANDARD)]
    assert cls("a").size == 1


def test_many_threads_may_use_a_class_first() -> None:
    for _ in range(20):
        cls, start, made = declared(frozen.dataclass), threading.Barrier(8), []

        def use(cls: Any = cls, start: threading.Barrier = start, made: list[Any] = made) -> None:
            start.wait()
            made.append(cls("a", 2))

        threads = [threading.Thread(target=use) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [cls("a", 2)] * 8


@frozen.dataclass(frozen=True)
class Sent:
    """A value that goes to another process."""

    name: str


def test_a_value_survives_pickling() -> None:
    assert pickle.loads(pickle.dumps(Sent("a"))) == Sent("a")


def test_only_frozen_classes_are_taken() -> None:
    with pytest.raises(ValueError, match="only frozen"):
        frozen.dataclass(frozen=False)


def test_decorators_do_not_mix() -> None:
    with pytest.raises(TypeError, match="cannot inherit frozen dataclass from a non-frozen one"):
        dataclasses.dataclass(frozen=True)(type("Below", (SHARED,), {}))
    mixed = frozen.dataclass(frozen=True)(type("Below", (STANDARD,), {}))
    with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):
        mixed("a")
