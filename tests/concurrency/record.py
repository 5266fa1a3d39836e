"""What a process saw itself commit, and when: a file that is only appended to, one line of JSON a commit.

Times are of the clock that all processes of a machine share. What a line tells was not yet so at `began`, and was so at
`ended`; `looked` is when the queue that a grant was decided on was about to be read.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from penstock.aws.dynamodb import Table
from penstock.domain.pools.pools import WAITING, Claim, Lease, LeaseState, Pool, Slot, SlotState
from penstock.domain.units.units import Unit, UnitState
from penstock.kernel.rows import Change, Check, Create, Delete, Replace, Row

R = TypeVar("R", bound=Row)


class RecordedTable(Table):
    """The real store, which writes down what it was told that it did."""

    def __init__(self, table: str, region: str, path: Path) -> None:
        super().__init__(table, region)
        self._file = path.open("a", buffering=1)
        self._looked: dict[str, float] = {}
        self.lost = 0
        self.open = 0
        self.stall = 0.0

    def find(self, pk: str, prefix: str, kind: type[R], **how: Any) -> list[R]:
        if prefix == WAITING and not how.get("after"):
            self._looked[pk] = time.monotonic()
        return super().find(pk, prefix, kind, **how)

    def commit(self, changes: Sequence[Change]) -> bool:
        time.sleep(self.stall)
        began = time.monotonic()
        done = super().commit(changes)
        self.lost += not done
        told = [line for change in changes if (line := _told(change, self._looked))]
        if done and told:
            self._file.write(json.dumps({"began": began, "ended": time.monotonic(), "moves": told}) + "\n")
            self.open -= sum(line["what"] == "released" for line in told)
        return done


def _told(change: Change, looked: dict[str, float]) -> dict[str, Any] | None:
    """How one change moves a slot, a claim, an amount or a lease; None for what is of no interest."""
    if isinstance(change, Check):
        return None
    row = change.was if isinstance(change, Delete) else change.row
    if isinstance(row, Slot) and row.state is SlotState.HELD:
        what = {Create: "take", Delete: "give"}.get(type(change), "note")
        return {"what": what, "slot": [row.pool, row.name], "fence": row.fence, "unit": row.unit, "count": row.count}
    if isinstance(row, Claim) and not isinstance(change, Replace):
        named = {"claim": list(row.key), "whose": [row.job, row.step], "pool": row.pool, "count": row.count}
        if isinstance(change, Create):
            return {"what": "claim", **named, "pools": list(row.pools)}
        return {"what": "unclaim", **named, "looked": looked.get(row.key.pk, 0.0)}
    if isinstance(change, Replace) and isinstance(row, Pool) and isinstance(change.was, Pool) and row.is_amount:
        at = {"from": change.was.version, "was": change.was.used, "used": row.used, "limit": row.limit}
        return {"what": "amount", "pool": row.name, **at}
    if isinstance(row, Lease) and row.state is LeaseState.GRANTED:
        return {"what": "granted", "lease": [row.job, row.order]}
    if isinstance(row, Unit) and row.state is UnitState.GONE:
        return {"what": "released", "lease": [row.lease.job, row.lease.order]}
    return None


def read(folder: Path) -> list[dict[str, Any]]:
    """Everything that was recorded, in order of its end, with the process that recorded it."""
    lines = [
        {"process": path.stem, **json.loads(line)}
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_text().splitlines()
    ]
    return sorted(lines, key=lambda line: line["ended"])
