"""The simulation can fail: each bug that is planted here is found by some seed, as what it is.

`make e2e` looks for them: that takes too long for `make test`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.pools import pools
from penstock.domain.units.units import Unit
from penstock.kernel.errors import Throttled
from penstock.kernel.rows import Change, Create, Delete
from penstock.testing.store import MemoryStore
from penstock.usecases import sweep
from penstock.usecases.jobs import cancel, flow
from penstock.usecases.units import reconcile
from penstock.usecases.units.reconcile import Reconciled
from simulation.__main__ import main
from simulation.ports import SimulatedStore
from tests.simulation import (
    plants_ahead,
    plants_choices,
    plants_hosts,
    plants_power,
    plants_shares,
    plants_warm,
    plants_world,
)
from tests.simulation.plants import (
    Plant,
    an_end_counts_for_nothing,
    found,
    free_before_clean,
    grants_past_who_waits,
    last_comes_first,
    lets_everybody_on,
    looks_at_one_line,
    old_agents_write,
    one_by_one,
    release_without_fence,
    serve_before_write,
    start_at_once,
)

FIRST = {
    "release_without_fence": 6, "start_at_once": 126, "grants_past_who_waits": 3, "looks_at_one_line": 4,
    "one_by_one": 4, "no_sweep": 6, "old_agents_write": 12, "believe_that_it_started": 17,
    "believe_that_it_was_written": 40, "anybody_cancels": 45, "called_by_two": 346, "idle_makes_no_room": 95,
    "key_opens_again": 162, "any_job_of_the_worker": 303, "makes_past_the_limit": 20,
    "believe_that_it_was_sent": 43, "an_event_ends_whatever_runs": 111, "time_only_goes_on": 10,
    "fails_what_is_still_to_come": 25,
    "idle_counts_for_nothing": 5, "serves_anybody": 82, "takes_what_others_wait_for": 66,
    "free_once_its_agent_ended": 8, "lets_a_second_machine_in": 569, "lends_who_is_away": 8,
    "owners_are_not_asked": 8, "parts_of_two_hosts": 8, "a_part_is_enough": 8, "too_many_parts": 73,
    "all_parts_are_free_at_once": 8, "last_comes_first_on_a_host": 65, "lets_in_who_may_lose_its_power": 275,
    "switches_off_before_it_is_away": 9, "switches_what_is_in_use": 2118, "nobody_switches_on_to_clean": 173,
    "switches_what_another_pool_has": 881, "an_end_counts_for_nothing": 154, "keep_the_claim": 3,
    "last_comes_first": 4, "takes_what_does_not_fit": 11, "gives_a_part_as_the_whole": 16,
    "takes_a_slot_with_anothers_unit": 718,
}  # fmt: skip
"""Where to begin to look for what other seeds find late, or never. All are looked at if the dice fall otherwise."""


def keep_the_claim(patch: pytest.MonkeyPatch) -> None:
    """A grant leaves the claim in the queue."""
    commit = MemoryStore.commit

    def forgetful(store: MemoryStore, changes: Sequence[Change]) -> bool:
        is_grant = any(isinstance(change, Create) and isinstance(change.row, Unit) for change in changes)
        kept = [c for c in changes if not (is_grant and isinstance(c, Delete) and isinstance(c.was, pools.Claim))]
        return commit(store, kept)

    patch.setattr(MemoryStore, "commit", forgetful)


def no_sweep(patch: pytest.MonkeyPatch) -> None:
    """Nobody makes up for what was lost."""
    patch.setattr(sweep, "sweep", lambda on: sweep.SweepResult())


def believe_that_it_started(patch: pytest.MonkeyPatch) -> None:
    """Starting a flow again counts as success, and it is: the flow is open. Its first message was lost for good."""
    patch.setattr(sweep, "_resume_queued", lambda on, job: flow.start(on, job.id))


def anybody_cancels(patch: pytest.MonkeyPatch) -> None:
    """Whose job it is, is not asked."""
    patch.setattr(cancel, "find", lambda on, user, job_id: on.store.get(job_key(job_id), Job))


def believe_that_it_was_written(patch: pytest.MonkeyPatch) -> None:
    """A commit that DynamoDB refused, because it had too much to do, counts as done."""
    commit = SimulatedStore.commit

    def believing(store: SimulatedStore, changes: Sequence[Change]) -> bool:
        try:
            return commit(store, changes)
        except Throttled:
            return True

    patch.setattr(SimulatedStore, "commit", believing)


def destroy_all_that_is_listed(patch: pytest.MonkeyPatch) -> None:
    """Whatever a driver lists counts as a stray."""

    def destroy(on: Any, until: Any) -> Reconciled:
        for unit in list(on.drivers.things):
            on.drivers.factory("made-up", {"name": "north"}).destroy(unit, on.world.now())
        return Reconciled()

    patch.setattr(reconcile, "reconcile", destroy)


PLANTED: Sequence[tuple[Plant, set[str], tuple[str, ...]]] = (
    (serve_before_write, {"QUEUE-1"}, ()),
    (grants_past_who_waits, {"QUEUE-2"}, ()),
    (looks_at_one_line, {"QUEUE-1"}, ()),
    (release_without_fence, {"SLOT-1", "UNIT-2", "SLOT-3"}, ()),
    (keep_the_claim, {"SLOT-2"}, ()),
    (start_at_once, {"JOB-2"}, ()),
    (one_by_one, {"QUEUE-3"}, ()),
    (lets_everybody_on, {"SLOT-1"}, ()),
    (an_end_counts_for_nothing, {"SLOT-1", "JOB-1"}, ()),
    (no_sweep, {"JOB-1", "UNIT-1", "QUEUE-1", "QUEUE-3"}, ()),
    (old_agents_write, {"SLOT-3", "JOB-1"}, ("SEC-2",)),
    (last_comes_first, {"QUEUE-2"}, ()),
    (destroy_all_that_is_listed, {"UNIT-1"}, ()),
    (believe_that_it_started, {"JOB-1"}, ()),
    (believe_that_it_was_written, {"JOB-1"}, ()),
    (anybody_cancels, {"SEC-2"}, ()),
    (free_before_clean, {"UNIT-2"}, ()),
    (plants_warm.keep_without_cleaning, {"UNIT-2"}, ()),
    (plants_warm.called_by_two, {"UNIT-2", "UNIT-3"}, ()),
    (plants_warm.idle_counts_for_nothing, {"SLOT-1"}, ()),
    (plants_warm.idle_makes_no_room, {"QUEUE-1", "QUEUE-3"}, ()),
    (plants_warm.key_opens_again, {"SEC-2"}, ()),
    (plants_warm.serves_anybody, {"SEC-2"}, ()),
    (plants_warm.any_job_of_the_worker, {"SEC-2"}, ()),
    (plants_ahead.takes_what_others_wait_for, {"QUEUE-2"}, ()),
    (plants_ahead.makes_past_the_limit, {"SLOT-1"}, ()),
    (plants_choices.takes_a_slot_with_anothers_unit, {"SLOT-1"}, ()),
    (plants_choices.takes_what_does_not_fit, {"SLOT-2"}, ()),
    (plants_choices.gives_a_part_as_the_whole, {"SLOT-1"}, ()),
    (plants_hosts.free_once_its_agent_ended, {"UNIT-2"}, ()),
    (plants_hosts.lets_a_second_machine_in, {"JOB-2"}, ()),
    (plants_hosts.lends_who_is_away, {"SLOT-1"}, ()),
    (plants_power.lets_in_who_may_lose_its_power, {"RULE-3", "JOB-2"}, ()),
    (plants_power.switches_off_before_it_is_away, {"JOB-2"}, ()),
    (plants_power.switches_what_is_in_use, {"JOB-2"}, ()),
    (plants_power.switches_what_another_pool_has, {"JOB-2"}, ()),
    (plants_power.nobody_switches_on_to_clean, {"UNIT-1", "QUEUE-3"}, ()),
    (plants_shares.owners_are_not_asked, {"SEC-2"}, ()),
    (plants_shares.parts_of_two_hosts, {"SLOT-2"}, ()),
    (plants_shares.a_part_is_enough, {"SLOT-2"}, ()),
    (plants_shares.too_many_parts, {"SLOT-1"}, ()),
    (plants_shares.all_parts_are_free_at_once, {"UNIT-2"}, ()),
    (plants_shares.last_comes_first_on_a_host, {"QUEUE-2"}, ()),
    (plants_world.believe_that_it_was_sent, {"QUEUE-1"}, ()),
    (plants_world.an_event_ends_whatever_runs, {"JOB-1"}, ()),
    (plants_world.time_only_goes_on, {"RULE-3"}, ()),
    (plants_world.fails_what_is_still_to_come, {"JOB-1"}, ()),
)


@pytest.mark.e2e
@pytest.mark.parametrize(("plant", "labels", "blind"), PLANTED, ids=[plant.__name__ for plant, *_ in PLANTED])
def test_a_planted_bug_is_found(
    plant: Plant, labels: set[str], blind: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    first = FIRST.get(getattr(plant, "__name__", ""), 0)
    told = found(first, blind=blind)
    assert told is not None, "no seed found it"
    assert told.label in labels, told.says


def test_a_failure_is_shrunk_and_says_how_to_see_it_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keep_the_claim(monkeypatch)
    assert main(["--seeds", "3:8"]) == 1
    told = capsys.readouterr().out
    assert "[SLOT-2]" in told
    assert re.search(r"python -m simulation --seed [3-7] ", told)
    assert " --without " in told
