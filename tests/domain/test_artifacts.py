"""Who owns an artifact, and when it goes. Its bytes go after that, and only then. [ART-1] [ART-2]"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.domain.artifacts import artifacts
from penstock.domain.artifacts.artifacts import DOWNLOAD_WITHIN, Artifact, ArtifactState
from penstock.domain.artifacts.volumes import Inventory, artifact_of, object_name
from tests.domain.helpers import NOW, SECOND

ULID, JOB = "01KDVDNA01AAAAAAAAAAAAAAAA", "01KDVDNA00BBBBBBBBBBBBBBBB"
ID = f"{ULID}.{JOB}"
MINE = f"job#{JOB}"
HOUR = timedelta(hours=1)
BEGUN = Artifact(id=ID, path="/work/a b", size=1, sha256="00", by="ada", time=NOW, due=NOW)
THERE = artifacts.arrive(BEGUN, MINE)


def test_owners_are_a_set_in_order() -> None:
    both = artifacts.own(THERE, "cache#ada")
    assert both.owners == ("cache#ada", MINE)
    assert artifacts.own(both, MINE) == both


def test_what_has_arrived_is_owned_and_has_no_time_of_its_own() -> None:
    assert (THERE.state, THERE.owners, THERE.due) == (ArtifactState.CREATED, (MINE,), None)
    assert artifacts.arrive(THERE, MINE) == THERE


def test_bytes_that_are_being_destroyed_do_not_arrive() -> None:
    with pytest.raises(ValueError, match="are being destroyed"):
        artifacts.arrive(artifacts.destroy(BEGUN, NOW), MINE)


def test_who_lets_go_frees_no_more_than_what_it_alone_kept() -> None:
    """I10: removing an owner never frees more than what only that owner kept."""
    both = artifacts.own(THERE, "pin#ada")
    one = artifacts.disown(both, MINE, NOW)
    assert (one.owners, one.state, one.due) == (("pin#ada",), ArtifactState.CREATED, None)
    assert artifacts.disown(one, MINE, NOW) is one
    none = artifacts.disown(one, "pin#ada", NOW)
    assert (none.owners, none.state, none.due) == ((), ArtifactState.DESTROYING, NOW)


def test_who_does_not_own_it_destroys_nothing() -> None:
    assert artifacts.disown(BEGUN, MINE, NOW) is BEGUN


def test_the_bytes_of_a_caches_archive_stay_for_those_who_download_them() -> None:
    """ART-1"""
    gone = artifacts.destroy(replace(THERE, sort="cache"), NOW)
    assert (gone.due, gone.owners) == (NOW + DOWNLOAD_WITHIN, ())


@pytest.mark.parametrize(
    ("artifact", "is_abandoned"),
    [
        (BEGUN, True),
        (replace(BEGUN, due=NOW + SECOND), False),
        (replace(BEGUN, due=None), False),
        (replace(THERE, due=NOW), False),
        (artifacts.destroy(THERE, NOW), False),
    ],
)
def test_what_nobody_came_to_own_in_time_is_abandoned(artifact: Artifact, is_abandoned: bool) -> None:
    assert artifacts.is_abandoned(artifact, NOW) is is_abandoned


@pytest.mark.parametrize(
    ("left", "after"),
    [(timedelta(0), HOUR), (HOUR / 2, HOUR), (HOUR / 2 + SECOND, HOUR / 2 + SECOND), (HOUR, HOUR)],
)
def test_an_upload_that_goes_on_has_its_time_again_once_half_is_over(left: timedelta, after: timedelta) -> None:
    assert artifacts.renew(replace(BEGUN, due=NOW + left), HOUR, NOW).due == NOW + after
    assert artifacts.renew(THERE, HOUR, NOW) is THERE


@pytest.mark.parametrize(
    ("artifact", "is_output"),
    [
        (THERE, True),
        (BEGUN, False),
        (replace(THERE, sort="log"), False),
        (replace(THERE, owners=("job#J", "pin#ada")), False),
        (artifacts.own(THERE, "pin#ada"), True),
    ],
)
def test_an_output_is_what_its_own_job_owns_as_one(artifact: Artifact, is_output: bool) -> None:
    assert artifacts.is_output(artifact) is is_output


def test_only_a_named_output_without_bytes_is_begun() -> None:
    assert artifacts.is_begun(BEGUN)
    for other in (THERE, replace(BEGUN, sort="cache"), artifacts.destroy(BEGUN, NOW)):
        assert not artifacts.is_begun(other)


@pytest.mark.parametrize(
    ("artifact", "has_bytes"),
    [(THERE, True), (BEGUN, False), (replace(THERE, lost=NOW), False), (artifacts.destroy(THERE, NOW), False)],
)
def test_bytes_are_there_from_their_arrival_until_they_are_lost_or_destroyed(
    artifact: Artifact, has_bytes: bool
) -> None:
    assert artifact.has_bytes is has_bytes


def test_only_what_must_have_bytes_is_listed() -> None:
    assert THERE.place == ("artifacts", ID)
    assert (BEGUN.place, artifacts.destroy(THERE, NOW).place) == (None, None)


def test_an_id_names_the_artifact_and_its_job_and_sorts_by_age() -> None:
    assert (artifacts.id_of(JOB, ULID), BEGUN.job, artifacts.job_of(ID)) == (ID, JOB, JOB)
    assert BEGUN.key == artifacts.artifact_key(ID) == (f"job#{JOB}", f"artifact#{ULID}")


@pytest.mark.parametrize("text", ["", ULID, f"{ULID}.", f".{JOB}", f"{ULID}.x", f"x.{JOB}", f"{ID}.{ULID}", "x" * 53])
def test_what_looks_like_no_id_is_none(text: str) -> None:
    assert artifacts.is_id(ID)
    assert not artifacts.is_id(text)


def test_bytes_without_a_row_get_one_that_is_due_at_once() -> None:
    stray = artifacts.stray(ID, 5, NOW)
    assert (stray.state, stray.due, stray.size, stray.owners) == (ArtifactState.DESTROYING, NOW, 5, ())


def test_what_cannot_be_deleted_is_tried_later_with_every_try_but_never_too_late() -> None:
    row, waits = artifacts.stray(ID, 1, NOW), []
    for _ in range(40):
        row = artifacts.begin_deletion(row, NOW)
        assert row.due
        waits.append(row.due - NOW)
    first = timedelta(seconds=90)
    assert waits[:4] == [first, 2 * first, 4 * first, 8 * first]
    assert (waits[-1], row.tries) == (timedelta(hours=6), 40)


def test_what_is_lost_is_marked_since_it_was_missed_first_and_may_be_found() -> None:
    lost = artifacts.mark_lost(artifacts.mark_lost(THERE, NOW), NOW + SECOND)
    assert (lost.lost, lost.state, artifacts.mark_found(lost)) == (NOW, ArtifactState.CREATED, THERE)
    assert Inventory(began=NOW).key == ("inventory#store", "inventory")


def test_an_object_is_named_by_its_artifact_and_never_by_the_jobs_path() -> None:
    assert (object_name(ID), artifact_of(object_name(ID))) == (f"artifacts/{ID}", ID)


@pytest.mark.parametrize("name", [ID, f"outputs/{ID}", f"artifacts/{ID}/x", "artifacts/", "artifacts/x"])
def test_what_is_not_named_by_us_is_nobodys(name: str) -> None:
    assert artifact_of(name) is None


def test_an_owner_is_of_a_kind_of_the_table() -> None:
    assert artifacts.parts(artifacts.owner("job", "J#1")) == ("job", "J#1")
    with pytest.raises(KeyError, match="wheel"):
        artifacts.owner("wheel", "1")
