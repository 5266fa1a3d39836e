"""What users pin stays, what they take back goes, and it is said why. [ART-1] [ART-2] [SEC-2]"""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.domain.artifacts.artifacts import Artifact, Pin
from penstock.domain.artifacts.volumes import object_name
from penstock.domain.jobs.jobs import Result
from penstock.domain.users.audit import Wanted
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.testing.twin import START, Twin
from penstock.usecases.artifacts import explain, outputs, pins
from penstock.usecases.jobs import prerequisites
from penstock.usecases.users import audit
from tests.usecases.exact import put, running
from tests.usecases.outputs import files
from tests.usecases.pins import artifact, at_the_end, pin, refused, why
from tests.usecases.races import before_the_next_commit
from tests.usecases.retained_jobs import end_of, ended, nothing_is_left, of, send, tidy
from tests.usecases.steps import finish, hello, job_of, submit

EVE = User(name="eve", created=START, version=1)


def test_what_is_pinned_outlives_its_job_until_it_is_taken_back(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    pin(twin, ada)
    at_the_end(twin, job)
    assert (artifact(twin).owners, len(twin.objects.objects)) == (("pin#ada",), 1)
    assert explain.sign(twin.on, artifact(twin), 60).size == 1
    pins.unpin(twin.on, ada, artifact(twin).id, "ada")
    tidy(twin)
    assert nothing_is_left(twin)
    assert of(twin, Pin) == []


def test_a_pin_runs_out_when_it_was_said_to_and_not_before(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    at = end_of(twin, job)
    pin(twin, ada, int((at - twin.world.now()).total_seconds()) + 60)
    until = of(twin, Pin)[0].until
    at_the_end(twin, job)
    twin.world.time = until - timedelta(seconds=1)
    tidy(twin, 2)
    assert artifact(twin).owners == ("pin#ada",)
    twin.pass_time(1)
    tidy(twin, 2)
    assert nothing_is_left(twin)


def test_a_pin_that_runs_out_before_its_job_lets_go_of_nothing_else(twin: Twin, ada: User) -> None:
    """ART-1, I10"""
    ended(twin, ada)
    pin(twin, ada, 60)
    twin.pass_time(60)
    tidy(twin, 2)
    assert (len(artifact(twin).owners), of(twin, Pin), len(twin.objects.objects)) == (1, [], 1)


def test_a_second_pin_takes_the_first_ones_place(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    pin(twin, ada, 60)
    pin(twin, ada, None, "for ever")
    (row,) = of(twin, Pin)
    assert (row.until, row.reason) == (None, "for ever")
    at_the_end(twin, job)
    assert artifact(twin).owners == ("pin#ada",)


def test_who_pins_just_before_it_goes_keeps_it(twin: Twin, ada: User) -> None:
    """ART-1: the sweep read the artifact before the pin was written."""
    job = ended(twin, ada)
    twin.world.time = end_of(twin, job)
    tidy(twin)
    before_the_next_commit(twin, lambda: pin(twin, ada))
    tidy(twin, 2)
    assert (artifact(twin).owners, len(twin.objects.objects)) == (("pin#ada",), 1)


def test_who_pins_just_after_it_went_is_told_so(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    id = artifact(twin).id
    twin.world.time = end_of(twin, job)
    tidy(twin)
    before_the_next_commit(twin, lambda: tidy(twin))
    assert refused(lambda: pins.pin(twin.on, ada, id, "why", None)) == (404, "artifact-not-found")
    tidy(twin)
    assert (of(twin, Pin), nothing_is_left(twin)) == ([], True)


def test_a_pin_that_is_renewed_just_before_it_runs_out_keeps_it(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    pin(twin, ada, 60)
    twin.pass_time(60)
    before_the_next_commit(twin, lambda: pin(twin, ada))
    pins.expire(twin.on, artifact(twin).id, "ada")
    at_the_end(twin, job)
    assert artifact(twin).owners == ("pin#ada",)


def test_another_users_artifact_is_as_good_as_none(twin: Twin, ada: User) -> None:
    """SEC-2"""
    ended(twin, ada)
    id = artifact(twin).id
    assert refused(lambda: pins.find(twin.on, EVE, id))[0] == 404
    assert refused(lambda: pin(twin, EVE))[0] == 404
    assert refused(lambda: pins.unpin(twin.on, EVE, id, "eve"))[0] == 404
    assert refused(lambda: pins.unpin(twin.on, EVE, id, "ada"))[0] == 403
    assert refused(lambda: explain.list_artifacts(twin.on, EVE, "ada", 9, ""))[0] == 403
    assert explain.list_artifacts(twin.on, EVE, "", 9, "") == ([], None)
    assert refused(lambda: pins.find(twin.on, ada, "no id"))[0] == 404


def test_operators_pin_and_take_back_what_is_others_and_that_is_noted(twin: Twin, ada: User, root: User) -> None:
    ended(twin, ada)
    pin(twin, ada)
    pin(twin, root)
    assert artifact(twin).owners[1:] == ("pin#ada", "pin#root")
    pins.unpin(twin.on, root, artifact(twin).id, "ada")
    noted = [(entry.by, entry.did) for entry in audit.list_entries(twin.on, Wanted(), 9, "")[0]][:2]
    assert (artifact(twin).owners[1:], noted) == (("pin#root",), [("root", "unpin"), ("root", "pin")])


def test_what_cannot_be_pinned(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    outputs.begin(twin.on, job_of(twin, job), files())
    assert refused(lambda: pin(twin, ada)) == (409, "no-bytes")
    assert refused(lambda: explain.sign(twin.on, artifact(twin), 60)) == (409, "no-bytes")
    assert refused(lambda: pin(twin, ada, reason=" "))[0] == 400
    assert refused(lambda: pins.unpin(twin.on, ada, artifact(twin).id, "ada")) == (409, "not-pinned")


def test_an_artifact_has_no_more_owners_than_its_row_has_room_for(twin: Twin, ada: User) -> None:
    ended(twin, ada)
    put(twin, artifact(twin), owners=tuple(f"pin#u{number:03}" for number in range(limits.OWNERS)))
    assert refused(lambda: pin(twin, ada)) == (409, "too-many-owners")


# Why it is kept


def test_what_nobody_owns_yet_is_said_to_go(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    outputs.begin(twin.on, job_of(twin, job), files())
    assert why(twin).summary == "nobody owns it: it goes at 2026-01-01 12:00 UTC; its bytes have not arrived"
    assert why(twin).until == artifact(twin).due


def test_the_end_of_a_running_jobs_ownership_is_unknown(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    send(twin, job)
    found = why(twin)
    assert (found.until, found.summary) == (None, f"nobody knows until when: job {job} owns it, and is running")
    assert "the job's end" in found.keepers[0].frees


def test_an_ended_job_keeps_it_by_its_outcome(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    found = why(twin)
    assert found.until == end_of(twin, job)
    assert found.keepers[0].why == f"job {job} owns it, and succeeded"
    assert found.summary == f"it goes at {found.until:%Y-%m-%d %H:%M} UTC, when job#{job} lets it go"


def test_a_latest_failure_says_so(twin: Twin, ada: User) -> None:
    ended(twin, ada, result=Result.FAILED, name="build")
    assert why(twin).keepers[0].why.endswith("and failed: the latest failure of ada's jobs called build")
    assert "a later failure of that name" in why(twin).keepers[0].frees


def test_dependents_are_named_but_not_all_of_them(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    for number in range(7):
        assert twin.store.commit(prerequisites.pin(twin.on, job, f"D{number}"))
    found = why(twin)
    assert found.until is None
    assert found.keepers[0].why.endswith("depend on that: D0, D1, D2, D3, D4 and 2 more")


def test_what_is_being_taken_apart_says_so(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    twin.world.time = end_of(twin, job)
    tidy(twin)
    assert why(twin).keepers[0].why == f"what job {job} owned is being taken apart"


def test_the_last_of_its_owners_says_when_it_goes(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    pin(twin, ada, 10**7, "the trace")
    found = why(twin)
    assert found.until == of(twin, Pin)[0].until
    assert "when pin#ada lets it go" in found.summary
    assert [keeper.owner for keeper in found.keepers] == [f"job#{job}", "pin#ada"]
    pin(twin, ada, None, "the trace")
    assert (why(twin).until, why(twin).summary) == (None, "nobody knows until when: ada pinned it: the trace")


def test_rows_that_are_not_there_are_said_not_to_be(twin: Twin, ada: User) -> None:
    ended(twin, ada)
    put(twin, artifact(twin), owners=("job#J", "pin#bob"))
    first, second = why(twin).keepers
    assert ("no row says" in first.why, "no row says" in second.why) == (True, True)


def test_lost_bytes_are_told(twin: Twin, ada: User) -> None:
    ended(twin, ada)
    twin.objects.objects.clear()
    tidy(twin)
    assert "its bytes are lost" in why(twin).summary
    assert refused(lambda: pin(twin, ada)) == (409, "no-bytes")


def test_lists_come_in_pages(twin: Twin, ada: User) -> None:
    ended(twin, ada, 5)
    first, after = explain.list_artifacts(twin.on, ada, "", 3, "")
    assert after
    rest, end = explain.list_artifacts(twin.on, ada, "", 3, after)
    names = [one.artifact.id for one in first + rest]
    assert (names, end) == (sorted(names, reverse=True), None)
    assert len(names) == 5


def pages(twin: Twin, user: User, limit: int, page: str = "") -> list[list[str]]:
    """The artifacts of all pages of a list, by their jobs."""
    found, after = explain.list_artifacts(twin.on, user, "", limit, page)
    told = [[one.artifact.job for one in found]]
    return told + (pages(twin, user, limit, after) if after else [])


def test_a_list_goes_through_the_jobs_from_the_newest_on(twin: Twin, ada: User, root: User) -> None:
    first, _, third = ended(twin, ada, 3), ended(twin, root, 2), ended(twin, ada, 1)
    assert pages(twin, ada, 2) == [[third, first], [first, first], []]
    assert pages(twin, ada, 9) == [[third, first, first, first]]


def test_a_page_looks_at_so_many_jobs_and_the_next_goes_on_behind_them(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explain, "JOBS_AT_ONCE", 1)
    first, second = ended(twin, ada, 1), ended(twin, ada, 0)
    assert pages(twin, ada, 9) == [[], [first], []]
    assert pages(twin, ada, 9, f".{second}") == [[first], []]


def test_a_page_shows_nothing_of_anothers_job(twin: Twin, ada: User, root: User) -> None:
    """SEC-2: a page is what a client says it is."""
    job = ended(twin, root, 2)
    last = f"7{'Z' * 25}.{job}"
    assert [len(page) for page in pages(twin, root, 9, last)] == [2]
    assert pages(twin, ada, 9, last) == [[]]


def test_who_asks_for_what_is_gone_is_told_since_when(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    name = artifact(twin).id
    at_the_end(twin, job)
    assert refused(lambda: outputs.sign(twin.on, job_of(twin, job), name, 60)) == (410, "outputs-gone")


# What would go


def going(twin: Twin, within: int = 0) -> list[str]:
    return [one.id for one in explain.dry_run(twin.on, within).going]


def test_a_dry_run_says_what_the_sweep_then_does(twin: Twin, ada: User) -> None:
    """And writes nothing."""
    first, second = ended(twin, ada, 2), ended(twin, ada, result=Result.FAILED)
    pinned = next(row for row in of(twin, Artifact) if row.job == first)
    pins.pin(twin.on, ada, pinned.id, "why", None)
    within = int((end_of(twin, first) - twin.world.now()).total_seconds()) + 1
    rows = dict(twin.store.rows)
    foreseen, later = set(going(twin, within)), set(going(twin, 10**8))
    assert going(twin) == []
    assert dict(twin.store.rows) == rows
    everything = {row.id for row in of(twin, Artifact)}
    assert later == everything - {pinned.id}
    twin.pass_time(within)
    tidy(twin, 4)
    left = {row.id for row in of(twin, Artifact)}
    assert everything - left == foreseen
    assert left == {pinned.id} | {row.id for row in of(twin, Artifact) if row.job == second}


def test_a_dry_run_tells_once_what_has_two_owners_and_with_the_last(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    pin(twin, ada, 60)
    assert going(twin, 61) == []
    assert going(twin, 10**8) == [artifact(twin).id]
    pin(twin, ada, 10**7)
    assert going(twin, 10**8) == [artifact(twin).id]
    (one,) = explain.dry_run(twin.on, 10**8).going
    assert (one.at, one.why) == (of(twin, Pin)[0].until, "ada pinned it: to look at it")
    assert prerequisites.pin(twin.on, job, "D")
    assert twin.store.commit(prerequisites.pin(twin.on, job, "D"))
    assert going(twin, 10**8) == []


def test_a_dry_run_knows_uploads_and_bytes_that_are_being_destroyed(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    outputs.begin(twin.on, job_of(twin, job), files())
    id = artifact(twin).id
    assert (going(twin), going(twin, 13 * 3600)) == ([], [id])
    twin.objects.objects[object_name(id)] = b"x"
    twin.objects.delete = lambda name: None  # type: ignore[method-assign]
    twin.pass_time(13 * 3600)
    tidy(twin)
    (one,) = explain.dry_run(twin.on, 3600).going
    assert (one.id, one.why, artifact(twin).tries) == (id, "nobody owns it; tried 1 times", 1)


def test_a_dry_run_is_bounded(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explain, "DRY_RUN_ROWS", 2)
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    send(twin, job, 3)
    finish(twin, job)
    found = explain.dry_run(twin.on, 10**8)
    assert (len(found.going), found.is_whole) == (2, False)
