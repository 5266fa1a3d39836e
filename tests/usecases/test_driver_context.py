"""A driver that wants to know more of a unit than its id is told, and asked by one at a time. [SLOT-3] [UNIT-2]"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from penstock.domain.units.units import CLEAN_WITHIN, CleanProof, Unit, UnitKind, UnitState
from penstock.domain.users.users import User
from penstock.kernel.errors import DriverError, Misconfigured, NoCapacity, Refused, Unknown, Unsatisfiable
from penstock.ports import ContextDriver, NotYet, Order, Ready, UnitContext
from penstock.testing.site import site_toml
from penstock.testing.twin import START, ScriptedDriver, Twin
from penstock.usecases import cooldowns
from penstock.usecases.jobs import cancel
from penstock.usecases.site import apply
from penstock.usecases.units import advance, maintenance, release
from tests.usecases.races import Died
from tests.usecases.steps import finish, hello, submit, worker_of
from tests.wells.books import resource_of

SITE = site_toml(
    targets={"default": {}},
    wells={"spring": "hand"},
    resources={"account": {"well": "spring", "names": ["red"]}},
)


ADA = User(name="ada", created=START, version=1)


class Spring(ScriptedDriver):
    """A well that writes down what it was told before each call, and says what a test wants."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[str, UnitContext]] = []
        self.now: UnitContext | None = None
        self.noted: Mapping[str, Any] | None = None
        self.ends: list[CleanProof | NotYet | BaseException] = []
        self.meanwhile: Callable[[], None] | None = None

    def with_context(self, of: UnitContext) -> Spring:
        self.now = of
        return self

    def _note(self, call: str) -> None:
        assert self.now
        self.told.append((call, self.now))
        self.now = None

    def create(self, order: Order) -> Ready | NotYet:
        self._note("create")
        said = self._said()
        return said or Ready({"id": order.id}, notes=self.noted)

    def clean(self, unit: str, now: datetime) -> CleanProof | NotYet:
        self._note("clean")
        return super().clean(unit, now)

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        self._note("destroy")
        if self.meanwhile:
            self.meanwhile()
        said = self.ends.pop(0) if self.ends else CleanProof(by="spring", time=now, checked="it")
        if isinstance(said, BaseException):
            raise said
        return said

    def calls(self, call: str) -> list[UnitContext]:
        return [standing for name, standing in self.told if name == call]


@pytest.fixture
def twin() -> Twin:
    made = Twin()
    made.drivers.basin = Spring()
    apply.apply(made.on, "root", SITE, "site.toml")
    made.run()
    return made


def spring(twin: Twin) -> Spring:
    assert isinstance(twin.drivers.basin, Spring)
    return twin.drivers.basin


def leased(twin: Twin) -> str:
    job = submit(twin, ADA, resources=["account"])
    twin.run()
    return job


def ended(twin: Twin) -> Unit:
    """A job has had the resource, and is cancelled."""
    cancel.cancel(twin.on, ADA, leased(twin))
    twin.run()
    return resource_of(twin)


def test_a_context_driver_gets_the_slot_the_fence_and_its_notes(twin: Twin) -> None:
    assert isinstance(spring(twin), ContextDriver)
    spring(twin).says = [NotYet(5, "soon", notes={"asked": 1})]
    spring(twin).noted = {"baseline": "abc"}
    job = leased(twin)
    twin.pass_time(6)
    twin.run()
    hello(twin, job)
    finish(twin, job)
    first, second = spring(twin).calls("create")
    (last,) = spring(twin).calls("destroy")
    assert (first.slot, first.fence, first.notes) == ("red", 1, {})
    assert (second.slot, second.fence, second.notes) == ("red", 1, {"asked": 1})
    assert (last.slot, last.fence, last.notes) == ("red", 1, {"baseline": "abc"})


def test_without_notes_those_that_there_are_stay(twin: Twin) -> None:
    spring(twin).noted = {"baseline": "abc"}
    spring(twin).ends = [NotYet(5, "slow"), NotYet(5, "slower", notes={"run": 2}), NotYet(5, "slow")]
    ended(twin)
    for _ in range(3):
        twin.pass_time(6)
        twin.run()
    notes = [each.notes for each in spring(twin).calls("destroy")]
    assert notes == [{"baseline": "abc"}, {"baseline": "abc"}, {"run": 2}, {"run": 2}]
    assert resource_of(twin).state is UnitState.GONE


def test_an_error_may_bring_notes(twin: Twin) -> None:
    spring(twin).ends = [_noted(Unknown("no"), {"failed": 1}), Unknown("no")]
    ended(twin)
    for _ in range(2):
        twin.pass_time(60)
        twin.run()
    assert [each.notes for each in spring(twin).calls("destroy")] == [{}, {"failed": 1}, {"failed": 1}]


def test_an_error_of_a_create_may_bring_notes_too(twin: Twin) -> None:
    spring(twin).says = [_noted(NoCapacity("no"), {"tries": 1}), _noted(Unknown("no"), {"tries": 2}), Unknown("no")]
    leased(twin)
    for _ in range(3):
        twin.pass_time(3600)
        twin.run()
    assert [each.notes for each in spring(twin).calls("create")] == [{}, {"tries": 1}, {"tries": 2}, {"tries": 2}]


def test_a_factory_gets_the_notes_of_what_it_made(twin: Twin) -> None:
    twin.drivers.hand = made = Spring()
    made.noted = {"task": "1"}
    job = submit(twin, ADA)
    twin.run()
    assert worker_of(twin, job).creation.notes == {"task": "1"}
    hello(twin, job)
    finish(twin, job)
    assert [each.notes for each in made.calls("destroy")] == [{"task": "1"}]


def test_who_goes_into_quarantine_takes_the_notes_along(twin: Twin) -> None:
    spring(twin).ends = [_noted(Unsatisfiable("no"), {"failed": number}) for number in (1, 2, 3)]
    ended(twin)
    for _ in range(2):
        twin.pass_time(60)
        twin.run()
    unit = resource_of(twin)
    assert (unit.state, unit.creation.notes) == (UnitState.QUARANTINED, {"failed": 3})


def _noted(error: DriverError, notes: Mapping[str, Any]) -> DriverError:
    error.notes = notes
    return error


def test_a_well_that_cleans_is_told_as_well(twin: Twin) -> None:
    """UNIT-2: of the next lease of what it keeps, the fence is another."""
    kept = SITE.replace('["red"]', '["red"]\nwarm = { max = 1 }')
    apply.apply(twin.on, "root", kept, "site.toml")
    for _ in range(2):
        job = leased(twin)
        hello(twin, job)
        finish(twin, job)
    assert [each.fence for each in spring(twin).calls("create")] == [1, 2]
    assert [(each.slot, each.fence) for each in spring(twin).calls("clean")] == [("red", 1), ("red", 2)]


def test_what_exists_already_is_cleaned_by_one_at_a_time(twin: Twin) -> None:
    """UNIT-2: a second call that is late would clean what is leased again."""
    twin.drivers.quarantining = True
    spring(twin).ends = [NotYet(5, "slow")]
    spring(twin).meanwhile = lambda: advance.advance(twin.on, resource_of(twin).id)
    ended(twin)
    assert len(spring(twin).calls("destroy")) == 1
    spring(twin).meanwhile = None
    twin.pass_time(6)
    twin.run()
    assert len(spring(twin).calls("destroy")) == 2
    assert resource_of(twin).state is UnitState.GONE


def test_what_can_be_made_anew_may_be_destroyed_by_two(twin: Twin) -> None:
    calls = iter(range(1))
    spring(twin).meanwhile = lambda: [advance.advance(twin.on, resource_of(twin).id) for _ in calls] and None
    ended(twin)
    assert len(spring(twin).calls("destroy")) == 2


def test_who_died_while_it_cleaned_is_followed_when_it_can_do_no_more(twin: Twin) -> None:
    twin.drivers.quarantining = True
    spring(twin).ends = [Died()]
    with pytest.raises(Died):
        ended(twin)
    unit, began = resource_of(twin), twin.world.now()
    twin.world.time = began + CLEAN_WITHIN - timedelta(seconds=2)
    advance.advance(twin.on, unit.id)
    assert len(spring(twin).calls("destroy")) == 1
    assert resource_of(twin).due
    twin.world.time = began + CLEAN_WITHIN + timedelta(seconds=1)
    advance.advance(twin.on, unit.id)
    assert "left no answer" in str(resource_of(twin).step.reason)
    assert [row.code for row in cooldowns.failures(twin.on, "well/spring")] == ["Unknown:NoAnswer"]
    twin.pass_time(15)
    twin.run()
    assert resource_of(twin).state is UnitState.GONE


def test_it_is_too_late_to_hold_what_is_cleaned_by_name(twin: Twin) -> None:
    """UNIT-3: the one write that claims the call also says that it has begun."""
    twin.drivers.quarantining = True
    spring(twin).ends = [NotYet(60, "slow")]
    unit = ended(twin)
    assert unit.cleaning.begun
    with pytest.raises(Refused, match="too late"):
        maintenance.hold(twin.on, ADA, UnitKind.RESOURCE, unit.id, "look", 60)


def test_while_the_site_no_longer_parses_nobody_is_asked_and_it_is_told(
    twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin.drivers.quarantining = True
    spring(twin).ends = [NotYet(60, "slow")]
    unit = ended(twin)

    def unreadable(on: object) -> None:
        raise Misconfigured("the site no longer parses")

    twin.pass_time(61)
    with monkeypatch.context() as patch:
        patch.setattr(release, "current_site", unreadable)
        advance.advance(twin.on, unit.id)
    assert len(spring(twin).calls("destroy")) == 1
    assert "no longer parses" in str(resource_of(twin).step.reason)
