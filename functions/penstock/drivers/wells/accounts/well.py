"""The `accounts` well: named things that exist already, such as sandbox accounts, racks and projects.

There is nothing to make. What destroying is elsewhere is cleaning here: by the site's own means, as often in a row as
the site wants, and then it may be looked at what differs from before. Only then the slot is free again. [UNIT-2]
How far it has come is in the unit's row, and so is the id of each cleaning before it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from penstock.domain.units.retries import MAX_MESSAGE_SECONDS
from penstock.domain.units.units import CleanProof
from penstock.drivers import MAKER
from penstock.drivers.wells.accounts import cleaner
from penstock.drivers.wells.accounts import settings as keys
from penstock.drivers.wells.accounts.cleaner import WORDS, Ask
from penstock.drivers.wells.accounts.drift import PART_CHARS, PARTS, Look, differs
from penstock.kernel.errors import DriverError, Misconfigured, RateLimited, Unknown, Unsatisfiable
from penstock.ports import NotYet, Order, Ready, UnitContext
from penstock.toml.checks import clip

HOME = "PENSTOCK_HOME"
LATER = 15
CLEAN, CHECKED = "clean", "checked"


class AccountsWell:
    """Hands out the names of slots, and has what they name cleaned."""

    quarantines = True

    def __init__(self, settings: Mapping[str, Any], surroundings: Mapping[str, str], ask: Ask | None = None) -> None:
        self._settings = keys.read(settings)
        self._maker = surroundings.get(MAKER, "")
        self._ask = ask or self._cleaner(bool(surroundings.get(HOME)))
        self._standing: UnitContext | None = None

    def _cleaner(self, is_local: bool) -> Ask:
        if self._settings.function:
            return cleaner.function(self._settings.function)
        if not is_local:
            raise Misconfigured("an accounts well's `command` is run beside the local cloud only; give it a `lambda`")
        return cleaner.command(self._settings.command)

    @staticmethod
    def complaints(settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with settings, a sentence each. Asks nobody."""
        return keys.complaints(settings)

    @staticmethod
    def objections(options: Mapping[str, Any]) -> Sequence[str]:
        """A job takes the thing as it is."""
        return [f"an accounts well takes no option {clip(key)!r}; it takes none" for key in options]

    def informed(self, of: UnitContext) -> AccountsWell:
        """Which thing it is: the slot's name."""
        self._standing = of
        return self

    def create(self, order: Order) -> Ready | NotYet:
        """The thing is there. How it is now, is how it shall be after the lease."""
        if "/" in order.slot:
            raise Misconfigured(f"{order.type} has `leases`: what is cleaned after one would be in use by another")
        metadata = {"name": order.slot, "type": order.type, **order.settings}
        if not self._settings.check:
            return Ready(metadata, public=("name", "type"))
        fence = self._standing.fence if self._standing else 0
        try:
            look = self._look(order.id, order.slot, f"{order.id}/{fence}/before")
        except Unsatisfiable as error:  # which would fail the job: it has done nothing wrong
            raise Unknown(f"it cannot be looked at: {error}", "check") from error
        if isinstance(look, NotYet):
            return look
        drift = self._drift(order.slot, None, look)
        if drift:
            raise Unknown(f"{order.slot} is not as its baseline says, and is lent to nobody: {drift}", "drift")
        return Ready(metadata, notes={"before": look.noted()}, public=("name", "type"))

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Take the next step of cleaning; what goes wrong makes it begin anew. [UNIT-2]"""
        if self._standing is None:
            raise Misconfigured(f"nobody says which thing {unit} is")
        notes = self._standing.notes
        kept = {"before": notes["before"]} if "before" in notes else {}
        if "round" not in notes:  # the ids of what follows are written before it is asked for
            return NotYet(1, "it is to be cleaned", notes={**kept, "round": now.isoformat(), "done": 0})
        try:
            return self._step(unit, self._standing.slot, notes, now)
        except RateLimited:
            raise
        except DriverError as error:
            error.notes = kept
            raise

    def list(self) -> Iterable[str]:
        """Nothing is made, so nothing can be left over."""
        return ()

    def _step(self, unit: str, name: str, notes: Mapping[str, Any], now: datetime) -> CleanProof | NotYet:
        done, most = int(notes["done"]), self._settings.cleanings
        if done < most:
            said = self._asked(CLEAN, unit, name, f"{unit}/{notes['round']}/{done + 1}")
            if isinstance(said, NotYet):
                return said
            done, notes = done + 1, {**notes, "done": done + 1, "checked": _words(said.get("checked"), "nothing said")}
            if done < most or self._settings.check:
                return NotYet(1, f"cleaned {done} of {most} times", notes=notes)
        return self._proof(unit, name, notes, now)

    def _proof(self, unit: str, name: str, notes: Mapping[str, Any], now: datetime) -> CleanProof | NotYet:
        times = "once" if self._settings.cleanings == 1 else f"{self._settings.cleanings} times in a row"
        checked = f"{name} was cleaned {times}: {notes.get('checked')}"
        if self._settings.check:
            look = self._look(unit, name, f"{unit}/{notes['round']}/after")
            if isinstance(look, NotYet):
                return look
            drift = self._drift(name, notes.get("before"), look)
            if drift:
                raise Unsatisfiable(f"after it was cleaned {times}, {name} is not as before: {drift}")
            checked += f"; its digest is {clip(look.digest, 80)}"
        return CleanProof(by=f"accounts {self._maker}".strip(), time=now, checked=checked)

    def _drift(self, name: str, before: Mapping[str, Any] | None, look: Look) -> str | None:
        """What differs from the site's own baseline, or else from before the lease. Without either, nothing can."""
        if name in self._settings.baseline:
            return differs(Look(self._settings.baseline[name]), look)
        return differs(Look(before["digest"], before["parts"]), look) if before else None

    def _look(self, unit: str, name: str, id: str) -> Look | NotYet:
        said = self._asked("check", unit, name, id)
        if isinstance(said, NotYet):
            return said
        digest, parts = said.get("digest"), said.get("parts", {})
        if not isinstance(digest, str) or not 0 < len(digest) <= WORDS or not _are_parts(parts):
            raise Misconfigured("the cleaner's check says no digest, or parts that are none")
        return Look(digest, parts)

    def _asked(self, do: str, unit: str, name: str, id: str) -> Mapping[str, Any] | NotYet:
        """Ask the cleaner. Raises Unsatisfiable when it says that it failed, Misconfigured for what is no answer."""
        said = self._ask({"do": do, "id": id, "name": name, "unit": unit, "well": self._maker})
        match said.get("state"):
            case "not-yet":
                return NotYet(_seconds(said.get("after")), _words(said.get("reason"), "the cleaner is not done"))
            case "failed":
                raise Unsatisfiable(f"{name}: {_words(said.get('reason'), 'the cleaner failed, and does not say why')}")
            case state if state == (CLEAN if do == CLEAN else CHECKED):
                return said
        raise Misconfigured(f"the cleaner answers {do} with the state {clip(str(said.get('state')), 40)!r}")


def _words(value: object, otherwise: str) -> str:
    return clip(value, WORDS) if isinstance(value, str) and value.strip() else otherwise


def _seconds(value: object) -> int:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return max(1, min(int(value), MAX_MESSAGE_SECONDS)) if is_number else LATER  # type: ignore[call-overload]


def _are_parts(value: object) -> bool:
    return (
        isinstance(value, dict)
        and len(value) <= PARTS
        and all(isinstance(each, str) and len(each) <= PART_CHARS for pair in value.items() for each in pair)
    )
