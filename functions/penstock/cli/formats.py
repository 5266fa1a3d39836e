"""How lists are printed: chosen columns, another order, JSON, CSV, a template for each entry, a query."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from penstock.cli.errors import Refused
from penstock.cli.tables import Column

FORMS = ("table", "json", "jsonl", "csv", "template")

FIELD = re.compile(r"\{\{|\}\}|\{([^{}]+)\}|[{}]")
"""A doubled brace, a field of a template, or a brace that stands alone."""

ESCAPES = {r"\t": "\t", r"\n": "\n"}

Item = Mapping[str, Any]


@dataclass(frozen=True)
class Format:
    """What a user wants to see of a list."""

    form: str = "table"
    template: str = ""
    columns: tuple[str, ...] = ()
    sort: str = ""
    query: str = ""


def form(text: str) -> tuple[str, str]:
    """A format, and the template that belongs to it. Raises Refused for an unknown format, or a wrong template."""
    name, equals, template = text.partition("=")
    if name not in FORMS or bool(equals) != (name == "template"):
        known = ", ".join([*FORMS[:-1], "template=TEXT"])
        raise Refused(
            f"--format: there is no format `{text}`", f"formats: {known}, such as 'template={{id}} {{state}}'"
        )
    for found in FIELD.finditer(template):
        if found[0] in ("{", "}"):
            what = f"--format: `{found[0]}` at character {found.start() + 1} of the template belongs to no field"
            raise Refused(what, "write a field as {id}, and a brace as {{ or }}")
    return name, template


def query(text: str) -> Callable[[Any], Any]:
    """A JMESPath expression as a function. Raises Refused for what is none."""
    import jmespath
    from jmespath.exceptions import JMESPathError

    try:
        found = jmespath.compile(text)
    except JMESPathError as error:
        raise _bad_query(text, error) from error

    def search(value: Any) -> Any:
        try:
            return found.search(value)
        except JMESPathError as error:
            raise _bad_query(text, error) from error

    return search


def _bad_query(text: str, error: Exception) -> Refused:
    said = " ".join(str(error).split())
    return Refused(f"--query `{text}`: {said[:1].lower()}{said[1:]}", "https://jmespath.org says how to write one")


def chosen(columns: Sequence[Column], names: Sequence[str], items: Sequence[Item]) -> list[Column]:
    """The columns that are wanted, in their order. Raises Refused for one that nothing has."""
    return [named(name, columns, items) for name in names] if names else list(columns)


def named(name: str, columns: Sequence[Column], items: Sequence[Item]) -> Column:
    """A column by its title, or one for a key of the objects, such as times.settled. Raises Refused."""
    title = name.upper().replace("_", " ").replace("-", " ")
    for column in columns:
        if column.title == title:
            return column
    if items and not any(name.partition(".")[0] in item for item in items):
        keys = ", ".join(sorted({key for item in items for key in item}))
        titles = ", ".join(column.title for column in columns)
        raise Refused(f"there is no column `{name}`", f"columns: {titles}; or a key of the JSON: {keys}")
    return Column(name.upper(), partial(_at, name))


def _at(name: str, item: Item) -> Any:
    """The value under a dotted name; None if there is none."""
    found: Any = item
    for part in name.split("."):
        if isinstance(found, list) and part.isdecimal():
            found = found[int(part)] if int(part) < len(found) else None
        else:
            found = found.get(part) if isinstance(found, Mapping) else None
    return found


def value(column: Column, item: Item) -> Any:
    """What an object has for a column."""
    return column.value(item) if callable(column.value) else item.get(column.value)


def ordered(items: Sequence[Item], columns: Sequence[Column], wish: str) -> list[Item]:
    """Objects by a column, those without a value last; with a `-` before its name the greatest first."""
    down, name = wish.startswith("-"), wish.removeprefix("-")
    column = named(name, columns, items)
    by = partial(_at, column.sort) if column.sort else partial(value, column)
    has = [item for item in items if by(item) not in (None, "")]
    return [
        *sorted(has, key=lambda item: _rank(by(item)), reverse=down),
        *(item for item in items if by(item) in (None, "")),
    ]


def _rank(found: Any) -> tuple[int, float, str]:
    """Numbers come before texts, so that any two values can be compared."""
    return (0, float(found), "") if isinstance(found, int | float) else (1, 0.0, str(found).casefold())


def as_csv(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lines of comma-separated values as in RFC 4180, but with plain line feeds."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([titles, *rows])
    return text.getvalue()


def fields(template: str) -> list[str]:
    """The names in a template, in their order."""
    return [found[1] for found in FIELD.finditer(template) if found[1]]


def fill(template: str, values: Mapping[str, str]) -> str:
    """A template with the values of an object."""
    text = re.sub(r"\\[tn]", lambda found: ESCAPES[found[0]], template)
    return FIELD.sub(lambda found: values[found[1]] if found[1] else found[0][0], text)
