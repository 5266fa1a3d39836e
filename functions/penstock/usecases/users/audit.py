"""The audit log: what operators did, recorded in the commit that does it, and listed for operators."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from penstock.domain.users import audit
from penstock.domain.users.audit import LISTING, Deed, Entry, Wanted
from penstock.kernel import rows
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Change, Create
from penstock.system import System

SCANNED = 1000
"""How many entries one page of a filtered list reads."""

READ = 100


def record(on: System, changes: Sequence[Change], by: str, did: Deed, what: str, detail: str = "") -> list[Change]:
    """The changes with an entry for who made them. Nothing is recorded without changes, or without a person."""
    if not changes or not by:
        return list(changes)
    now, text = on.world.now(), audit.clip_detail(detail)
    chance = hashlib.sha256(on.world.secret().encode()).digest()[: rows.RANDOM_BYTES]
    return [*changes, Create(Entry(id=rows.ulid(now, chance), at=now, by=by, did=did, what=what, detail=text))]


def list_entries(on: System, wanted: Wanted, limit: int, page: str) -> tuple[list[Entry], str | None]:
    """Some of the entries, newest first, and the next page. It reads SCANNED entries at most, so a page may be short or
    empty and have a next one. Raises Refused 400 for a time that ends before it begins.
    """
    if wanted.since and wanted.until and wanted.until <= wanted.since:
        raise Refused(400, "bad-request", "until must be later than since")
    found: list[Entry] = []
    after, scanned = wanted.start(page), 0
    while scanned < SCANNED:
        rows = on.store.listed(LISTING, Entry, limit=READ, after=after, newest=True)
        for row in rows:
            if wanted.is_over(row):
                return found, None
            scanned, after = scanned + 1, row.id
            if wanted.has(row):
                found.append(row)
            if len(found) == limit:
                return found, after
        if len(rows) < READ:
            return found, None
    return found, after
