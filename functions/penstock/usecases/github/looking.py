"""What operators see of the front end, and how they have a delivery taken once more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock import transaction
from penstock.domain.github.commits import CheckSet
from penstock.domain.github.deliveries import Delivery, delivery_key, is_id
from penstock.kernel.errors import Refused, not_found
from penstock.kernel.rows import Change, Replace
from penstock.system import System
from penstock.usecases import auditing
from penstock.usecases.github import hints


def deliveries(on: System, limit: int, page: str) -> tuple[list[Delivery], str | None]:
    """Some deliveries, newest first, and the page that follows."""
    rows = on.store.listed("deliveries", Delivery, limit=limit, after=page, newest=True)
    return rows, rows[-1].place.sort if len(rows) == limit else None


def commits(on: System, limit: int, page: str) -> tuple[list[CheckSet], str | None]:
    """Some of the commits that are known, newest first, and the page that follows."""
    rows = on.store.listed("checksets", CheckSet, limit=limit, after=page, newest=True)
    return rows, rows[-1].place.sort if len(rows) == limit else None


def redeliver(on: System, id: str, by: str) -> Delivery:
    """Have a delivery taken once more. Raises Refused 404, and 409 for one that nothing can follow from."""

    def decide() -> tuple[Sequence[Change], Delivery]:
        row = on.store.get(delivery_key(id), Delivery) if is_id(id) else None
        if row is None:
            raise not_found("delivery", id[:64])
        if row.event is None:
            raise Refused(409, "delivery-leads-nowhere", f"nothing follows from delivery {id}: it was {row.outcome}")
        now = replace(row, outcome="", tries=0, due=on.world.now())
        return auditing.note(on, [Replace(row, now)], by, "redeliver", f"delivery {id}"), now

    row = transaction.run(on, decide)
    hints.hint(on, {"delivery": id})
    return row
