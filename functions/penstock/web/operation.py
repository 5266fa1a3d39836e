"""One call that the service takes, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Operation:
    """One call: what is sent, what comes back, and which parameters there are besides those in the path.

    `also` are other answers that a parameter or a header asks for: status, when, and what comes back, if anything does.
    `bare` is one whose body may be left out.
    """

    name: str
    method: str
    path: str
    summary: str
    reply: type | None = None
    body: type | None = None
    status: int = 200
    query: tuple[str, ...] = ()
    open: bool = False
    also: tuple[tuple[int, str, type | None], ...] = ()
    bare: bool = False
