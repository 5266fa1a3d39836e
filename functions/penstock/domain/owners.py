"""Who may own an artifact, as data. A new kind is one row of the table: what frees an artifact knows no kinds.

An owner is a text, `job#J`, in the artifact's row. It is written there in the commit that writes the owner's own row
about it, and taken out in the one that deletes that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """One kind of owner: its row about the artifact, and when it lets go."""

    row: str
    ends: str


JOB, PIN, CACHE = "job", "pin", "cache"

KINDS: Mapping[str, Kind] = {
    JOB: Kind("the job's output or input of that name", "when the job's retention ends: the table above"),
    PIN: Kind("the user's pin, with a reason", "when it runs out, or the user takes it back"),
    CACHE: Kind(
        "the cache's entry, with its key",
        "when it was not restored for the time above, when it makes room for others, or is deleted",
    ),
}


def owner(kind: str, id: str) -> str:
    """An owner as artifacts name it. Raises KeyError for a kind that the table does not have."""
    if kind not in KINDS:
        raise KeyError(kind)
    return f"{kind}#{id}"


def parts(name: str) -> tuple[str, str]:
    """An owner's kind and id."""
    kind, _, id = name.partition("#")
    return kind, id
