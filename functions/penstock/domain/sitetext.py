"""The text of a site: the TOML in it, and where in the text its parts stand."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from penstock.domain.errors import Fault
from penstock.domain.jobfile import place
from penstock.domain.jobfile.locate import Spot, locate, nearest
from penstock.domain.jobfile.parse import AT, TOML_HINTS
from penstock.domain.jobfile.source import BOM
from penstock.domain.jobfile.tokens import tokenise, too_deep

SITE_BYTES = 256 * 1024
"""The site is kept in one item of the database, which holds 400 KB."""

HINTS = {**TOML_HINTS, "Expected '=' after a key": "a line is `key = value` or `[table]`; other text goes behind a `#`"}
SURROGATE = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True)
class Text:
    """A text with lines; `path` is only for messages."""

    path: str
    text: str

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(found.end() for found in re.finditer("\n", self.text))]

    def fault(self, offset: int, message: str, hint: str | None = None, where: str | None = None) -> Fault:
        """A fault at an offset; its line and column count from 1."""
        line = bisect_right(self._starts, offset)
        column = offset - self._starts[line - 1] + 1
        return Fault(message, where=where, file=self.path, line=line, column=column, hint=hint)


@dataclass(frozen=True)
class Document:
    """What a text says, and where its parts stand."""

    text: Text
    content: Mapping[str, Any]
    spots: dict[place.Path, Spot]

    def fault(self, found: place.Fault) -> Fault:
        """What a check found, with its line and column."""
        spot = nearest(self.spots, found.path)
        offset = spot.key if found.on_key else spot.value
        return self.text.fault(offset, found.message, found.hint, found.where or None)


def read(source: str, path: str) -> Document | Fault:
    """The TOML of a text, or the one fault that leaves nothing to look at. Never raises, whatever the text."""
    text = Text(path, source.removeprefix(BOM).replace("\r\n", "\n"))
    if bad := SURROGATE.search(text.text):
        return text.fault(bad.start(), f"U+{ord(bad[0]):04X} is no character", "save the text as UTF-8")
    if len(source.encode()) > SITE_BYTES:
        return text.fault(0, f"the site is larger than {SITE_BYTES // 1024} KiB", "keep what is big elsewhere")
    tokens = tokenise(text.text)
    deep = too_deep(tokens)
    if deep is not None:
        return text.fault(deep, "this is nested too deeply", "no key needs so many levels")
    try:
        content = tomllib.loads(text.text)
    except ValueError as error:
        return _not_toml(str(error), text)
    return Document(text, content, locate(tokens))


def _not_toml(said: str, text: Text) -> Fault:
    """What the TOML parser said. Its errors are all kinds of ValueError; some don't tell a place."""
    hint = next((hint for start, hint in HINTS.items() if said.startswith(start)), None)
    message = f"not TOML: {AT.sub('', said)}"
    at = AT.search(said)
    if at is None or at[1] is None:
        return text.fault(len(text.text), message, hint)
    return Fault(message, file=text.path, line=int(at[1]), column=int(at[2]), hint=hint)
