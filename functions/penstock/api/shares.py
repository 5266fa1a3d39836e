"""Shares: who has used how much of what many want, and whose turn comes later for it."""

from __future__ import annotations

from typing import Annotated

from penstock.api.app import Caller, Router
from penstock.api.shapes import view
from penstock.domain.users.users import READ
from penstock.kernel.frozen import dataclass
from penstock.system import System
from penstock.usecases.pools import shares

router = Router("shares")


@dataclass(frozen=True)
class ShareView:
    """How an owner of jobs stands."""

    owner: Annotated[str, "The user or repository."]
    weight: Annotated[int, "Its weight."]
    entitled: Annotated[float, "Its part by weight, of all who used something lately: 0.25 for a quarter."]
    used: Annotated[float, "Its part of what was used lately. Above `entitled`, it waits behind those below theirs."]
    used_seconds: Annotated[int, "What it used lately, in seconds of one slot; what waits counts as expected."]


@dataclass(frozen=True)
class SharePage:
    """How all stand whom you may see, first who is furthest above its part."""

    items: Annotated[list[ShareView], "The owners."]
    next: Annotated[str | None, "Always null: all fit into one page."]
    half_life: Annotated[int | None, "After how many seconds a use counts half; null on a site without shares."]


@router.get("/v1/shares", "List what owners of jobs used, and what is their share", READ)
def list_shares(on: System, user: Caller) -> SharePage:
    site, found = shares.list_shares(on, user)
    return SharePage([view(ShareView, share) for share in found], None, site.half_life if site else None)
