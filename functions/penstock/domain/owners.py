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


JOB, PIN, CACHE, PUBLISHED = "job", "pin", "cache", "published"

KINDS: Mapping[str, Kind] = {
    JOB: Kind("an output or input of the job, or its log", "the job's retention ends"),
    PIN: Kind("a user's pin, with a reason", "the pin expires, or the user removes it"),
    PUBLISHED: Kind("a published file", "its owner or an operator withdraws it; it never expires"),
    CACHE: Kind(
        "a cache entry, with its key",
        "it was unused for the time `cache`, makes room for other entries, or is deleted",
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
