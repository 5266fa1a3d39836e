"""The `accounts` well: named things that exist already, such as sandbox accounts, racks and projects.

The driver makes nothing. `destroy` cleans: it calls the site's cleaner as often in a row as the settings say, and may
then check whether the thing is as before the lease. Only then the slot becomes free. [UNIT-2] The unit's row has the
progress in its notes, and the id of each cleaning before the request.

What differs between two looks at a thing. A look is a digest, and if the cleaner says so, one for each part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any

from penstock.domain.units.retries import MAX_MESSAGE_SECONDS
from penstock.domain.units.units import CleanProof
from penstock.drivers import MAKER
from penstock.drivers.wells.accounts import cleaner
from penstock.drivers.wells.accounts import settings as keys
from penstock.drivers.wells.accounts.cleaner import WORDS, Ask
from penstock.kernel.errors import DriverError, Misconfigured, RateLimited, Unknown, Unsatisfiable
from penstock.kernel.frozen import dataclass
from penstock.ports import NotYet, Order, Ready, UnitContext
from penstock.toml.checks import clip

HOME = "PENSTOCK_HOME"
LATER = 15
CLEAN, CHECKED = "clean", "checked"


class AccountsWell:
    """Gives a job the name of its slot, and has the named thing cleaned afterwards."""

    quarantines = True

    def __init__(self, settings: Mapping[str, Any], environment: Mapping[str, str], ask: Ask | None = None) -> None:
        self._settings = keys.read(settings)
        self._maker = environment.get(MAKER, "")
        self._ask = ask or self._cleaner(bool(environment.get(HOME)))
        self._context: UnitContext | None = None

    def _cleaner(self, is_local: bool) -> Ask:
        if self._settings.function:
            return cleaner.function(self._settings.function)
        if not is_local:
            raise Misconfigured("`command` works only with the local cloud; set `lambda` instead")
        return cleaner.command(self._settings.command)

    @staticmethod
    def complaints(settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with settings, one sentence each. Calls no service."""
        return keys.complaints(settings)

    @staticmethod
    def objections(options: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with options: there are none."""
        return [f"the accounts driver has no option {clip(key)!r}; it has no options" for key in options]

    def with_context(self, of: UnitContext) -> AccountsWell:
        """The driver, knowing the slot, whose name is the thing's."""
        self._context = of
        return self

    def create(self, order: Order) -> Ready | NotYet:
        """Ready: the thing exists. With `check`, its state now is what cleaning must restore."""
        if "/" in order.slot:
            raise Misconfigured(f"{order.type} has `leases`: one lease would clean a thing that another one uses")
        metadata = {"name": order.slot, "type": order.type, **order.settings}
        if not self._settings.check:
            return Ready(metadata, public=("name", "type"))
        fence = self._context.fence if self._context else 0
        try:
            look = self._look(order.id, order.slot, f"{order.id}/{fence}/before")
        except Unsatisfiable as error:  # Unsatisfiable would fail the job, which has done nothing wrong
            raise Unknown(f"the check before the lease failed: {error}", "check") from error
        if isinstance(look, NotYet):
            return look
        drift = self._drift(order.slot, None, look)
        if drift:
            raise Unknown(f"{order.slot} differs from its baseline, so it is not leased: {drift}", "drift")
        return Ready(metadata, notes={"before": look.as_notes()}, public=("name", "type"))

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Take the next step of cleaning. After an error, cleaning begins again. [UNIT-2]"""
        if self._context is None:
            raise Misconfigured(f"the slot of {unit} is unknown, so it cannot be cleaned")
        notes = self._context.notes
        before = {"before": notes["before"]} if "before" in notes else {}
        if "round" not in notes:  # written first, because the ids of the requests are made of it
            return NotYet(1, "its cleaning begins", notes={**before, "round": now.isoformat(), "done": 0})
        try:
            return self._step(unit, self._context.slot, notes, now)
        except RateLimited:
            raise
        except DriverError as error:
            error.notes = before
            raise

    def list(self) -> Iterable[str]:
        """Nothing: the driver makes nothing, so nothing can be left over."""
        return ()

    def _step(self, unit: str, name: str, notes: Mapping[str, Any], now: datetime) -> CleanProof | NotYet:
        done, most = int(notes["done"]), self._settings.cleanings
        if done < most:
            answer = self._request(CLEAN, unit, name, f"{unit}/{notes['round']}/{done + 1}")
            if isinstance(answer, NotYet):
                return answer
            checked = _words(answer.get("checked"), "the cleaner does not say what it checked")
            done, notes = done + 1, {**notes, "done": done + 1, "checked": checked}
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
                raise Unsatisfiable(f"{name} was cleaned {times}, and still differs: {drift}")
            checked += f"; its digest is {clip(look.digest, 80)}"
        return CleanProof(by=f"accounts {self._maker}".strip(), time=now, checked=checked)

    def _drift(self, name: str, before: Mapping[str, Any] | None, look: CheckResult) -> str | None:
        """What differs from the site's baseline, or else from before the lease; None if there is neither."""
        if name in self._settings.baseline:
            return difference(CheckResult(self._settings.baseline[name]), look)
        return difference(CheckResult(before["digest"], before["parts"]), look) if before else None

    def _look(self, unit: str, name: str, id: str) -> CheckResult | NotYet:
        answer = self._request("check", unit, name, id)
        if isinstance(answer, NotYet):
            return answer
        digest, parts = answer.get("digest"), answer.get("parts", {})
        if not isinstance(digest, str) or not 0 < len(digest) <= WORDS or not _are_parts(parts):
            raise Misconfigured("the cleaner's answer to check has no valid `digest`, or no valid `parts`")
        return CheckResult(digest, parts)

    def _request(self, do: str, unit: str, name: str, id: str) -> Mapping[str, Any] | NotYet:
        """Call the cleaner. Raises Unsatisfiable if it reports a failure, Misconfigured for an invalid answer."""
        answer = self._ask({"do": do, "id": id, "name": name, "unit": unit, "well": self._maker})
        match answer.get("state"):
            case "not-yet":
                return NotYet(_seconds(answer.get("after")), _words(answer.get("reason"), "the cleaner is not done"))
            case "failed":
                raise Unsatisfiable(f"{name}: {_words(answer.get('reason'), 'the cleaner failed without a reason')}")
            case state if state == (CLEAN if do == CLEAN else CHECKED):
                return answer
        raise Misconfigured(
            f"the cleaner's answer to {do} has the unknown state {clip(str(answer.get('state')), 40)!r}"
        )


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


PARTS = 40
PART_CHARS = 64
MOST_SHOWN = 10


@dataclass(frozen=True)
class CheckResult:
    """The cleaner's check of a thing: one digest of all of it, and digests of its parts, which show what differs."""

    digest: str
    parts: Mapping[str, str] = field(default_factory=dict)

    def as_notes(self) -> dict[str, Any]:
        """As stored in the notes of the unit's row."""
        return {"digest": self.digest, "parts": dict(self.parts)}


def difference(before: CheckResult, now: CheckResult) -> str | None:
    """What differs, in words; None if the digests are equal."""
    if before.digest == now.digest:
        return None
    changed = [name for name in before.parts if name in now.parts and before.parts[name] != now.parts[name]]
    shown = [f"{name} has changed" for name in changed]
    shown += [f"{name} is gone" for name in before.parts if name not in now.parts]
    shown += [f"{name} is new" for name in now.parts if name not in before.parts] if before.parts else []
    more = f" and {len(shown) - MOST_SHOWN} more" if len(shown) > MOST_SHOWN else ""
    words = clip(", ".join(shown[:MOST_SHOWN]), 600) + more
    return words or f"its digest was {clip(before.digest, 20)} and is now {clip(now.digest, 20)}"
