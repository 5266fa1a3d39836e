"""Tables on terminals: their columns fit the width, and an id is never broken."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.text import Text

GAP = "  "
"""What stands between two columns."""

LEAST = 8
"""How many cells of a text stay when its column is shortened."""

NOTHING = "-"
"""What stands where an object has no value."""

ULID = re.compile(r"(?:[wr]-)?[0-7][0-9A-HJKMNP-TV-Z]{25}(?:\.[0-7][0-9A-HJKMNP-TV-Z]{25})?")
"""The id of a job, a unit, a token, an artifact."""


class Fit(Enum):
    """What becomes of a column on a terminal that is too narrow."""

    ID = "stays whole, and is always shown"
    WHOLE = "stays whole, or is left out"
    TEXT = "is shortened, or is left out"


class Column(NamedTuple):
    """A column of a table: its title, a key of the object or a function of it, what it is sorted by, and its fit.

    A column is sorted by its value, unless `sort` is another key: a size is sorted by its bytes, not by its text. The
    fit is by default that of its title, see BY_TITLE.
    """

    title: str
    value: str | Callable[[Mapping[str, Any]], Any]
    sort: str = ""
    fit: Fit | None = None


BY_TITLE = {"ID": Fit.ID, "POOL": Fit.ID, "FILE": Fit.ID, "STATE": Fit.WHOLE, "SIZE": Fit.WHOLE}
"""The fit of columns that mean the same in every table; others are texts."""


def layout(columns: Sequence[Column], rows: Sequence[Sequence[str]], room: int) -> dict[int, int]:
    """The columns that are shown, by number, with the width of each. Only ids may take more than the room there is."""
    fits = [_fit(column, [row[at] for row in rows]) for at, column in enumerate(columns)]
    widths = {at: max(cell_len(column.title), *_lengths(rows, at)) for at, column in enumerate(columns)}
    least = {at: _least(columns[at], fits[at], width) for at, width in widths.items()}
    empty = (at for at in reversed(widths) if at and all(row[at] == NOTHING for row in rows))
    for at in list(empty):
        if _total(widths) > room:
            del widths[at], least[at]
    for at in [at for fit in (Fit.TEXT, Fit.WHOLE) for at in reversed(widths) if at and fits[at] is fit]:
        if _total(least) > room:
            del widths[at], least[at]
    _shorten(widths, least, room)
    return widths


def draw(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], widths: Mapping[int, int], styles: Mapping[str, str]
) -> Iterator[Text]:
    """The lines of a table with the widths of its layout: the titles, then the rows."""
    yield _line([Text(column.title, "bold") for column in columns], widths)
    for row in rows:
        yield _line([Text(cell, styles.get(cell, "")) for cell in row], widths)


def _fit(column: Column, cells: Sequence[str]) -> Fit:
    """The fit of a column. One that has an id is one of ids, also if nothing else says so."""
    return Fit.ID if any(map(ULID.fullmatch, cells)) else column.fit or BY_TITLE.get(column.title, Fit.TEXT)


def _lengths(rows: Sequence[Sequence[str]], at: int) -> list[int]:
    return [cell_len(row[at]) for row in rows]


def _least(column: Column, fit: Fit, width: int) -> int:
    return min(width, max(LEAST, cell_len(column.title))) if fit is Fit.TEXT else width


def _total(widths: Mapping[int, int]) -> int:
    return sum(widths.values()) + len(GAP) * (len(widths) - 1)


def _shorten(widths: dict[int, int], least: Mapping[int, int], room: int) -> None:
    """Take cells from the widest columns that have some to give, until the table fits or none has."""
    while _total(widths) > room:
        giving = [at for at, width in widths.items() if width > least[at]]
        if not giving:
            return
        widths[max(giving, key=lambda at: widths[at])] -= 1


def _line(cells: Sequence[Text], widths: Mapping[int, int]) -> Text:
    line = Text(GAP).join(_cut(cells[at], width) for at, width in widths.items())
    line.rstrip()
    return line


def _cut(cell: Text, width: int) -> Text:
    """A cell of a width. One that is shortened ends before an id that it would break."""
    shown = cell.copy()
    shown.truncate(width, overflow="ellipsis")
    kept = len(shown.plain) - 1
    broken = [found.start() for found in ULID.finditer(cell.plain) if found.start() < kept < found.end()]
    if shown.plain != cell.plain and broken:
        shown = cell[: broken[0]]
        shown.append("…")
    shown.truncate(width, pad=True)
    return shown
