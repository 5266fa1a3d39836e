"""Request bodies: JSON read into dataclasses, with every error by its place.

The JSON must be finite, its numbers exact in every language, and not nested deeply. cattrs builds the dataclasses; the
hooks here are strict where its own would convert, such as from 5 to "5".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from functools import cache
from itertools import islice
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

from cattrs import AttributeValidationNote, ClassValidationError, Converter
from cattrs.gen import make_dict_structure_fn, override

from penstock.kernel import limits
from penstock.kernel.errors import Fault, Refused
from penstock.kernel.limits import Bound

T = TypeVar("T")
Hook = Callable[[Any, Any], Any]

NESTED = 32
"""How deeply a request may be nested."""

MOST = 2**53 - 1
"""The largest whole number that programs in every language keep exactly. Source: RFC 7493, section 2.2."""

GUESSES = 50
"""For how many unknown keys of one object the reader guesses what was meant."""

KEY_CHARS = 64
"""How many characters of a client's key an error repeats."""


class Wrong(ValueError):
    """What is wrong with a value, and with the values in it."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__(*(fault.message for fault in faults))
        self.faults = faults


def parse(kind: type[T], raw: str, most: int = limits.BODY_BYTES) -> T:
    """The value of a class that a body describes. Raises Refused 413, or 400 with everything that is wrong."""
    if len(raw.encode("utf-8", "surrogatepass")) > most:
        raise Refused(413, "body-too-big", f"the body has more than {most} bytes")
    given = read(raw)
    try:
        made: T = _converter().structure(given, kind)
        return made
    except Wrong as wrong:
        faults = [_whole(fault) for fault in wrong.faults]
        known = [fault for fault in faults if not fault.message.startswith("unknown key")]
        detail = known[0].message if known else "the body has keys that are not known"
        raise Refused(400, "bad-request", detail, faults) from None


def _whole(fault: Fault) -> Fault:
    """A fault whose message says where it is."""
    if fault.message.startswith("unknown key"):
        return fault
    return Fault(f"{fault.where or 'the body'} {fault.message}", where=fault.where, hint=fault.hint)


@cache
def _converter() -> Converter:
    """The one converter; each class costs some milliseconds, when it is first read."""
    made = Converter()
    for kind, words in ((str, "a string"), (int, "a whole number"), (float, "a number"), (bool, "true or false")):
        made.register_structure_hook(kind, _scalar(kind, words))
    made.register_structure_hook_factory(_is_of(list), lambda hint: _list(made, hint))
    made.register_structure_hook_factory(_is_of(dict), lambda hint: _dict(made, hint))
    made.register_structure_hook_factory(_is_of(Literal), _literal)
    made.register_structure_hook_factory(_is_of(Union, UnionType), lambda hint: _union(made, hint))
    made.register_structure_hook_factory(_is_of(Annotated), lambda hint: _bounded(made, hint))
    made.register_structure_hook_factory(_is_shape, lambda kind: _shape(made, kind))
    return made


def _is_of(*origins: Any) -> Callable[[Any], bool]:
    return lambda hint: get_origin(hint) in origins


def _is_shape(hint: Any) -> bool:
    return isinstance(hint, type) and is_dataclass(hint)


def _is_a(value: object, hint: Any) -> bool:
    """Whether a value of JSON is of a type, from the outside."""
    kind = get_origin(hint) or hint
    if kind is float:
        return type(value) in (int, float)
    return isinstance(value, dict) if _is_shape(kind) else type(value) is kind


def _scalar(kind: type, words: str) -> Hook:
    def check(value: Any, _: Any) -> Any:
        if not _is_a(value, kind):
            raise Wrong(Fault(f"must be {words}"))
        return value

    return check


def _list(converter: Converter, hint: Any) -> Hook:
    (kind,) = get_args(hint)
    inner = converter.get_structure_hook(kind)

    def check(value: Any, _: Any) -> Any:
        if not isinstance(value, list):
            raise Wrong(Fault("must be a list"))
        return list(_each(inner, kind, ((f"[{place}]", one) for place, one in enumerate(value))))

    return check


def _dict(converter: Converter, hint: Any) -> Hook:
    _, kind = get_args(hint)
    inner = converter.get_structure_hook(kind)

    def check(value: Any, _: Any) -> Any:
        if not isinstance(value, dict):
            raise Wrong(Fault("must be an object"))
        return dict(zip(value, _each(inner, kind, ((key, one) for key, one in value.items())), strict=True))

    return check


def _each(inner: Hook, kind: Any, items: Iterable[tuple[str, Any]]) -> Iterator[Any]:
    """The values at some places. Raises Wrong for the first that is wrong."""
    for place, one in items:
        try:
            yield inner(one, kind)
        except Wrong as wrong:
            raise Wrong(*(_below(place, fault) for fault in wrong.faults)) from None


def _below(place: str, fault: Fault) -> Fault:
    """A fault as the value around it sees it."""
    dot = "." if fault.where and not fault.where.startswith("[") else ""
    return Fault(fault.message, where=f"{place[:KEY_CHARS]}{dot}{fault.where or ''}", hint=fault.hint)


def _literal(hint: Any) -> Hook:
    allowed = get_args(hint)

    def check(value: Any, _: Any) -> Any:
        if value not in allowed:
            close = get_close_matches(value[:KEY_CHARS], allowed, 1) if isinstance(value, str) else []
            guess = f"did you mean {close[0]!r}?" if close else None
            raise Wrong(Fault(f"must be one of {', '.join(allowed)}", hint=guess))
        return value

    return check


def _union(converter: Converter, hint: Any) -> Hook:
    kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    inner = {kind: converter.get_structure_hook(kind) for kind in kinds}

    def check(value: Any, _: Any) -> Any:
        if value is None and len(kinds) < len(get_args(hint)):
            return None
        for kind in kinds:
            if _is_a(value, kind) or (get_origin(kind) is Literal and isinstance(value, str)):
                return inner[kind](value, kind)
        raise Wrong(Fault(f"must be {' or '.join(_words(kind) for kind in get_args(hint))}"))

    return check


def _words(kind: Any) -> str:
    """What values of a type are called."""
    if _is_shape(kind):
        return "an object"
    words = {str: "a string", int: "a whole number", float: "a number", bool: "true or false", NoneType: "null"}
    return words.get(kind) or {list: "a list", dict: "an object"}.get(get_origin(kind) or kind, "one of some texts")


def _bounded(converter: Converter, hint: Any) -> Hook:
    kind, *notes = get_args(hint)
    inner = converter.get_structure_hook(kind)
    bounds = [note for note in notes if isinstance(note, Bound)]

    def check(value: Any, _: Any) -> Any:
        made = inner(value, kind)
        for bound in bounds:
            _within(made, bound)
        return made

    return check if bounds else lambda value, _: inner(value, kind)


def _within(value: object, bound: Bound) -> None:
    """Raises Wrong for a text that is too short or too long, or a number that is too small or too large."""
    if isinstance(value, str) and len(value) > bound.most:
        raise Wrong(Fault(f"must have at most {bound.most} characters"))
    if isinstance(value, str) and len(value) < bound.least:
        raise Wrong(Fault(f"must have {bound.least} to {bound.most} characters"))
    if isinstance(value, int) and not bound.least <= value <= bound.most:
        raise Wrong(Fault(f"must be from {bound.least} to {bound.most}"))


def _shape(converter: Converter, kind: type) -> Hook:
    hints = get_type_hints(kind, include_extras=True)
    hooks: dict[str, Any] = {
        each.name: override(rename=each.name.rstrip("_"), struct_hook=converter.get_structure_hook(hints[each.name]))
        for each in fields(kind)
    }
    build: Hook = make_dict_structure_fn(kind, converter, _cattrs_detailed_validation=True, **hooks)
    keys = [name.rstrip("_") for name in hooks]

    def check(value: Any, _: Any) -> Any:
        if not isinstance(value, dict):
            raise Wrong(Fault("must be a JSON object"))
        faults = list(_unknown(value, keys))
        try:
            made = build(value, kind)
        except ClassValidationError as error:
            faults += [fault for each in error.exceptions for fault in _of_field(each)]
        if faults:
            raise Wrong(*faults)
        return made

    return check


def _unknown(given: Mapping[str, Any], keys: list[str]) -> Iterator[Fault]:
    """Keys that a class does not have, with what was perhaps meant."""
    for key in islice((key for key in given if key not in keys), GUESSES):
        close = get_close_matches(key[:KEY_CHARS], keys, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(keys)}"
        yield Fault(f"unknown key {key[:KEY_CHARS]!r}", where=key[:KEY_CHARS], hint=hint)


def _of_field(error: Exception) -> Iterator[Fault]:
    """What is wrong with one field, as its object sees it. Raises an error that is not about the value."""
    name = next(note.name for note in getattr(error, "__notes__", ()) if isinstance(note, AttributeValidationNote))
    if isinstance(error, KeyError):
        yield Fault("is missing", where=name.rstrip("_"))
    elif isinstance(error, Wrong):
        yield from (_below(name.rstrip("_"), fault) for fault in error.faults)
    else:
        raise error


def read(raw: str) -> Any:
    """What a text of JSON says. Raises Refused 400 with what is wrong and, where that is known, at which place."""
    try:
        given = json.loads(raw, parse_constant=_no_constant, parse_int=_whole_number, parse_float=_number)
        json.dumps(given, ensure_ascii=False).encode()
        deep = _is_deeper(given, NESTED)
    except json.JSONDecodeError as error:
        said = f"the body is not JSON: {error.msg} at line {error.lineno} column {error.colno}"
        raise Refused(400, "malformed-json", said, [Fault(said, line=error.lineno, column=error.colno)]) from None
    except (ValueError, RecursionError) as error:
        raise Refused(400, "malformed-json", f"the body is not JSON that can be read: {type(error).__name__}") from None
    if deep:
        raise Refused(400, "malformed-json", f"the body is nested more than {NESTED} deep")
    return given


def _no_constant(name: str) -> NoReturn:
    raise Refused(400, "malformed-json", f"the body is not JSON: {name} is no number")


def _whole_number(text: str) -> int:
    return int(_exact(int(text), text))


def _number(text: str) -> int | float:
    """What is written with a point or an exponent. `5.0` is a whole number in JSON Schema, and so it is here."""
    number = _exact(float(text), text)
    return int(number) if number == int(number) else number


def _exact(number: float, text: str) -> float:
    if abs(number) > MOST:
        said = f"numbers are from -{MOST} to {MOST}, and {text[:40]} is not"
        raise Refused(400, "bad-request", said, [Fault(said)])
    return number


def _is_deeper(value: object, left: int) -> bool:
    """Whether a value is nested more deeply than so many levels."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return left == 0 or any(_is_deeper(one, left - 1) for one in inner)
