"""Results on stdout, everything else on stderr: JSON, tables and details; colours only on terminals."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.text import Text

from penstock.cli import formats, tables, times
from penstock.cli.errors import CliError, Interrupted
from penstock.cli.formats import Format
from penstock.cli.tables import Column as Column
from penstock.cli.tables import Fit as Fit
from penstock.cli.terminal import clean

STYLES = {
    **dict.fromkeys(("succeeded", "free", "idle", "ok"), "green"),
    **dict.fromkeys(("running", "acquiring", "held", "leased", "ready"), "cyan"),
    **dict.fromkeys(
        ("waiting", "queued", "paused", "cancelled", "withdrawn", "settling", "insufficient data"), "yellow"
    ),
    **dict.fromkeys(("failed", "errored", "broken", "quarantined", "lost", "alarm"), "red"),
}
"""Words that have a colour of their own wherever they stand alone in a table."""

LINES = "\n\t"
"""What a text of several lines keeps."""


class Moment(str):
    """A time of the API: an age on terminals, itself elsewhere."""


def moment(key: str) -> Callable[[Mapping[str, Any]], Any]:
    """The time under a key, such as `times.submitted`, as an age."""

    def read(item: Mapping[str, Any]) -> Any:
        found: Any = item
        for part in key.split("."):
            found = (found or {}).get(part)
        return Moment(found) if found else None

    return read


NAMED_JOB = (Column("JOB", "job"), Column("NAME", "job_name"), Column("OWNER", "job_owner"))
"""The job that an object names: its id, what it is called, and whose it is."""


class Output:
    """Where the results of a command go."""

    def __init__(self, *, as_json: bool = False, color: bool = True, view: Format | None = None) -> None:
        self.as_json = as_json
        self.view = view or Format()
        self.console = Console(file=sys.stdout, no_color=not color, highlight=False, markup=False)
        self.errors = Console(file=sys.stderr, no_color=not color, highlight=False, markup=False, stderr=True)
        self._last_notice = ""

    @property
    def is_terminal(self) -> bool:
        """Whether results are read by a person at a terminal that can move its cursor."""
        return self.console.is_terminal and not self.console.is_dumb_terminal

    def line(self, text: str = "", style: str = "") -> None:
        """A line of result; or several."""
        text = clean(text, LINES)
        if self.console.is_terminal:
            self.console.print(Text(text, style=style), soft_wrap=True)
        else:
            self.console.file.write(text + "\n")

    def data(self, text: str) -> None:
        """A result as it is, for pipes and files; on a terminal without what could change that."""
        self.console.file.write((clean(text, LINES) if self.console.is_terminal else text) + "\n")

    def note(self, text: str, style: str = "dim") -> None:
        """A line beside the result: on stderr."""
        self.errors.print(Text(clean(text, LINES), style=style), soft_wrap=True)

    def notice(self, text: str) -> None:
        """A note that is not repeated at once."""
        if text != self._last_notice:
            self._last_notice = text
            self.note(text, "yellow")

    def done(self, text: str, answer: object) -> None:
        """What an action did: a sentence, or the API's answer."""
        if self.as_json:
            self.json(answer)
        else:
            self.line(text)

    def json(self, value: object) -> None:
        """A value, or what --query selects of it, as JSON: indented, or for jsonl an entry a line."""
        if self.view.query:
            value = formats.query(self.view.query)(value)
        is_lines = self.view.form == "jsonl"
        for each in value if is_lines and isinstance(value, list) else [value]:
            self._json(each, None if is_lines else 2)

    def _json(self, value: object, indent: int | None) -> None:
        """A value as JSON; a text that a query selected stands without quotes."""
        if self.view.query and isinstance(value, str):
            self.data(value)
        else:
            self.console.file.write(json.dumps(value, indent=indent, ensure_ascii=False) + "\n")

    def error(self, error: CliError) -> None:
        """What went wrong, its details, and what to do. That the user interrupted is no error.

        For programs it is a line of JSON, the last on stderr.
        """
        if self.as_json:
            self.errors.file.write(json.dumps(error.document()) + "\n")
            return
        label = Text() if isinstance(error, Interrupted) else Text("error: ", "bold red")
        self.errors.print(Text.assemble(label, clean(error.what, "\n")), soft_wrap=True)
        for line in error.lines:
            self.errors.print(Text(clean(line)), soft_wrap=True)
        if error.hint:
            self.errors.print(Text.assemble(("hint: ", "bold cyan"), clean(error.hint)), soft_wrap=True)

    def table(self, items: Iterable[Mapping[str, Any]], columns: Sequence[Column], empty: str) -> None:
        """Objects as the user wants to see them: as a table, or in a format. For none, a table prints `empty`."""
        view = self.view
        if view.form == "jsonl" and not view.sort and not view.query:
            for item in items:
                self._json(item, None)
            return
        found = list(items)
        if view.sort:
            found = formats.ordered(found, columns, view.sort)
        if self.as_json:
            self.json(found)
        elif view.form == "template":
            self._fill(found, columns)
        elif view.form == "csv":
            self._csv(found, formats.chosen(columns, view.columns, found))
        elif not found:
            self.note(empty)
        else:
            self.rows(found, formats.chosen(columns, view.columns, found))

    def _csv(self, items: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> None:
        rows = [[self.plain(item, column) for column in columns] for item in items]
        self.data(formats.as_csv([column.title for column in columns], rows).removesuffix("\n"))

    def _fill(self, items: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> None:
        wanted = {name: formats.named(name, columns, items) for name in formats.fields(self.view.template)}
        for item in items:
            values = {name: self.plain(item, column) for name, column in wanted.items()}
            self.data(formats.fill(self.view.template, values))

    def rows(self, items: Sequence[Mapping[str, Any]], columns: Sequence[Column], indent: int = 0) -> None:
        """Objects as aligned columns. On a terminal they fit its width, and what is left out is named on stderr."""
        cells = [[self.cell(item, column) for column in columns] for item in items]
        if not self.console.is_terminal:
            self._plain_rows([[column.title for column in columns], *cells], indent)
            return
        shown = tables.layout(columns, cells, self.console.width - indent)
        for line in tables.draw(columns, cells, shown, STYLES):
            self.console.print(Text.assemble(" " * indent, line), soft_wrap=True)
        self._left_out([column for at, column in enumerate(columns) if at not in shown], items)

    def _left_out(self, columns: Sequence[Column], items: Sequence[Mapping[str, Any]]) -> None:
        """Name the columns for which the terminal is too narrow, and which have something to show."""
        missed = [each.title for each in columns if any(self.cell(item, each) != tables.NOTHING for item in items)]
        if missed:
            self.errors.print(Text(f"left out on a narrow terminal: {', '.join(missed)}", "dim"))

    def _plain_rows(self, rows: Sequence[Sequence[str]], indent: int) -> None:
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            self.console.file.write(" " * indent + line.rstrip() + "\n")

    def details(self, pairs: Iterable[tuple[str, Any]]) -> None:
        """Names and values, one a line; those without a value are left out."""
        shown = [(clean(name), clean(self.text(value))) for name, value in pairs if value not in (None, "", [], {}, ())]
        width = max((len(name) for name, _ in shown), default=0)
        for name, value in shown:
            if self.console.is_terminal:
                text = Text.assemble((name.ljust(width), "dim"), "  ", (value, STYLES.get(value, "")))
                self.console.print(text, soft_wrap=True)
            else:
                self.console.file.write(f"{name.ljust(width)}  {value}\n")

    def cell(self, item: Mapping[str, Any], column: Column) -> str:
        """What stands in a column for an object."""
        return clean(self.text(formats.value(column, item))) or tables.NOTHING

    def plain(self, item: Mapping[str, Any], column: Column) -> str:
        """What programs read of a column: times as the API has them, and nothing for nothing."""
        value = formats.value(column, item)
        return str(value) if isinstance(value, Moment) else self.text(value)

    def text(self, value: Any) -> str:
        """A value of the API as a person reads it."""
        if value is None:
            return ""
        if isinstance(value, Moment):
            return times.age(times.parse(value), self.now()) if self.console.is_terminal else str(value)
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, Mapping):
            return " ".join(f"{name}={self.text(entry)}" for name, entry in value.items())
        if isinstance(value, list | tuple):
            return ", ".join(map(self.text, value))
        return clean(str(value))

    def now(self) -> datetime:
        """The present, for ages."""
        return times.now()


def digest_text(file: Mapping[str, Any]) -> str:
    """The digest by which a file is known: its SHA-256 or, if it was sent in parts, its composite."""
    return str(file.get("sha256") or file.get("composite") or "")
