"""Which of a pool's named things a lease may have: by their labels, alone or beside others, close together or apart.

A choice of labels is an expression over what the site says of each thing:

    board == gimlet && rack != 4            both
    name == bench-3 || name == bench-4      either; the name of a thing is a label too
    debugger && !(rack == 4)                it has the label `debugger`, whatever its value; and not that

`==` needs the label; `!=` is also true of a thing without it. `&&` binds closer than `||`. Values with other characters
than letters, digits and . _ - stand in double quotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache

from penstock.kernel import limits
from penstock.kernel.frozen import dataclass

NAME = "name"
"""The label that every thing has: its name."""

Labels = Mapping[str, str]
"""The labels of one thing."""

Test = Callable[[Labels], bool]
"""Whether a thing with these labels is among those that are meant."""

MAX_DEPTH = 20
"""How deep parentheses may be nested."""


class Placement(StrEnum):
    """Which of the things that fit a lease gets, where each serves several leases."""

    ANY = "any"  # whichever is found first
    PACKED = "packed"  # the one with the fewest leases left, so that others stay free as a whole
    LEAST_LOADED = "least-loaded"  # the one with the most leases left


@dataclass(frozen=True)
class Choice:
    """What one lease wants of a named pool. `labels` is an expression, "" for any thing; `exclusive` leases have all
    slots of a thing. Those that are `together` are of one thing, however many.
    """

    labels: str = ""
    exclusive: bool = False
    placement: Placement = Placement.ANY
    together: bool = False

    def fits(self, thing: str, labels: Labels) -> bool:
        """Whether a thing with these labels is one of those that the lease may have."""
        return not self.labels or test_of(self.labels)({**labels, NAME: thing})

    def __str__(self) -> str:
        alone = "for itself" if self.exclusive else ""
        return " ".join(part for part in (self.labels, alone) if part)


ANY = Choice()
"""Of a lease that does not choose."""


class Unparsed(ValueError):
    """An expression that means nothing: a sentence that says what is wrong, and at which column."""


def check(text: str) -> None:
    """Raises Unparsed for a text that is no expression over labels."""
    if len(text) > limits.LABELS_CHARS:
        raise Unparsed(f"it has {len(text)} characters; it may have at most {limits.LABELS_CHARS}")
    _Parser(text).parse()


@lru_cache(maxsize=1000)
def test_of(text: str) -> Test:
    """What an expression asks of a thing's labels, of which its name is one. Raises Unparsed."""
    return _Parser(text).parse()


_TOKEN = r'\s*(?:(?P<word>[A-Za-z0-9._-]+)|"(?P<quoted>[^"]*)"|(?P<sign>==|!=|&&|\|\||[!()]))'


@dataclass(frozen=True)
class _Token:
    """A word, a text in quotes, or a sign, and the column where it begins, counted from 1."""

    kind: str
    text: str
    column: int


def _tokens(text: str) -> Iterator[_Token]:
    token, at, end = re.compile(_TOKEN), 0, len(text.rstrip())
    while at < end:
        found = token.match(text, at)
        if found is None:
            column = at + 1 + len(text[at:]) - len(text[at:].lstrip())
            raise Unparsed(f"{text[column - 1]!r} at column {column} cannot stand here")
        kind = str(found.lastgroup)
        yield _Token(kind, found[kind], found.start(kind) + 1 - (kind == "quoted"))
        at = found.end()
    yield _Token("end", "the end", end + 1)


class _Parser:
    """Reads an expression by recursive descent: a method for each rule of the grammar."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at, self._depth = 0, 0

    def parse(self) -> Test:
        found = self._either()
        self._expect("end", "`&&`, `||`, or the end")
        return found

    def _either(self) -> Test:
        tests = [self._both()]
        while self._skip("||"):
            tests.append(self._both())
        return tests[0] if len(tests) == 1 else lambda labels: any(test(labels) for test in tests)

    def _both(self) -> Test:
        tests = [self._one()]
        while self._skip("&&"):
            tests.append(self._one())
        return tests[0] if len(tests) == 1 else lambda labels: all(test(labels) for test in tests)

    def _one(self) -> Test:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Unparsed(f"it is nested deeper than {MAX_DEPTH} levels")
        try:
            if self._skip("!"):
                test = self._one()
                return lambda labels: not test(labels)
            if self._skip("("):
                test = self._either()
                self._expect("sign", "`)`", ")")
                return test
            return self._label()
        finally:
            self._depth -= 1

    def _label(self) -> Test:
        key = self._expect("word", "a label, like `board`").text
        if self._skip("=="):
            wanted = self._value("==")
            return lambda labels: labels.get(key) == wanted
        if self._skip("!="):
            unwanted = self._value("!=")
            return lambda labels: labels.get(key) != unwanted
        return lambda labels: key in labels

    def _value(self, sign: str) -> str:
        if self._tokens[self._at].kind == "quoted":
            return self._next().text
        return self._expect("word", f"a value after `{sign}`").text

    def _skip(self, sign: str) -> bool:
        token = self._tokens[self._at]
        is_there = token.kind == "sign" and token.text == sign
        self._at += is_there
        return is_there

    def _next(self) -> _Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _expect(self, kind: str, what: str, text: str = "") -> _Token:
        token = self._tokens[self._at]
        if token.kind != kind or (text and token.text != text):
            said = token.text if token.kind == "end" else repr(token.text)
            raise Unparsed(f"wanted {what}, not {said}, at column {token.column}")
        return self._next()
