"""A driver as the checks see it: how to make it, how to call it, and how long to wait for it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any, TypeVar

from penstock.domain.units.retries import MAX_MESSAGE_SECONDS
from penstock.domain.units.units import CleanProof
from penstock.kernel.errors import (
    DriverError,
    Misconfigured,
    NoCapacity,
    QuotaReached,
    RateLimited,
    Unknown,
    Unsatisfiable,
)
from penstock.ports import CleaningDriver, ContextDriver, Driver, NotYet, Order, Ready, UnitContext

KNOWN = (RateLimited, QuotaReached, NoCapacity, Unknown, Unsatisfiable, Misconfigured)
METADATA_BYTES, NOTES_BYTES = 16 * 1024, 8 * 1024

T = TypeVar("T")


class Broken(AssertionError):
    """A driver does not keep a promise."""


@dataclass
class Rig:
    """`make` gives another driver that shares nothing with the others but what is outside, as each function does.

    `is_listed` says that its units exist outside; of a lock, whose slot is all there is, they do not. `points` is at
    how many lines a call may die at most, and `own` where the driver's own code is, if not in its package. A driver
    that is not threadsafe is not asked by two at once: one that a test has scripted. `lag` is for how many
    seconds a list may be wrong before that is a failure.
    """

    make: Callable[[], Driver]
    kind: str = "well"
    type: str = "linux"
    slot: str = "1"
    settings: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    is_listed: bool = True
    is_threadsafe: bool = True
    points: int = 8
    own: str = ""
    patience: int = 120
    lag: float = 600.0
    pause: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    name: Callable[[int], str] = "kit-{}".format
    used: list[str] = field(default_factory=list)
    _notes: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _fences: dict[str, int] = field(default_factory=dict)
    _cleaned: set[str] = field(default_factory=set)
    _leases: Any = field(default_factory=lambda: count(1))
    _numbers: Any = field(default_factory=lambda: count(1))

    def unit(self) -> str:
        """The id of a unit that was never made."""
        self.used.append(self.name(next(self._numbers)))
        return self.used[-1]

    def order(self, unit: str) -> Order:
        """What the driver is given to make a unit."""
        url = "http://127.0.0.1:9" if self.kind == "factory" else ""
        return Order(unit, self.type, self.slot, self.settings, self.options, url=url, key="k" * 64)

    def driver(self, unit: str) -> Driver:
        """A new driver, that was told what the rows know of a unit, if it wants to."""
        made, fence = self.make(), self._fence(unit)
        if not isinstance(made, ContextDriver):
            return made
        return made.with_context(UnitContext(self.slot, fence, self._notes.get(unit, {})))

    def _fence(self, unit: str) -> int:
        """The fence of a unit's lease: each lease of the slot has a higher one than those before."""
        if unit not in self._fences:
            self._fences[unit] = next(self._leases)
        return self._fences[unit]

    def create(self, unit: str) -> Ready:
        """Have a unit made, however often that must be asked for. After it was cleaned, that is for another lease."""
        if unit in self._cleaned:
            self._cleaned.remove(unit)
            del self._fences[unit]
        done = self._until(unit, "create", lambda: self.driver(unit).create(self.order(unit)))
        assert isinstance(done, Ready)
        size = len(_json("metadata", done.metadata))
        if size > METADATA_BYTES:
            raise Broken(f"its metadata has {size} bytes; {METADATA_BYTES} at most")
        return done

    def clean(self, unit: str) -> CleanProof:
        """Have a unit cleaned."""

        def call() -> CleanProof | NotYet:
            driver = self.driver(unit)
            if not isinstance(driver, CleaningDriver):
                raise Broken("it says `reusable = True` and has no `clean`")
            return driver.clean(unit, self.now())

        proof = self._proof("clean", self._until(unit, "clean", call))
        self._cleaned.add(unit)
        return proof

    def destroy(self, unit: str) -> CleanProof:
        """Have a unit destroyed."""
        return self._proof("destroy", self._until(unit, "destroy", lambda: self.driver(unit).destroy(unit, self.now())))

    def listed(self) -> set[str]:
        """Those of our units that are listed, by a driver that made none of them."""
        listing = call("list", lambda: list(self.make().list()))
        if len(set(listing)) != len(listing) or not all(isinstance(each, str) for each in listing):
            raise Broken(f"`list` gives {listing!r}: ids, each of them once")
        return set(listing) & set(self.used)

    def expect(self, *units: str) -> None:
        """Wait until just these of ours are listed."""
        wanted = set(units) if self.is_listed else set()
        waited = 0.0
        for tries in range(self.patience):
            found = self.listed()
            if found == wanted or waited >= self.lag:
                break
            pause = min(5.0, 0.02 * 2 ** min(tries, 8))
            self.pause(pause)
            waited += pause
        found = self.listed() if found != wanted else found
        if found != wanted:
            raise Broken(f"it lists {_words(found)}, where there should be {_words(wanted)}, for {waited:.0f} s")

    def _until(self, unit: str, what: str, ask: Callable[[], T | NotYet]) -> T:
        """Ask until it is done, as the core does."""
        reason: str | None = None
        for _ in range(self.patience):
            try:
                done = call(what, ask)
            except RateLimited as error:
                done = NotYet(error.seconds, str(error), notes=error.notes)
            notes = getattr(done, "notes", None)
            if notes is not None:
                self._note(unit, notes)
            if not isinstance(done, NotYet):
                return done
            if not 0 < done.after <= MAX_MESSAGE_SECONDS:
                raise Broken(
                    f"`{what}` says to look again in {done.after} s; from 1 to {MAX_MESSAGE_SECONDS} it may say"
                )
            reason = done.reason
            self.pause(done.after)
        raise Broken(f"`{what}` is not done after {self.patience} calls: {reason}")

    def _note(self, unit: str, notes: Mapping[str, Any]) -> None:
        text = _json("notes", notes)
        if len(text) > NOTES_BYTES:
            raise Broken(f"its notes have {len(text)} bytes; {NOTES_BYTES} at most")
        self._notes[unit] = json.loads(text)

    def _proof(self, what: str, proof: object) -> CleanProof:
        if not isinstance(proof, CleanProof):
            raise Broken(f"`{what}` gives {proof!r}, which is no CleanProof and no NotYet")
        if not proof.by or not proof.checked:
            raise Broken(f"the proof of `{what}` does not say who checked what: {proof}")
        return proof


def call(what: str, ask: Callable[[], T]) -> T:
    """Call a driver: what it raises is of the closed set. Raises RateLimited, and Broken for all the rest."""
    try:
        return ask()
    except RateLimited:
        raise
    except KNOWN as error:
        raise Broken(f"`{what}` raised {type(error).__name__}: {error}") from error
    except (DriverError, Exception) as error:
        if isinstance(error, Broken):
            raise
        raise Broken(f"`{what}` raised {type(error).__name__}, which the core does not know: {error}") from error


def _json(what: str, value: Mapping[str, Any]) -> str:
    try:
        return json.dumps(dict(value), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise Broken(f"its {what} are not JSON: {error}") from error


def _words(units: set[str]) -> str:
    return ", ".join(sorted(units)) or "none"
