"""What a listing says of each job in it: so a list reads the rows that it shows, and few others.

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
from datetime import datetime
from fnmatch import fnmatchcase

from penstock.domain.jobs.jobs import APART, LEFT_OUT, TAGGED_WITHIN, leases_of, listing, tag_sum
from penstock.kernel.rows import Look

ID_CHARS, SUM_CHARS = 26, 4


def listings(owner: str) -> list[str]:
    """The names of all listings of an owner's jobs."""
    return [listing(owner, outcome) for outcome in ("", *APART)]


def every_listing(owner: str) -> list[str]:
    """The names of all listings of an owner's jobs, and of its leases without a job."""
    return [*listings(owner), leases_of(owner)]


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
        and (sums == LEFT_OUT or {*map(tag_sum, tags.items())} <= _sums(sums))
    )


def is_called(name: str, pattern: str) -> bool:
    """Whether a name is one that a pattern stands for: `*` is any text, `?` any character, `[ab]` one of these."""
    return fnmatchcase(name, pattern)


def is_sure(look: Look, now: datetime) -> bool:
    """Whether the state that the due index has of an unsettled job is right; else its row has to be read."""
    return bool(look.tag) and look.at - now > TAGGED_WITHIN


def _sums(told: str) -> set[str]:
    return {told[at : at + SUM_CHARS] for at in range(0, len(told), SUM_CHARS)}
