"""Hides secrets in what leaves the machine. docs/users/secrets.md says what is found, and what cannot be. [SEC-1]

`resource_secrets` and `text_secrets` yield the secrets. `Mask` finds them in a text: as they are, in Base64 and hex,
also broken into lines, and with escaped characters. `MaskedStream` hides them in what a process prints.
"""

from __future__ import annotations

import base64
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import unquote

from .machine import now

MIN_CHARS = 8
"""Shorter values are not masked: too much ordinary text would match."""

MIN_NAMED_CHARS = 4
"""The same for values whose key suggests a secret."""

PIECE_CHARS = 64
"""Escaped secrets are searched for in pieces of this many characters."""

MAX_FORM_BYTES = 18
"""The most bytes of one escaped character: two escapes of JSON, each escaped twice more."""

ESCAPED_LETTER = re.compile(rb"%(?:3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa])|\\u00[3-7]")
"""An escaped letter or digit: few tools write one."""

_SECRET_KEY = re.compile("pass|secret|token|key|credential|private|auth", re.IGNORECASE)
_IN_URL = re.compile(r"://[^/@\s:]*:([^/\s]+)@")
_CONTROL_ESCAPES = {"\n": b"n", "\r": b"r", "\t": b"t", "\b": b"b", "\f": b"f"}
_BASE64_CUTS = (0, 2, 3)
"""How many characters of Base64 depend on the bytes before, for 0, 1 and 2 bytes."""

STARS = b"***"
ESCAPE_MARKS = (b"\\", b"%", b"'\"'")
"""A line with an escaped character contains one of these."""

WRAPPED_LINE = re.compile(rb"^[ \t]*[A-Za-z0-9+/_=-]{32,}\r?$", re.MULTILINE)
"""A line of Base64 or hex that a tool has broken into lines."""

_LINE_BREAKS = re.compile(rb"\r?\n[ \t]*")
_IN_LINE = re.compile(rb"[^\n]+")


def resource_secrets(resources: dict[str, Any]) -> Iterator[str]:
    """Yield the secrets of resources: every value that its well does not declare public, line by line. [SEC-1]"""
    for resource in resources.values():
        public = set(resource.get("public") or ())
        for key, value in (resource.get("metadata") or {}).items():
            if key not in public:
                yield from _value_secrets(key, value, False)


def text_secrets(text: str) -> Iterator[str]:
    """Yield the secrets in a secret text, line by line. [SEC-1]"""
    return _secret_lines(text, MIN_NAMED_CHARS)


def _value_secrets(key: str, value: Any, is_named: bool) -> Iterator[str]:
    is_named = is_named or _SECRET_KEY.search(key) is not None
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _value_secrets(name, inner, is_named)
    elif isinstance(value, list):
        for inner in value:
            yield from _value_secrets(key, inner, is_named)
    elif isinstance(value, (str, int, float)) and not isinstance(value, bool):
        yield from _secret_lines(str(value), MIN_NAMED_CHARS if is_named else MIN_CHARS)


def _secret_lines(text: str, least: int) -> Iterator[str]:
    """Yield a value's lines, and the passwords of the URLs in it."""
    for line in text.splitlines():
        if len(line.strip()) >= least:
            yield line.strip()
    for password in _IN_URL.findall(text):
        for form in {password, unquote(password)}:
            if len(form) >= MIN_NAMED_CHARS:
                yield form


def encoded_forms(secret: bytes) -> set[bytes]:
    """Return forms that tools break into lines: Base64, wherever the secret stands in what is encoded, and hex."""
    found = {secret.hex().encode(), secret.hex().upper().encode()}
    for before, cut in enumerate(_BASE64_CUTS):
        whole = base64.b64encode(bytes(before) + secret)[cut : (before + len(secret)) * 8 // 6]
        found |= {whole, whole.translate(bytes.maketrans(b"+/", b"-_"))}
    return found


def wrapped_pattern(text: bytes) -> re.Pattern[bytes]:
    """Return a pattern for a text that is broken into lines."""
    return re.compile(rb"(?:\r?\n[ \t]*)?".join(re.escape(text[at : at + 1]) for at in range(len(text))))


def escaped_patterns(secret: str) -> Iterator[tuple[bytes, re.Pattern[bytes]]]:
    """Yield patterns for a secret with escaped characters: as in a URL, in JSON, or for a shell.

    With each pattern comes the longest word of the secret, which must occur in a line for it to match: tools do not
    escape letters, except those that ESCAPED_LETTER finds.
    """
    cuts = list(range(0, len(secret), PIECE_CHARS))
    if len(cuts) > 1 and len(secret) - cuts[-1] < MIN_CHARS:
        cuts.pop()  # too short to be searched for by itself
    for start, end in zip(cuts, [*cuts[1:], len(secret)]):
        piece = secret[start:end]
        word = max(re.findall("[A-Za-z0-9]+", piece), key=len, default="")
        yield word.encode(), re.compile(b"".join(map(_any_form, re.findall(r"\\+|[^\\]", piece, re.DOTALL))))


def _any_form(token: str) -> bytes:
    """Return a pattern for a character, or for some backslashes, in all its escaped forms."""
    if token[0] == "\\":
        return rb"(?:\\|%%5[cC]){%d,%d}" % (len(token), 4 * len(token))
    raw = token.encode("utf-8", "surrogatepass")
    forms = [rb"\\{0,3}" + re.escape(raw), b"".join(b"%" + _any_case(b"%02x" % byte) for byte in raw)]
    units = token.encode("utf-16-be", "surrogatepass")
    pairs = [units[at : at + 2].hex().encode() for at in range(0, len(units), 2)]
    forms.append(b"".join(rb"\\{1,4}u" + _any_case(pair) for pair in pairs))
    if token in _CONTROL_ESCAPES:
        forms.append(rb"\\{1,4}" + _CONTROL_ESCAPES[token])
    if token == " ":
        forms.append(rb"\+")
    if token == "'":
        forms = [rb"'\\''", rb"'\"'\"'", *forms]
    return b"(?:" + b"|".join(forms) + b")"


def _any_case(digits: bytes) -> bytes:
    """Return a pattern for hexadecimal digits in either case."""
    return b"".join(b"[%c%c]" % (digit, digit - 32) if digit > 57 else b"%c" % digit for digit in digits)


class Mask:
    """All secrets known so far. Threads share it; secrets are only added."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._known: set[str] = set()
        self._literals: tuple[bytes, ...] = ()
        self._folded: tuple[bytes, ...] = ()
        self._escaped: tuple[tuple[bytes, re.Pattern[bytes]], ...] = ()
        self.longest = 1
        self.longest_folded = 1
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Mask these secrets too from now on."""
        with self._lock:
            fresh = {secret for secret in secrets if secret} - self._known
            self._known |= fresh
            raw = {secret.encode("utf-8", "surrogatepass") for secret in fresh}
            wrapped = {form for secret in raw for form in encoded_forms(secret)}
            spaced = {secret.replace(b" ", b"+") for secret in raw}
            most = max((min(len(secret), PIECE_CHARS + PIECE_CHARS) for secret in fresh), default=0)
            self.longest = max(self.longest, MAX_FORM_BYTES * most, *map(len, raw | wrapped), 1)
            self.longest_folded = max(self.longest_folded, *map(len, wrapped), 1)
            self._escaped += tuple(each for secret in sorted(fresh) for each in escaped_patterns(secret))
            self._folded += tuple(sorted(wrapped))
            self._literals += tuple(sorted(raw | wrapped | spaced))

    def text(self, text: str) -> str:
        """Return a text without the secrets in it."""
        data = text.encode("utf-8", "surrogatepass")
        return hide_spans(data, self.spans(data)).decode("utf-8", "surrogatepass")

    def spans(self, data: bytes) -> list[tuple[int, int]]:
        """Return the spans of secrets, in order and without overlap."""
        return _merge_spans([*self._plain(data), *self._broken(data), *self._disguised(data)])

    def _plain(self, data: bytes) -> Iterator[tuple[int, int]]:
        for literal in self._literals:
            at = data.find(literal)
            while at >= 0:
                yield at, at + len(literal)
                at = data.find(literal, at + 1)

    def _broken(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Find secrets that are broken into lines. The costly search runs only for those that occur."""
        if not (self._folded and WRAPPED_LINE.search(data)):
            return
        flat = _LINE_BREAKS.sub(b"", data)
        for text in self._folded:
            if text in flat:
                yield from _find_all(wrapped_pattern(text), data)

    def _disguised(self, data: bytes) -> Iterator[tuple[int, int]]:
        lines = _lines_with(data, ESCAPE_MARKS) if self._escaped else []
        if not lines:
            return
        likely = [pattern for word, pattern in self._escaped if word in data]
        for start, end in lines:
            patterns = [each for _, each in self._escaped] if ESCAPED_LETTER.search(data, start, end) else likely
            for pattern in patterns:
                yield from _find_all(pattern, data, start, end)


def hide_spans(data: bytes, spans: list[tuple[int, int]]) -> bytes:
    """Return data with stars in place of the spans. Line breaks stay."""
    parts, at = [], 0
    for start, end in spans:
        parts += [data[at:start], _IN_LINE.sub(STARS, data[start:end])]
        at = end
    return b"".join([*parts, data[at:]])


def _find_all(
    pattern: re.Pattern[bytes], data: bytes, start: int = 0, end: int | None = None
) -> Iterator[tuple[int, int]]:
    """Yield all matches of a pattern, also those that overlap."""
    end = len(data) if end is None else end
    found = pattern.search(data, start, end)
    while found:
        yield found.span()
        found = pattern.search(data, found.start() + 1, end)


def _lines_with(data: bytes, marks: tuple[bytes, ...]) -> list[tuple[int, int]]:
    """Return where the lines are that contain one of the marks."""
    found = []
    for mark in marks:
        at = data.find(mark)
        while at >= 0:
            end = data.find(b"\n", at)
            end = len(data) if end < 0 else end
            found.append((data.rfind(b"\n", 0, at) + 1, end))
            at = data.find(mark, end)
    return sorted(set(found))


def _merge_spans(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans in order; those that touch are merged."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


QUIET_SECONDS = 0.2
"""How long a line waits that may continue in the next line."""

Give = Callable[[bytes, bool], None]
"""Takes bytes, and whether they are the last."""


class MaskedStream:
    """Passes the bytes of one stream on without the secrets in them, whole lines at once. [SEC-1]

    It holds back what may be the start of a secret: the end of an unfinished line, and lines that look like Base64 or
    hex broken into lines.
    """

    def __init__(self, mask: Mask, give: Give) -> None:
        self._mask, self._give = mask, give
        self._held = bytearray()  # not passed on yet
        self._covered = 0  # how many of these bytes are known to be secret
        self._fed = now()

    def feed(self, data: bytes, final: bool = False) -> None:
        """Add bytes, and pass on what cannot be the start of a secret."""
        self._fed = now()
        self._held += data
        if final:
            self._pass(len(self._held), final)
        elif data:
            self._pass(max(self._whole_lines(), self._start_of_long_line()))

    def flush_quiet(self) -> None:
        """Pass whole lines on if no bytes have come for a while."""
        if self._held and now() - self._fed >= QUIET_SECONDS:
            self._pass(self._held.rfind(b"\n") + 1)

    def _whole_lines(self) -> int:
        """Return the end of the last line that cannot continue in the next line."""
        end = at = self._held.rfind(b"\n") + 1
        length = 0
        while at and length < self._mask.longest_folded:
            start = self._held.rfind(b"\n", 0, at - 1) + 1
            line = bytes(self._held[start : at - 1])
            if not WRAPPED_LINE.fullmatch(line):
                break
            length += len(line.strip())
            at = start
        return at if length else end

    def _start_of_long_line(self) -> int:
        """Return how many bytes, up to somewhere in a very long unfinished line, cannot be part of a secret."""
        rest = len(self._held) - self._held.rfind(b"\n") - 1
        longest = self._mask.longest
        return len(self._held) - longest if rest > 2 * longest + 4096 else 0

    def _pass(self, end: int, final: bool = False) -> None:
        if not (end or final):
            return
        data = bytes(self._held)
        spans = self._mask.spans(data)
        if self._covered:
            spans = [(0, max([self._covered, *(to for start, to in spans if start <= self._covered)]))] + [
                span for span in spans if span[0] > self._covered
            ]
        out = [(start, min(to, end)) for start, to in spans if start < end]
        self._covered = max([0, *(to - end for start, to in spans if start < end < to)])
        del self._held[:end]
        self._give(hide_spans(data[:end], out), final)
