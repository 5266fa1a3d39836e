"""Exactly what is written, asked and told where something that is kept is not as it usually is. [ART-1] [ART-2]"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from penstock.domain import metrics
from penstock.domain.artifacts.artifacts import Artifact, ArtifactState, Pin, artifact_key
from penstock.domain.artifacts.artifacts import stray as stray_row
from penstock.domain.artifacts.content import Content
from penstock.domain.artifacts.retention import LatestFailure, Retention, retention_key
from penstock.domain.artifacts.volumes import INVENTORY_KEY, Inventory, object_name
from penstock.domain.jobs.jobs import Result
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.testing.twin import START, Twin
from penstock.usecases.artifacts import expire, explain, inventory, outputs, owners, pins
from penstock.usecases.jobs import settle
from penstock.usecases.workers import agents
from tests.usecases.exact import commits, drop, put
from tests.usecases.inventory import next_day, stray
from tests.usecases.objects import gets
from tests.usecases.outputs import X_SHA256, files
from tests.usecases.pins import artifact, pin, refused, why
from tests.usecases.races import before_the_next_commit
from tests.usecases.retained_jobs import end_of, ended, kept, of, tidy, with_a_row_of_its_own
from tests.usecases.steps import TOKEN, hello, job_of, submit, told

PAST = START - timedelta(days=9)


def sizes(twin: Twin) -> list[str]:
    """What objects are looked for from here on."""
    size, found = twin.objects.size, list[str]()

    def noting(name: str) -> int | None:
        found.append(name)
        return size(name)

    twin.objects.size = noting  # type: ignore[method-assign]
    return found


# What a job owned, and its end


@pytest.mark.parametrize("has_own_row", [False, True])
@pytest.mark.parametrize("change", ["gone", "ended", "kept for ever"])
def test_what_changes_while_a_failure_is_remembered_is_seen(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch, change: str, has_own_row: bool
) -> None:
    job = with_a_row_of_its_own(twin, ended(twin, ada)) if has_own_row else ended(twin, ada)
    twin.world.time = end_of(twin, job)

    def meanwhile(*_: object) -> None:
        row, found, ago = twin.store.get(retention_key(job), Retention), job_of(twin, job), PAST
        if row and change == "gone":
            drop(twin, row)
        elif row:
            put(twin, row, **({"ended": ago} if change == "ended" else {"until": None}))
        else:
            put(twin, found, **({"outputs_gone": ago} if change == "ended" else {"kept_until": None}))
        written.clear()

    written = commits(twin)
    monkeypatch.setattr(expire, "keep_latest_failure", meanwhile)
    expire.end_retention(twin.on, job)
    assert written == []


def test_before_its_time_nothing_is_written(twin: Twin, ada: User) -> None:
    job = ended(twin, ada, result=Result.FAILED, name="build")
    row, (latest,) = kept(twin, job), of(twin, LatestFailure)
    assert row
    put(twin, row, longer=None)
    drop(twin, latest)
    written = commits(twin)
    expire.end_retention(twin.on, job)
    assert written == []


def test_an_attempt_that_is_followed_by_another_ends_nothing(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, retries=1)
    twin.run()
    hello(twin, job)
    twin.pass_time(10**4)
    settle.settle(twin.on, job, 1, "Lost", "its worker was lost")
    assert (job_of(twin, job).is_settled, kept(twin, job)) == (False, None)


# Artifacts and their owners


def begun(twin: Twin, ada: User) -> str:
    """A job whose agent named a file, whose bytes are not there."""
    job = submit(twin, ada)
    twin.run()
    outputs.begin(twin.on, agents.authenticate(twin.on, hello(twin, job).job.id, TOKEN).job, files())
    return job


def test_what_is_being_destroyed_is_gone_for_everybody_but_the_sweep(twin: Twin, ada: User) -> None:
    """ART-1: whoever came to own it would own bytes that go."""
    job = ended(twin, ada)
    put(twin, artifact(twin), state=ArtifactState.DESTROYING)
    id = artifact(twin).id
    assert owners.arrival_change(twin.on, id, "job#J") is None
    assert (owners.find(twin.on, id), owners.existing(twin.on, [id])) == (None, [])
    assert (list(owners.made_for(twin.on, job)), explain.list_artifacts(twin.on, ada, "", 9, "")[0]) == ([], [])
    assert refused(lambda: pin(twin, ada)) == (404, "artifact-not-found")
    assert owners.release_changes(twin.on, None, f"job#{job}") == []


def test_what_has_not_arrived_or_is_lost_is_not_pinned(twin: Twin, ada: User) -> None:
    begun(twin, ada)
    assert refused(lambda: pin(twin, ada)) == (409, "no-bytes")
    put(twin, artifact(twin), state=ArtifactState.CREATED, lost=START)
    assert refused(lambda: pin(twin, ada)) == (409, "no-bytes")


def test_all_that_was_made_for_a_job_is_read_page_by_page(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = ended(twin, ada, 5)
    for most in (2, 5, 6):
        monkeypatch.setattr(limits, "OUTPUTS", most)
        assert [row.id for row in owners.made_for(twin.on, job)] == [row.id for row in of(twin, Artifact)]


def test_who_does_not_own_it_lets_go_of_nothing(twin: Twin, ada: User) -> None:
    ended(twin, ada)
    assert owners.release_changes(twin.on, artifact(twin), "job#J") == []


def test_what_is_being_destroyed_is_not_given_more_time(twin: Twin, ada: User) -> None:
    ended(twin, ada)
    put(twin, artifact(twin), state=ArtifactState.DESTROYING, owners=(), due=START)
    written = commits(twin)
    owners.delete_unowned(twin.on, artifact(twin).id)
    owners.release_output(twin.on, artifact(twin).id, "job#J")
    assert written == []


def test_what_nobody_came_to_own_begins_to_be_destroyed_at_once(twin: Twin, ada: User) -> None:
    begun(twin, ada)
    twin.pass_time(13 * 3600)
    owners.delete_unowned(twin.on, artifact(twin).id)
    assert (artifact(twin).state, artifact(twin).due) == (ArtifactState.DESTROYING, twin.world.now())


def test_bytes_are_deleted_when_it_is_time_and_not_again_before(twin: Twin, ada: User) -> None:
    ended(twin, ada)
    put(twin, artifact(twin), state=ArtifactState.DESTROYING, due=None)
    tried = list[str]()
    twin.objects.delete = tried.append  # type: ignore[method-assign]
    for _ in range(2):
        owners.delete_bytes(twin.on, artifact(twin).id)
    assert (len(tried), artifact(twin).tries) == (1, 1)


def test_a_row_that_another_process_deleted_is_not_deleted_again(twin: Twin, ada: User) -> None:
    ended(twin, ada)
    row = artifact(twin)
    put(twin, row, state=ArtifactState.DESTROYING, due=START)

    def delete(name: str) -> None:
        twin.objects.objects.pop(name)
        drop(twin, row)

    twin.objects.delete = delete  # type: ignore[method-assign]
    owners.delete_bytes(twin.on, row.id)
    assert of(twin, Artifact) == []


# Pins


def test_what_is_no_id_is_not_looked_up(twin: Twin, ada: User) -> None:
    asked = gets(twin, Artifact)
    assert refused(lambda: pins.find(twin.on, ada, "x" * 5000))[0] == 404
    assert asked == []


def test_a_second_pin_leaves_the_artifact_as_it_is(twin: Twin, ada: User) -> None:
    ended(twin, ada)
    pin(twin, ada)
    before = artifact(twin).version
    pin(twin, ada, 60)
    assert artifact(twin).version == before


def test_as_many_may_own_an_artifact_as_the_limit_says(twin: Twin, ada: User) -> None:
    ended(twin, ada)
    put(twin, artifact(twin), owners=tuple(f"job#{number:03}" for number in range(limits.OWNERS - 1)))
    pin(twin, ada)
    assert len(artifact(twin).owners) == limits.OWNERS


def test_only_pins_are_told_as_pins(twin: Twin, ada: User) -> None:
    ended(twin, ada)
    pin(twin, ada)
    assert list(pins.pins_of(twin.on, artifact(twin))) == ["pin#ada"]
    assert len(why(twin).keepers) == 2


def test_a_pin_runs_out_once_in_its_time_and_also_of_nothing(twin: Twin, ada: User) -> None:
    ended(twin, ada)
    pin(twin, ada, 60)
    id = artifact(twin).id
    pins.expire(twin.on, id, "ada")
    assert len(of(twin, Pin)) == 1
    drop(twin, artifact(twin))
    twin.pass_time(60)
    for _ in range(2):
        pins.expire(twin.on, id, "ada")
    assert of(twin, Pin) == []


# The store beside the rows


def test_nothing_is_asked_of_what_is_in_its_place(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page costs two lists, and no look at one object or one row, wherever the pages of the two end."""
    monkeypatch.setattr(inventory, "PAGE", 3)
    strays = [stray(twin), stray(twin)]
    ended(twin, ada, 6)
    rows = of(twin, Artifact)
    for row in rows:
        twin.objects.times[object_name(row.id)] = PAST
    del twin.objects.objects[object_name(rows[3].id)]
    asked, looked = sizes(twin), gets(twin, Artifact)
    for _ in range(5):
        inventory.compare_next(twin.on)
    assert asked == [object_name(rows[3].id)]
    assert looked == [artifact_key(id) for id in sorted(strays)]


def test_what_is_not_named_by_us_gets_no_row(twin: Twin) -> None:
    twin.objects.objects["artifacts/x"] = b""
    twin.objects.times["artifacts/x"] = PAST
    tidy(twin)
    assert of(twin, Artifact) == []


def test_what_gets_its_row_meanwhile_is_no_stray(twin: Twin) -> None:
    id = stray(twin)

    def meanwhile(artifact: str, size: int, now: Any) -> Artifact:
        made = stray_row(artifact, size, now)
        before_the_next_commit(twin, lambda: twin.store.rows.update({artifact_key(id): made}))
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inventory.artifacts, "stray", meanwhile)
        inventory.compare_next(twin.on)
    assert twin.metrics.of(metrics.STRAY_OBJECTS) == []


def test_a_row_that_the_listing_does_not_have_yet_is_not_made_again(twin: Twin, ada: User) -> None:
    ended(twin, ada)
    twin.objects.times[object_name(artifact(twin).id)] = PAST
    twin.store.listed = lambda *given, **more: []  # type: ignore[method-assign, assignment]
    written = commits(twin)
    inventory.compare_next(twin.on)
    assert len(written) == 1


def test_what_is_found_again_is_not_told_as_lost(twin: Twin, ada: User) -> None:
    ended(twin, ada)
    put(twin, artifact(twin), lost=twin.world.now())
    inventory.compare_next(twin.on)
    assert (artifact(twin).lost, twin.metrics.of(metrics.BYTES_LOST)) == (None, [])


def test_one_of_two_concurrent_inventories_reports(twin: Twin, ada: User) -> None:
    ended(twin, ada)
    twin.objects.objects.clear()
    written = commits(twin)
    before_the_next_commit(twin, lambda: inventory.compare_next(twin.on))
    inventory.compare_next(twin.on)
    assert [[type(change).__name__ for change in changes] for changes in written].count(["Replace"]) == 1
    assert twin.metrics.of(metrics.BYTES_LOST) == [1]


def test_only_those_are_told_whose_it_is(twin: Twin, ada: User) -> None:
    """An owner whose row is gone is told nothing, and neither is a job after which somebody is called."""
    other = ended(twin, ada, 0)
    job = ended(twin, ada)
    put(twin, artifact(twin), owners=("job#gone", f"job#{job}", f"pin#{other}"))
    twin.objects.objects.clear()
    inventory.compare_next(twin.on)
    assert any("is lost" in line for line in told(twin, job))
    assert not any("is lost" in line for line in told(twin, other))


def test_lost_bytes_of_a_job_that_is_gone_are_counted(twin: Twin, ada: User) -> None:
    drop(twin, job_of(twin, ended(twin, ada)))
    twin.objects.objects.clear()
    inventory.compare_next(twin.on)
    assert twin.metrics.of(metrics.BYTES_LOST) == [1]
    assert sum(twin.metrics.of(metrics.FAILED_NUDGES)) == 0


def test_a_comparison_began_with_its_first_part(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "PAGE", 3)
    ended(twin, ada, 5)
    begun = list[object]()
    for _ in range(2):
        at = twin.world.now()
        for _ in range(2):
            inventory.compare_next(twin.on)
            twin.pass_time(60)
        row = twin.store.get(INVENTORY_KEY, Inventory)
        assert row
        begun.append((row.began == at, row.after))
        next_day(twin)
    assert begun == [(True, ""), (True, "")]


def test_what_goes_while_its_bytes_are_looked_for_is_not_found(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    who = agents.authenticate(twin.on, hello(twin, job).job.id, TOKEN)
    (upload,) = outputs.begin(twin.on, who.job, files()).uploads

    def content(name: str) -> Content:
        for row in of(twin, Artifact):
            drop(twin, row)
        return Content(1, X_SHA256)

    twin.objects.content = content  # type: ignore[method-assign]
    assert refused(lambda: outputs.commit(twin.on, who.job, [upload.id])) == (404, "output-not-found")
