"""The account diffs: what exists outside with our tags and no unit, each night."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from penstock.api.app import Operator, Router
from penstock.api.shapes import view
from penstock.domain.account import AccountDiff, Checked, Leftover
from penstock.domain.metrics import elapsed
from penstock.domain.users.users import OPERATE, READ
from penstock.kernel.frozen import dataclass
from penstock.system import System
from penstock.usecases import account

router = Router("workers and resources")

Id = Annotated[str, "Its id, such as `20260307T030000`: the night's, or when it was asked for."]
Began = Annotated[str, "When it began, as RFC 3339."]
Finished = Annotated[str | None, "When it was finished, as RFC 3339; null while it goes on."]
By = Annotated[str | None, "The operator who asked for it; null for that of a night."]
Things = Annotated[int, "How many things exist with our tags, in all that could be listed."]
Left = Annotated[int, "How many of them are leftovers: nothing in the service's table accounts for them."]
Unlisted = Annotated[int, "How many factories and wells could not be listed. What they have left behind is not known."]


@dataclass(frozen=True)
class LeftoverView:
    """A thing that nothing in the service's table accounts for."""

    maker: Annotated[str, "The factory or well that made it, such as `factory/aws`."]
    kind: Annotated[str, "What it is, such as `volume`."]
    id: Annotated[str, "Its id outside."]
    unit: Annotated[str | None, "The worker or resource that it was made for; null if its tags do not say."]
    owner: Annotated[str | None, "Whose job had that last; null if it is not known any more."]
    made: Annotated[str | None, "When it was made, or at the earliest when, as RFC 3339; null if that is not known."]
    seconds_old: Annotated[float | None, "How old it was when the diff began, or at most; null likewise."]
    why: Annotated[str, "Why it is a leftover."]


@dataclass(frozen=True)
class CheckedMaker:
    """What was found of a factory or well."""

    maker: Annotated[str, "The factory or well, such as `factory/aws`."]
    things: Annotated[int | None, "How many things it has; null if it could not be listed."]
    left: Annotated[int | None, "How many of them are leftovers; null likewise."]
    problem: Annotated[str | None, "Why it could not be listed; null if it was."]


@dataclass(frozen=True)
class DiffSummary:
    """One diff, in numbers."""

    id: Id
    began: Began
    finished: Finished
    by: By
    things: Things
    left: Left
    unlisted: Unlisted


@dataclass(frozen=True)
class DiffView(DiffSummary):
    """One diff: everything outside with our tags, against the service's table."""

    makers: Annotated[list[CheckedMaker], "The factories and wells that are done, by name."]
    leftovers: Annotated[list[LeftoverView], "The leftovers, first those whose age is not known, then the oldest: 100."]


@dataclass(frozen=True)
class DiffPage:
    """The diffs that are kept."""

    items: Annotated[list[DiffSummary], "The newest 200, newest first. A diff is kept for 90 days."]
    next: Annotated[str | None, "Always null: they fit into one page."]


@router.get("/v1/account/diff", "Show what exists outside and belongs to nothing", READ)
def get_account_diff(
    on: System,
    user: Operator,
    *,
    id: Annotated[str, "Which diff. By default the last that is finished, or else the one that goes on."] = "",
) -> DiffView:
    return _show(account.find(on, id))


@router.get("/v1/account/diffs", "List the account diffs", READ)
def list_account_diffs(on: System, user: Operator) -> DiffPage:
    return DiffPage([show_summary(row) for row in account.history(on)], None)


@router.post("/v1/account/diff", "Have everything outside compared within some minutes", OPERATE, status=202)
def begin_account_diff(on: System, user: Operator) -> DiffView:
    return _show(account.ask(on, user))


def show_summary(row: AccountDiff) -> DiffSummary:
    """A diff in numbers."""
    return view(DiffSummary, row, by=row.by or None)


def _show(row: AccountDiff) -> DiffView:
    """A diff. The age of a leftover is that at its beginning, so the view changes with the row only."""
    return view(
        DiffView,
        row,
        by=row.by or None,
        makers=[_maker(name, row.makers[name]) for name in sorted(row.makers)],
        leftovers=_leftovers(row.leftovers, row.began),
    )


def _maker(name: str, found: Checked) -> CheckedMaker:
    is_known = found.why is None
    return CheckedMaker(name, found.things if is_known else None, found.left if is_known else None, found.why)


def _leftovers(rows: Sequence[Leftover], began: datetime) -> list[LeftoverView]:
    return [
        view(LeftoverView, row, unit=row.unit or None, seconds_old=elapsed(row.made, began) if row.made else None)
        for row in rows
    ]
