"""Rows to JSON and back, by their dataclass. Times are RFC 3339 in UTC."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any

from cattrs import Converter
from cattrs.gen import make_dict_unstructure_fn

from penstock.domain.archives import Archive
from penstock.domain.artifacts import Artifact
from penstock.domain.audit import Entry
from penstock.domain.budgets import Budget
from penstock.domain.caches import CacheEntry, CacheUse
from penstock.domain.canaries import Canary
from penstock.domain.comparing import Comparison, LastSweep
from penstock.domain.cooling import CoolDown, Failure
from penstock.domain.dependencies import Dependent
from penstock.domain.github.checks import Check
from penstock.domain.github.checksets import CheckSet, Tip
from penstock.domain.github.deliveries import Delivery
from penstock.domain.github.missed import Look, Pause
from penstock.domain.github.tokens import Minted
from penstock.domain.hosts import Host
from penstock.domain.inputs import Input
from penstock.domain.jobs import Job
from penstock.domain.leases import Lease
from penstock.domain.logs import Batch
from penstock.domain.outputs import Output
from penstock.domain.pins import Pin
from penstock.domain.pools import Claim, Pool, Slot, SlotName
from penstock.domain.published import Published, Series
from penstock.domain.retention import LatestFailure, Retention
from penstock.domain.site import SiteText
from penstock.domain.specs import Spec
from penstock.domain.submissions import Submission, Watch
from penstock.domain.units import Unit
from penstock.domain.users import Token, User
from penstock.domain.values import Value
from penstock.domain.volumes import Inventory, Volume
from penstock.kernel.rows import Row

KINDS: Mapping[str, type[Row]] = {
    kind.kind: kind
    for kind in (
        Job, Spec, Lease, Batch, Output, Pool, Slot, SlotName, Claim, Unit, User, Token, Submission, Watch, SiteText,
        CoolDown, Failure, Budget, Comparison, LastSweep, Host, Canary, Entry,
        Dependent, Input, Value,
        Retention, LatestFailure, Artifact, Volume, Inventory, Pin, Published, Series, CacheEntry, CacheUse, Archive,
        Delivery, CheckSet, Check, Tip, Look, Pause, Minted,
    )
}  # fmt: skip


@cache
def converter() -> Converter:
    """The one converter. Made on first use, for it costs milliseconds that not every import should pay."""
    made = Converter(omit_if_default=True)
    made.register_unstructure_hook(datetime, datetime.isoformat)
    made.register_structure_hook(datetime, lambda text, _: datetime.fromisoformat(text))
    made.register_structure_hook_func(lambda kind: kind is str, lambda text, _: text)
    for kind in KINDS.values():
        made.register_unstructure_hook(kind, make_dict_unstructure_fn(kind, made, _cattrs_omit_if_default=True))
    return made


def dump(row: Row) -> str:
    """A row as JSON, without its version, which is kept beside it, and without what has its default."""
    fields = converter().unstructure(row)
    fields.pop("version", None)
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


def load(kind: str, body: str, version: int) -> Row:
    """The row that JSON describes. Raises KeyError for a kind that is not known."""
    fields: dict[str, Any] = json.loads(body)
    row: Row = converter().structure(fields | {"version": version}, KINDS[kind])
    return row
