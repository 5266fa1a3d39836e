"""What the simulation found in the use cases, each as one short story."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain.commands import SubmitJob
from penstock.domain.pools.pools import Slot, SlotState, collection
from penstock.domain.units.units import Unit
from penstock.domain.users.users import User
from penstock.kernel.rows import Change, Delete
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import cancel, settle, submit
from penstock.usecases.pools import resize
from penstock.usecases.site import apply
from penstock.usecases.units import advance

ADA = User(name="ada", created=START, version=1)
SITE = site_toml(
    targets={"linux": {}},
    wells={"locks": "lock"},
)


def site(bench: str) -> str:
    return f'{SITE}[resources.bench]\nwell = "locks"\n{bench}\n'


def held_by_two(bench: str) -> tuple[Twin, list[str]]:
    """A twin in which two jobs hold a bench each."""
    twin = Twin()
    apply.apply(twin.on, "root", site(bench), "site.toml")
    twin.run()
    ask = SubmitJob("#!/bin/sh\n", target="linux", resources=["bench"])
    begun = [submit.submit(twin.on, ADA, ask, None) for _ in range(2)]
    twin.run()
    return twin, begun


def slots(twin: Twin, state: SlotState) -> list[str]:
    return [slot.name for slot in twin.store.find(collection("resource/bench"), f"{state}#", Slot)]


def test_a_named_slot_that_was_taken_out_does_not_come_back_in_anothers_place() -> None:
    """SLOT-1: one bench is not as good as another. Seed 31."""
    twin, (first, second) = held_by_two('names = ["bench-1", "bench-2"]')
    apply.apply(twin.on, "root", site('names = ["bench-1"]'), "site.toml")
    twin.run()
    cancel.cancel(twin.on, ADA, first)
    twin.run()
    assert slots(twin, SlotState.FREE) == ["bench-1"]
    cancel.cancel(twin.on, ADA, second)
    twin.run()
    assert slots(twin, SlotState.FREE) == ["bench-1"]
    assert slots(twin, SlotState.OFF) == ["bench-2"]


def test_a_slot_that_is_withdrawn_while_it_is_given_back_goes_off() -> None:
    """RULE-3: a release that loses a race reads again. Seed 200."""
    twin, (_, second) = held_by_two("limit = 2")
    bench = next(row for row in twin.store.rows.values() if isinstance(row, Unit) and row.lease.job == second)
    cancel.cancel(twin.on, ADA, second)
    settle.settle(twin.on, *twin.flows.settling.popleft(), unbegun=True)
    apply.resize(twin.on, "resource/bench", 0)
    commit = twin.store.commit

    def racing(changes: Sequence[Change]) -> bool:
        """The resize comes between what a release reads and what it writes."""
        if any(isinstance(change, Delete) and isinstance(change.was, Slot) for change in changes):
            twin.store.commit = commit  # type: ignore[method-assign]
            resize.resize(twin.on, "resource/bench")
        return commit(changes)

    twin.store.commit = racing  # type: ignore[method-assign]
    advance.advance(twin.on, bench.id)
    assert twin.store.commit == commit
    assert slots(twin, SlotState.OFF) == [bench.lease.slot]
