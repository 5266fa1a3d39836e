"""Tables, and budgets that fail the command."""

from __future__ import annotations

from collections.abc import Sequence

from tests.figures.counting import Counts

READS, ROWS_READ, COMMITS, ROWS_WRITTEN = 19, 31, 5, 11
"""Most that a release and the grant that follows may take, with any number waiting. One read says how long it took."""


class Budgets:
    """Says which figures are over their budget, and remembers that one was."""

    def __init__(self) -> None:
        self.kept = True

    def keeps(self, counts: Counts) -> bool:
        """Whether a release and its grant took no more than they may."""
        taken = (counts.reads, counts.rows_read, counts.commits, counts.rows_written)
        return all(each <= most for each, most in zip(taken, (READS, ROWS_READ, COMMITS, ROWS_WRITTEN), strict=True))

    def verdict(self, is_kept: bool, what: str) -> str:
        """The budget in words."""
        self.kept &= is_kept
        return f"Budget: {what}: {'kept' if is_kept else 'NOT KEPT'}."


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table as Markdown, its figures to the right."""
    print(f"\n### {title}\n\n| {' | '.join(heads)} |\n|{'---:|' * len(heads)}")
    for row in rows:
        print(f"| {' | '.join(_cell(each) for each in row)} |")
    print()


def _cell(value: object) -> str:
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
