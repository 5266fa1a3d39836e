"""The bytes of an output or an artifact, fetched with a bar that shows how far it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from penstock.cli import times
from penstock.cli.session import Session


def fetching(session: Session, what: dict[str, Any], dest: str | None, sign: Callable[[], str]) -> None:
    """Download something that has a path, a size and a digest; `sign` gives a URL, anew for each try."""
    from penstock.cli.download import destination, fetch

    place = destination(what, dest)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(True), TransferSpeedColumn())
    hidden = session.json or not session.out.errors.is_terminal
    with Progress(*columns, console=session.out.errors, disable=hidden, transient=True) as bar:
        task = bar.add_task(place.name, total=what["size"])
        fetch(session.api, sign, what, place, lambda have: bar.update(task, completed=have))
    session.out.done(f"{place}  {times.size_text(what['size'])}", {**what, "file": str(place)})
