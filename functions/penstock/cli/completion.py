"""What a shell offers at Tab: asked of the service, within a second, and without a word if that fails."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from penstock.cli.command import Session

SECONDS = 0.7
"""How long a service may take. With the start of this program that is less than a second on most machines."""

Offers = list[tuple[str, str]]


def offered(ctx: click.Context, ask: Callable[[Session], Offers]) -> list[CompletionItem]:
    """What can stand at the cursor; nothing if the service can't be asked, or refuses, or takes too long."""
    from penstock.cli.command import Session

    session = ctx.find_object(Session) or Session()
    found = within(SECONDS, lambda: ask(_impatient(session)))
    return [CompletionItem(value, help=about or None) for value, about in found]


def _impatient(session: Session) -> Session:
    """The session with an API that tries once, and says nothing."""
    from penstock.cli.client import Api, Patience, Transport

    own = replace(session)
    transport = Transport(own.target.url, own.target.token, lambda text: None)
    transport.patience = Patience(0, 0, 0)
    own.api = Api(transport)
    return own


def within(seconds: float, ask: Callable[[], Offers]) -> Offers:
    """The answer, unless it takes longer or fails: then none. A name server that doesn't answer can't hold it up."""
    found: Offers = []

    def run() -> None:
        with contextlib.suppress(Exception):
            found.extend(ask())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    return list(found)
