"""The store beside the rows, both ways. [ART-1] [ART-2]"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from penstock.domain import metrics
from penstock.domain.artifacts.artifacts import Artifact, ArtifactState
from penstock.domain.artifacts.volumes import INVENTORY_KEY, Inventory, object_name
from penstock.domain.users.users import User
from penstock.kernel.rows import Change, Create
from penstock.ports import Stored
from penstock.testing.twin import START, Twin
from penstock.usecases.artifacts import expire, inventory
from tests.usecases.exact import commits
from tests.usecases.inventory import next_day, stray
from tests.usecases.races import before_the_next_commit
from tests.usecases.retained_jobs import ended, of, tidy
from tests.usecases.steps import told


def test_bytes_that_no_row_knows_of_are_destroyed_after_a_while(twin: Twin) -> None:
    """ART-2"""
    old, new = stray(twin), stray(twin, 23)
    tidy(twin)
    (row,) = of(twin, Artifact)
    assert (row.id, row.state, row.size) == (old, ArtifactState.DESTROYING, 5)
    assert twin.metrics.of(metrics.STRAY_OBJECTS) == [1]
    tidy(twin)
    assert (list(twin.objects.objects), of(twin, Artifact)) == ([object_name(new)], [])
    next_day(twin)
    tidy(twin, 2)
    assert twin.objects.objects == {}


def test_what_is_not_named_by_us_is_not_touched(twin: Twin, caplog: pytest.LogCaptureFixture) -> None:
    """Operators get a warning about it, and nothing counts as failed."""
    for name in ("artifacts/x", "outputs/1", f"artifacts/{'0' * 26}/x"):
        twin.objects.objects[name] = b""
        twin.objects.times[name] = START - timedelta(days=9)
    tidy(twin, 2)
    assert len(twin.objects.objects) == 3
    assert of(twin, Artifact) == []
    assert caplog.text.count("an object in the store has no name of ours") == 2
    assert sum(twin.metrics.of(metrics.FAILED_NUDGES)) == 0


def test_what_has_a_row_is_no_stray_also_when_the_listing_lags(twin: Twin, ada: User) -> None:
    """ART-1"""
    ended(twin, ada)
    for row in of(twin, Artifact):
        twin.objects.times[object_name(row.id)] = START - timedelta(days=9)
    twin.store.listed = lambda *given, **more: []  # type: ignore[method-assign, assignment]
    inventory.compare_next(twin.on)
    (row,) = of(twin, Artifact)
    assert (row.state, row.lost) == (ArtifactState.CREATED, None)


def test_missing_objects_are_reported_and_nothing_is_deleted(twin: Twin, ada: User) -> None:
    """ART-1: of what somebody owns nothing goes, not even the row of what is not there."""
    job = ended(twin, ada, 2)
    first, second = of(twin, Artifact)
    missing = twin.objects.objects.pop(object_name(first.id))
    tidy(twin)
    rows = {row.id: row for row in of(twin, Artifact)}
    assert (rows[first.id].lost, rows[second.id].lost) == (twin.world.now(), None)
    assert rows[first.id].state is ArtifactState.CREATED
    assert twin.metrics.of(metrics.BYTES_LOST) == [1]
    assert "/work/0 is lost: its bytes are no longer in the store" in told(twin, job)
    next_day(twin)
    tidy(twin)
    assert twin.metrics.of(metrics.BYTES_LOST) == [1]
    twin.objects.objects[object_name(first.id)] = missing
    next_day(twin)
    tidy(twin)
    assert all(row.lost is None for row in of(twin, Artifact))


def test_what_the_list_leaves_out_is_looked_for_before_it_is_lost(twin: Twin, ada: User) -> None:
    ended(twin, ada)
    twin.objects.list = lambda *given: []  # type: ignore[method-assign, assignment]
    written = commits(twin)
    inventory.compare_next(twin.on)
    assert of(twin, Artifact)[0].lost is None
    assert len(written) == 1


def test_an_artifact_that_goes_meanwhile_is_not_lost(twin: Twin, ada: User) -> None:
    ended(twin, ada)
    (row,) = of(twin, Artifact)
    twin.objects.objects.clear()
    commit = twin.store.commit

    def racing(changes: Sequence[object]) -> bool:
        twin.store.commit = commit  # type: ignore[method-assign]
        before_the_next_commit(twin, lambda: twin.store.rows.pop(row.key))
        return commit(changes)  # type: ignore[arg-type]

    twin.store.commit = racing  # type: ignore[method-assign, assignment]
    inventory.compare_next(twin.on)
    assert twin.metrics.of(metrics.BYTES_LOST) == []


def test_a_failed_list_of_objects_changes_nothing(twin: Twin, ada: User) -> None:
    ended(twin, ada)
    stray(twin)
    before = twin.store.rows.copy()

    def fails(prefix: str, after: str, limit: int) -> Sequence[Stored]:
        raise OSError("503")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin.objects, "list", fails)
        expire.expire_overdue(twin.on)
        assert dict(twin.store.rows) == dict(before)
        assert twin.metrics.of(metrics.STORE_UNLISTED) == [1]
    tidy(twin)
    assert twin.store.get(INVENTORY_KEY, Inventory)


def test_the_inventory_runs_once_a_day_and_in_parts(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much there is, one sweep compares a bounded part; the next goes on behind it."""
    monkeypatch.setattr(inventory, "PAGE", 3)
    ended(twin, ada, 5)
    strays = [stray(twin) for _ in range(4)]
    asked, listing = [], twin.objects.list

    def noting(prefix: str, after: str, limit: int) -> Sequence[Stored]:
        asked.append(after)
        return listing(prefix, after, limit)

    twin.objects.list = noting  # type: ignore[method-assign]
    for _ in range(8):
        inventory.compare_next(twin.on)
    assert asked[0] == ""
    assert asked == sorted(set(asked))
    assert 3 <= len(asked) <= 5
    doomed = {row.id for row in of(twin, Artifact) if row.state is ArtifactState.DESTROYING}
    assert doomed == set(strays)
    row = twin.store.get(INVENTORY_KEY, Inventory)
    assert row
    assert row.after == ""
    next_day(twin)
    inventory.compare_next(twin.on)
    assert asked[-1] == ""


def test_rows_without_any_object_are_compared_in_parts_too(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inventory, "PAGE", 2)
    ended(twin, ada, 5)
    twin.objects.objects.clear()
    inventory.compare_next(twin.on)
    assert sum(row.lost is not None for row in of(twin, Artifact)) == 2
    for _ in range(3):
        inventory.compare_next(twin.on)
    assert all(row.lost for row in of(twin, Artifact))


def test_one_of_two_concurrent_inventories_acts(twin: Twin) -> None:
    stray(twin)
    before_the_next_commit(twin, lambda: inventory.compare_next(twin.on))
    written = commits(twin)
    inventory.compare_next(twin.on)
    assert len(of(twin, Artifact)) == 1
    assert len(written) <= 3


def test_objects_that_cannot_be_compared_are_counted(twin: Twin) -> None:
    stray(twin)

    def breaks(changes: Sequence[Change]) -> bool:
        if any(isinstance(change, Create) and isinstance(change.row, Artifact) for change in changes):
            raise OSError("the table is away")
        return commit(changes)

    commit, twin.store.commit = twin.store.commit, breaks  # type: ignore[method-assign]
    inventory.compare_next(twin.on)
    assert twin.metrics.of(metrics.FAILED_NUDGES) == [1]
