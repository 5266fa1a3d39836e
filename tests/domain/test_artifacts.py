"""Who owns an artifact, and when it goes. Its volumes go after it, and only then. [ART-1] [ART-2]"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.domain.artifacts import artifacts, volumes
from penstock.domain.artifacts.artifacts import Artifact
from penstock.domain.artifacts.volumes import Inventory, Volume, VolumeState, artifact_of, object_name
from tests.domain.helpers import NOW, SECOND

ID = "01KDVDNA01AAAAAAAAAAAAAAAA"
FREE = Artifact(id=ID, path="/work/a b", size=1, sha256="00", by="ada", time=NOW, due=NOW)
THERE = Volume(artifact=ID, state=VolumeState.CREATED, since=NOW)


def test_owners_are_a_set_in_order() -> None:
    both = artifacts.own(artifacts.own(FREE, "pin#ada"), "job#J")
    assert (both.owners, both.due) == (("job#J", "pin#ada"), None)
    assert artifacts.own(both, "job#J") == both


def test_who_lets_go_frees_no_more_than_what_it_alone_kept() -> None:
    """I10: removing an owner never frees more than what only that owner kept."""
    both = replace(FREE, owners=("job#J", "pin#ada"), due=None)
    one = artifacts.disown(both, "job#J")
    assert one
    assert one.owners == ("pin#ada",)
    assert artifacts.disown(one, "job#J") == one
    assert artifacts.disown(one, "pin#ada") is None


@pytest.mark.parametrize(
    ("artifact", "is_forgotten"),
    [
        (FREE, True),
        (replace(FREE, due=NOW + SECOND), False),
        (replace(FREE, due=None), False),
        (replace(FREE, owners=("job#J",)), False),
    ],
)
def test_what_nobody_came_to_own_in_time_is_forgotten(artifact: Artifact, is_forgotten: bool) -> None:
    assert artifacts.is_abandoned(artifact, NOW) is is_forgotten


def test_bytes_arrive_once_and_not_when_they_are_being_destroyed() -> None:
    creating = replace(THERE, state=VolumeState.CREATING, due=NOW)
    there = volumes.arrive(creating, NOW + SECOND)
    assert (there.state, there.due, there.since) == (VolumeState.CREATED, None, NOW + SECOND)
    assert volumes.arrive(there, NOW) is there
    with pytest.raises(ValueError, match="are being destroyed"):
        volumes.arrive(volumes.destroy(there, NOW), NOW)


def test_what_is_doomed_is_due_at_once_and_stays_doomed() -> None:
    doomed = volumes.destroy(THERE, NOW + SECOND)
    assert (doomed.state, doomed.due, doomed.since) == (VolumeState.DESTROYING, NOW + SECOND, NOW + SECOND)
    assert volumes.destroy(doomed, NOW + 2 * SECOND) is doomed


def test_what_cannot_be_deleted_is_tried_later_with_every_try_but_never_too_late() -> None:
    volume, waits = volumes.stray(ID, NOW), []
    for _ in range(40):
        volume = volumes.begin_deletion(volume, NOW)
        assert volume.due
        waits.append(volume.due - NOW)
    minute = timedelta(minutes=1)
    assert waits[:4] == [minute, 2 * minute, 4 * minute, 8 * minute]
    assert (waits[-1], volume.tries) == (timedelta(hours=6), 40)


def test_what_is_lost_is_marked_since_it_was_missed_first_and_may_be_found() -> None:
    lost = volumes.mark_lost(volumes.mark_lost(THERE, NOW), NOW + SECOND)
    assert (lost.lost, lost.state, volumes.mark_found(lost)) == (NOW, VolumeState.CREATED, THERE)
    assert Inventory(began=NOW).key == ("inventory#store", "inventory")


def test_an_object_is_named_by_its_artifact_and_never_by_the_jobs_path() -> None:
    assert (THERE.object_name, artifact_of(THERE.object_name)) == (f"artifacts/{ID}", ID)
    assert object_name(ID) == THERE.object_name


@pytest.mark.parametrize("name", [ID, f"outputs/{ID}", f"artifacts/{ID}/x", "artifacts/", "artifacts/x"])
def test_what_is_not_named_by_us_is_nobodys(name: str) -> None:
    assert artifact_of(name) is None


def test_an_owner_is_of_a_kind_of_the_table() -> None:
    assert artifacts.parts(artifacts.owner("job", "J#1")) == ("job", "J#1")
    with pytest.raises(KeyError, match="wheel"):
        artifacts.owner("wheel", "1")
