"""What of a resource is secret, and the forms in which a job may print it."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

LEAST = 8
"""A value of fewer characters is not hidden: too much else would look like it."""

LEAST_NAMED = 4
"""The same, where its key says that it is a secret."""

PIECE = 64
"""An escaped secret is looked for in pieces of so many characters."""

FORM = 18
"""How many bytes one character has at most in an escaped form: two escapes of JSON, each escaped twice more."""

ODD = re.compile(rb"%(?:3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa])|\\u00[3-7]")
"""A letter or digit that is escaped all the same."""

_NAMED = re.compile("pass|secret|token|key|credential|private|auth", re.IGNORECASE)
_IN_URL = re.compile(r"://[^/@\s:]*:([^/\s]+)@")
_NAMES = {"\n": b"n", "\r": b"r", "\t": b"t", "\b": b"b", "\f": b"f"}
_CUTS = (0, 2, 3)
"""How many characters of Base64 say something of what stands 0, 1 or 2 bytes before."""


def secrets(resources: dict[str, Any]) -> Iterator[str]:
    """Yield what is secret of resources: every value that its well does not call public, line by line. [SEC-1]"""
    for resource in resources.values():
        public = set(resource.get("public") or ())
        for key, value in (resource.get("metadata") or {}).items():
            if key not in public:
                yield from _of(key, value, False)


def secret(text: str) -> Iterator[str]:
    """Yield what is secret of a text that is, line by line. [SEC-1]"""
    return _lines(text, LEAST_NAMED)


def _of(key: str, value: Any, is_named: bool) -> Iterator[str]:
    is_named = is_named or _NAMED.search(key) is not None
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _of(name, inner, is_named)
    elif isinstance(value, list):
        for inner in value:
            yield from _of(key, inner, is_named)
    elif isinstance(value, (str, int, float)) and not isinstance(value, bool):
        yield from _lines(str(value), LEAST_NAMED if is_named else LEAST)


def _lines(text: str, least: int) -> Iterator[str]:
    """Yield a value's lines, and the passwords of the URLs in it."""
    for line in text.splitlines():
        if len(line.strip()) >= least:
            yield line.strip()
    for password in _IN_URL.findall(text):
        for form in {password, unquote(password)}:
            if len(form) >= LEAST_NAMED:
                yield form


def folded(secret: bytes) -> set[bytes]:
    """Return forms that tools break into lines: Base64, wherever the secret stands in what is encoded, and hex."""
    found = {secret.hex().encode(), secret.hex().upper().encode()}
    for before, cut in enumerate(_CUTS):
        whole = base64.b64encode(bytes(before) + secret)[cut : (before + len(secret)) * 8 // 6]
        found |= {whole, whole.translate(bytes.maketrans(b"+/", b"-_"))}
    return found


def spread(text: bytes) -> re.Pattern[bytes]:
    """Return what finds a text that is broken into lines."""
    return re.compile(rb"(?:\r?\n[ \t]*)?".join(re.escape(text[at : at + 1]) for at in range(len(text))))


def escaped(secret: str) -> Iterator[tuple[bytes, re.Pattern[bytes]]]:
    """Yield what finds a secret whose characters are escaped, any of them: as in a URL, in JSON, or for a shell.

    With each pattern comes what must be there for it: its longest word, for nobody escapes letters; see ODD.
    """
    cuts = list(range(0, len(secret), PIECE))
    if len(cuts) > 1 and len(secret) - cuts[-1] < LEAST:
        cuts.pop()  # too short to be looked for by itself
    for start, end in zip(cuts, [*cuts[1:], len(secret)]):
        piece = secret[start:end]
        word = max(re.findall("[A-Za-z0-9]+", piece), key=len, default="")
        yield word.encode(), re.compile(b"".join(map(_any_form, re.findall(r"\\+|[^\\]", piece, re.DOTALL))))


def _any_form(token: str) -> bytes:
    """Return what matches a character, or some backslashes, in whatever form."""
    if token[0] == "\\":
        return rb"(?:\\|%%5[cC]){%d,%d}" % (len(token), 4 * len(token))
    raw = token.encode("utf-8", "surrogatepass")
    forms = [rb"\\{0,3}" + re.escape(raw), b"".join(b"%" + _any_case(b"%02x" % byte) for byte in raw)]
    units = token.encode("utf-16-be", "surrogatepass")
    pairs = [units[at : at + 2].hex().encode() for at in range(0, len(units), 2)]
    forms.append(b"".join(rb"\\{1,4}u" + _any_case(pair) for pair in pairs))
    if token in _NAMES:
        forms.append(rb"\\{1,4}" + _NAMES[token])
    if token == " ":
        forms.append(rb"\+")
    if token == "'":
        forms = [rb"'\\''", rb"'\"'\"'", *forms]
    return b"(?:" + b"|".join(forms) + b")"


def _any_case(digits: bytes) -> bytes:
    """Return what matches hexadecimal digits, small or capital."""
    return b"".join(b"[%c%c]" % (digit, digit - 32) if digit > 57 else b"%c" % digit for digit in digits)
