"""The one life of workers and resources."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.units import retries, units
from penstock.domain.units.retries import BACK_OFF, BACK_OFF_MOST
from penstock.domain.units.units import STEP_WITHIN, CleanProof, Hold, UnitKind, UnitState
from penstock.kernel.rows import Look
from tests.domain.helpers import MINUTE, NOW, SECOND, unit
from tests.rows import changed

PROOF = CleanProof("lock", NOW, "nothing to clean")


def test_an_ordered_worker_has_until_the_boot_deadline() -> None:
    found = units.mark_made(unit(tries=3, reason="no capacity"), NOW, 10 * MINUTE)
    assert (found.state, found.creation.made, found.due) == (UnitState.CREATING, NOW, NOW + 10 * MINUTE)
    assert (found.step.tries, found.step.reason) == (0, None)


def test_what_is_told_of_a_machine_is_kept() -> None:
    assert units.mark_made(unit(), NOW, MINUTE, {"instance": "i-1"}).creation.metadata == {"instance": "i-1"}
    assert units.mark_made(unit(metadata={"instance": "i-1"}), NOW, MINUTE).creation.metadata == {"instance": "i-1"}


def test_what_a_driver_notes_takes_the_place_of_what_it_noted_before() -> None:
    before = unit(notes={"done": 1})
    assert units.with_notes(before, None) is before
    assert units.with_notes(before, {}).creation.notes == {}
    assert units.with_notes(before, {"done": 2}).creation.notes == {"done": 2}


def test_a_ready_resource_owes_nothing_of_its_own() -> None:
    found = units.ready(unit(is_a=UnitKind.RESOURCE, tries=3, reason="slow"), "s", NOW + MINUTE)
    assert (found.state, found.since, found.creation.made, found.due) == (
        UnitState.READY,
        NOW + MINUTE,
        NOW + MINUTE,
        None,
    )
    assert (found.access.sealed, found.step.tries, found.step.reason) == ("s", 0, None)


HOUR = 60 * MINUTE
RESOURCE = unit(is_a=UnitKind.RESOURCE, state=UnitState.READY)


def test_what_ends_by_itself_is_asked_for_anew_at_half_its_time() -> None:
    found = units.ready(unit(is_a=UnitKind.RESOURCE), "s", NOW, NOW + HOUR)
    assert (found.access.renews, found.due) == (NOW + 30 * MINUTE, NOW + 30 * MINUTE)
    assert units.ready(found, "s", NOW).access.renews is None
    for end in (NOW - HOUR, NOW, NOW + SECOND):
        assert units.ready(RESOURCE, "s", NOW, end).access.renews == NOW + 30 * SECOND, "and no more often than that"


def test_what_is_renewed_is_new_and_owes_the_next_renewal() -> None:
    before = replace(
        RESOURCE,
        access=replace(RESOURCE.access, sealed="old"),
        step=replace(RESOURCE.step, tries=3, reason="slow", busy=NOW, next_look=NOW),
        since=NOW - HOUR,
    )
    found = retries.renewed(before, "new", NOW, NOW + HOUR)
    assert (found.access.sealed, found.step.tries, found.step.reason, found.step.busy, found.step.next_look) == (
        "new",
        0,
        None,
        None,
        None,
    )
    assert (found.access.renews, found.due, found.since) == (NOW + 30 * MINUTE, NOW + 30 * MINUTE, NOW - HOUR)
    assert found.journal.entries[-1].what == "renewed after 3 failures"
    assert retries.renewed(RESOURCE, "new", NOW, None).journal == RESOURCE.journal
    for state in set(UnitState) - {UnitState.READY}:
        with pytest.raises(ValueError, match=f"is {state}, not ready"):
            retries.renewed(replace(before, state=state), "new", NOW, None)


def test_a_lease_is_due_at_the_end_of_its_hold_or_when_its_well_is_asked_anew() -> None:
    hold = Hold("ada", "", NOW, NOW + 2 * MINUTE)
    for renews, due in ((MINUTE, MINUTE), (3 * MINUTE, 2 * MINUTE)):
        assert (
            units.lease_due(replace(RESOURCE, hold=hold, access=replace(RESOURCE.access, renews=NOW + renews)))
            == NOW + due
        )
    assert units.lease_due(RESOURCE) is None


def test_only_a_leased_resource_is_renewed_and_only_when_it_is_due() -> None:
    assert retries.is_renewal_due(replace(RESOURCE, due=NOW), NOW, NOW)
    assert retries.is_renewal_due(replace(RESOURCE, due=NOW + retries.EARLY), NOW, NOW), (
        "messages come in whole seconds"
    )
    next_try_is_later = replace(RESOURCE, due=NOW + retries.EARLY + SECOND)
    assert not retries.is_renewal_due(next_try_is_later, NOW, NOW)
    assert not retries.is_renewal_due(replace(RESOURCE, due=NOW), NOW + SECOND, NOW)
    assert not retries.is_renewal_due(replace(RESOURCE, due=None), NOW, NOW)
    assert not retries.is_renewal_due(replace(RESOURCE, due=NOW, is_a=UnitKind.WORKER), NOW, NOW)
    assert not retries.is_renewal_due(replace(RESOURCE, due=NOW, state=UnitState.DIRTY), NOW, NOW)


def test_a_worker_lives_from_heartbeat_to_heartbeat() -> None:
    greeted = units.hello(unit(), "hash", NOW, 2 * MINUTE)
    assert (greeted.state, greeted.session.token_hash, greeted.due) == (UnitState.READY, "hash", NOW + 2 * MINUTE)
    assert greeted.creation.made == NOW, "its hello says that it was made, also before its factory does"
    assert units.hello(unit(made=NOW - MINUTE), "hash", NOW, MINUTE).creation.made == NOW - MINUTE
    assert units.renew(greeted, NOW + MINUTE, 2 * MINUTE).due == NOW + 3 * MINUTE


@pytest.mark.parametrize(("age", "is_near"), [(0, False), (29, False), (30, True), (45, True)])
def test_a_renewal_is_near_from_three_quarters_of_a_heartbeat_on(age: int, is_near: bool) -> None:
    heard = unit(state=UnitState.READY, heard=NOW, since=NOW - MINUTE)
    assert units.is_renewal_near(heard, NOW + age * SECOND, 40 * SECOND) is is_near
    unheard = unit(state=UnitState.READY, since=NOW)
    assert units.is_renewal_near(unheard, NOW + age * SECOND, 40 * SECOND) is is_near


@pytest.mark.parametrize("state", [UnitState.CREATING, UnitState.READY])
def test_the_credentials_of_a_unit_die_with_its_lease(state: UnitState) -> None:
    found = units.end_lease(unit(state=state, token_hash="hash", tries=4), "its lease ended", NOW)
    assert (found.state, found.session.token_hash, found.step.tries) == (UnitState.DIRTY, None, 0)
    assert (found.step.reason, found.due) == ("its lease ended", NOW + STEP_WITHIN)


@pytest.mark.parametrize("state", [UnitState.DIRTY, UnitState.GONE])
def test_what_is_dirty_or_gone_is_left_as_it_is(state: UnitState) -> None:
    before = unit(state=state)
    assert units.end_lease(before, "again", NOW + MINUTE) == before


@pytest.mark.parametrize("state", UnitState)
def test_a_lease_is_to_be_released_once_it_has_ended(state: UnitState) -> None:
    """Nothing is released twice, and nothing that nobody leased."""
    was = unit(state=state)
    has_ended = state in (UnitState.CLEANING, UnitState.DIRTY, UnitState.QUARANTINED)
    assert units.ends_lease(was) is has_ended
    assert not units.ends_lease(units.release_lease(was))
    assert not units.ends_lease(changed(was, job=""))


def test_a_driver_that_names_a_pause_gets_it_and_it_counts_as_no_failure() -> None:
    found = retries.retry_later(unit(tries=2), "booting", NOW, 7 * SECOND)
    assert (found.due, found.step.tries, found.step.reason) == (NOW + 7 * SECOND, 2, "booting")
    assert retries.retry_later(unit(), None, NOW, timedelta(0)).due == NOW


@pytest.mark.parametrize(
    ("passed", "after", "next_look"),
    [
        (60 * SECOND, 60 * SECOND, 120 * SECOND),  # the message itself
        (59 * SECOND, 60 * SECOND, 119 * SECOND),  # the message itself, a little early
        (30 * SECOND, 60 * SECOND, 60 * SECOND),  # another before it, after which it still comes soon enough
        (30 * SECOND, 30 * SECOND, 60 * SECOND),
        (30 * SECOND, 5 * SECOND, 35 * SECOND),  # another before it, after which it would come too late
    ],
)
def test_of_two_looks_that_are_not_over_one_is_followed_by_another(
    passed: timedelta, after: timedelta, next_look: timedelta
) -> None:
    first = retries.retry_by_message(unit(), "booting", NOW, 60 * SECOND)
    assert first.due == first.step.next_look == NOW + 60 * SECOND
    found = retries.retry_by_message(first, "still booting", NOW + passed, after)
    assert found.due == found.step.next_look == NOW + next_look
    assert found.step.reason == "still booting"


def test_a_message_that_comes_just_then_is_soon_enough() -> None:
    first = changed(unit(), next_look=NOW + BACK_OFF)
    assert replace(retries.retry_by_message(first, "down", NOW), journal=first.journal) == replace(
        first, step=replace(first.step, reason="down")
    )


def test_a_message_that_may_be_this_one_is_followed_by_another() -> None:
    first = changed(unit(), next_look=NOW + retries.EARLY)
    assert retries.retry_by_message(first, "down", NOW).step.next_look == NOW + BACK_OFF


@given(st.integers(0, 10**6))
def test_pauses_grow_up_to_a_bound_however_long_a_provider_is_down(tries: int) -> None:
    found = retries.retry_later(unit(tries=tries), "down", NOW)
    sooner = retries.retry_later(unit(tries=max(0, tries - 1)), "down", NOW)
    assert found.step.tries == tries + 1
    assert found.due
    assert sooner.due
    assert NOW + BACK_OFF <= sooner.due <= found.due <= NOW + BACK_OFF_MOST
    assert (found.due == NOW + BACK_OFF_MOST) is (tries > 5)


def test_a_unit_is_gone_only_with_the_proof_and_leaves_no_secrets() -> None:
    found = units.mark_gone(unit(state=UnitState.DIRTY, sealed="x"), PROOF, NOW + MINUTE)
    assert (found.state, found.cleaning.proof, found.due) == (UnitState.GONE, PROOF, None)
    assert (found.access.sealed, found.since) == ("", NOW + MINUTE)


@pytest.mark.parametrize(
    ("indexed", "kept"),
    [
        (None, None),
        (Look(NOW + MINUTE - SECOND), None),
        (Look(NOW + MINUTE), Look(NOW + MINUTE)),
        (Look(NOW + 2 * MINUTE), Look(NOW + 2 * MINUTE)),
    ],
)
def test_a_heartbeat_leaves_the_index_alone_while_half_a_lease_is_left(indexed: Look | None, kept: Look | None) -> None:
    """The time is still in it before the next heartbeat, so the sweep never looks at a worker that is in contact."""
    heard = units.renew(unit(state=UnitState.READY, indexed=indexed), NOW, 2 * MINUTE)
    assert (heard.due, heard.indexed) == (NOW + 2 * MINUTE, kept)


@pytest.mark.parametrize(
    ("state", "seconds", "is_lingering"),
    [
        (UnitState.CREATING, 600, False),
        (UnitState.READY, 600, False),
        (UnitState.CLEANING, 599, False),
        (UnitState.CLEANING, 600, True),
        (UnitState.DIRTY, 599, False),
        (UnitState.DIRTY, 600, True),
        (UnitState.IDLE, 600, False),
        (UnitState.QUARANTINED, 600, False),
        (UnitState.GONE, 600, False),
    ],
)
def test_a_unit_lingers_whose_lease_ended_long_ago(state: UnitState, seconds: int, is_lingering: bool) -> None:
    found = unit(state=state, since=NOW - seconds * SECOND)
    assert units.is_lingering(found, NOW) is is_lingering
