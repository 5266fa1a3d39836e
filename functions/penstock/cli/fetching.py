"""Bytes on their way, with a bar that shows how far they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from penstock.cli import times
from penstock.cli.session import Session


def fetching(session: Session, what: dict[str, Any], dest: str | None, sign: Callable[[], str]) -> None:
    """Download something that has a path, a size and a digest; `sign` gives a URL, anew for each try."""
    from penstock.cli.download import destination, fetch

    place = destination(what, dest)
    with bytes_bar(session, place.name, what["size"]) as progress:
        had = 0

        def upto(have: int) -> None:
            nonlocal had
            progress(have - had)
            had = have

        fetch(session.api, sign, what, place, upto)
    session.out.done(f"{place}  {times.size_text(what['size'])}", {**what, "file": str(place)})


@contextmanager
def bytes_bar(session: Session, name: str, size: int) -> Iterator[Callable[[int], None]]:
    """A bar on terminals; what it gives is told how many bytes more there are."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(True), TransferSpeedColumn())
    hidden = session.json or not session.out.errors.is_terminal
    with Progress(*columns, console=session.out.errors, disable=hidden, transient=True) as bar:
        task = bar.add_task(name, total=size)
        yield lambda more: bar.advance(task, more)
