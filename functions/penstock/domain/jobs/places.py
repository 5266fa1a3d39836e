"""Where jobs are listed, and what a listing says of each: so a list reads the rows that it shows, and few others.

An owner's jobs are in one listing until they settle, and those that succeeded stay there: to move would cost each of
them two writes. Those that failed, were cancelled or errored are in a listing of their own. All are sorted by id, which
is by age. Behind the id stand the job's tags, each as four hex digits of a checksum, its targets and its name, which
never change. What does not fit is left out; then only the row tells.

    01KDVDNA02G83EFRTNJJN6PQ8A#3fa2b01c#default,linux#build

Which jobs have not settled, the due index says: it has each with its state. It learns of a new state late, to save
writes, but then its entry ends soon. Where an entry lasts longer, its state is right.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING
from zlib import crc32

from penstock.kernel.rows import Look, Place

if TYPE_CHECKING:
    from penstock.domain.jobs.jobs import Request

NAME_CHARS = 64
"""How long a name may be to stand in a listing."""

TAGS = 25
"""How many tags may."""

ID_CHARS, SUM_CHARS = 26, 4

LEFT_OUT = "*"
"""What stands for tags that do not fit. A name that does not is empty, as no job's is."""

TAGGED_WITHIN = timedelta(minutes=5)
"""For how long the due index may have a job with a state that it has left."""

APART = ("failed", "cancelled", "errored")
"""The outcomes whose jobs are in listings of their own."""


def listing(owner: str, outcome: str = "") -> str:
    """The name of a listing of an owner's jobs."""
    return f"jobs#{owner}#{outcome}" if outcome in APART else f"jobs#{owner}"


def listings(owner: str) -> list[str]:
    """The names of all listings of an owner's jobs."""
    return [listing(owner, outcome) for outcome in ("", *APART)]


def place(owner: str, outcome: str, id: str, name: str, asked: Request) -> Place:
    """A job's place. `outcome` is empty until it has settled."""
    sums = "".join(map(_sum, asked.tags.items())) if len(asked.tags) <= TAGS else LEFT_OUT
    targets = ",".join(dict.fromkeys((asked.target, asked.target_resolved)))
    return Place(listing(owner, outcome), f"{id}#{sums}#{targets}#{name if len(name) <= NAME_CHARS else ''}")


def id_in(sort: str) -> str:
    """The id of the job that has this place in its listing."""
    return sort[:ID_CHARS]


def may_match(sort: str, name: str, target: str, tags: Mapping[str, str]) -> bool:
    """Whether the job with this place may have such a name, target and tags; the row says whether it has."""
    _, told, rest = sort.partition("#")
    if not told:
        return True  # it was listed before listings said anything
    sums, targets, shown = rest.split("#", 2)
    return (
        (not name or not shown or is_called(shown, name))
        and (not target or target in targets.split(","))
        and (sums == LEFT_OUT or {*map(_sum, tags.items())} <= _sums(sums))
    )


def is_called(name: str, pattern: str) -> bool:
    """Whether a name is one that a pattern stands for: `*` is any text, `?` any character, `[ab]` one of these."""
    return fnmatchcase(name, pattern)


def outgrew(has: Look, tag: str, since: datetime | None) -> bool:
    """Whether the due index has to learn at once that a job has begun or settled, `since` then: its entry would say
    something else for long.
    """
    return since is not None and has.tag != tag and has.at - since > TAGGED_WITHIN


def is_sure(look: Look, now: datetime) -> bool:
    """Whether the state that the due index has of an unsettled job is right; else its row has to be read."""
    return bool(look.tag) and look.at - now > TAGGED_WITHIN


def _sum(tag: tuple[str, str]) -> str:
    return f"{crc32('='.join(tag).encode()) & 0xFFFF:04x}"


def _sums(told: str) -> set[str]:
    return {told[at : at + SUM_CHARS] for at in range(0, len(told), SUM_CHARS)}
