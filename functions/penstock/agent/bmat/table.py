"""Aligned columns."""

from __future__ import annotations

from collections.abc import Iterator


def table(rows: list[list[str]], columns: list[str], header: bool) -> Iterator[str]:
    """Yield lines, the first with the names of the columns, if wanted."""
    rows = [[name.upper() for name in columns], *rows] if header else rows
    widths = [max(map(len, cells)) for cells in zip(*rows)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
