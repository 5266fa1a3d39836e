"""Each row of each commit that makes, keeps or ends what is kept is guarded by a condition of its own. [ART-1] [ART-2]

Before such a commit, once for each of its rows, the same commit is tried while somebody else has written that one row
since it was read, or it is there already: it must not hold. Then all is put back, and the story goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from penstock.domain.artifacts.artifacts import Artifact
from penstock.domain.artifacts.inputs import Input
from penstock.domain.artifacts.volumes import object_name
from penstock.domain.commands import NewInput
from penstock.domain.jobs.jobs import Result
from penstock.domain.users.users import User
from penstock.kernel.rows import Change, Create, key_of
from penstock.testing.store import with_version
from penstock.testing.twin import Twin
from penstock.usecases.artifacts import inputs, inventory, outputs, pins
from penstock.usecases.jobs import store
from penstock.usecases.jobs.flow import fenced
from penstock.usecases.jobs.store import NewValue
from penstock.usecases.workers import agents
from tests.usecases.dependencies import depends
from tests.usecases.exact import put
from tests.usecases.inventory import stray
from tests.usecases.outputs import X_SHA256, files
from tests.usecases.retained_jobs import end_of, ended, nothing_is_left, of, send, tidy
from tests.usecases.steps import TOKEN, finish, hello, job_of, submit
from tests.usecases.watched import _kind


class Guard:
    """Tries each kind of commit with each of its rows moved."""

    def __init__(self, twin: Twin) -> None:
        self.twin, self.commit = twin, twin.store.commit
        self.done, self.wrong = set[Any](), list[str]()
        twin.store.commit = self.guard  # type: ignore[method-assign]

    def guard(self, changes: Sequence[Change]) -> bool:
        kind = tuple(_kind(each) for each in changes)
        for at, change in enumerate(changes):
            if (kind, at) not in self.done:
                self.done.add((kind, at))
                self.moved(change, changes)
        return self.commit(changes)

    def moved(self, change: Change, changes: Sequence[Change]) -> None:
        rows, before = self.twin.store.rows, dict(self.twin.store.rows)
        was = change.row if isinstance(change, Create) else rows[key_of(change)]
        rows[was.key] = with_version(was, was.version + 1, was.indexed)
        if self.commit(changes):
            self.wrong.append(f"{change} held although its row had moved")
        rows.clear()
        rows.update(before)


def kept_and_gone(twin: Twin, ada: User) -> None:
    """Two jobs' outputs, a pin that is renewed, one that is given back and one that runs out; then their ends."""
    job, failed = ended(twin, ada, 2), ended(twin, ada, result=Result.FAILED, name="build")
    first, second, third = (row.id for row in of(twin, Artifact))
    for id, seconds in ((first, None), (first, 60), (second, None), (third, 60)):
        pins.pin(twin.on, ada, id, "to look", seconds)
    pins.unpin(twin.on, ada, second, "ada")
    twin.pass_time(60)
    tidy(twin)
    pins.pin(twin.on, ada, first, "to the end", 10**9)
    for one in (job, failed):
        twin.world.time = max(end_of(twin, one), twin.world.now())
        tidy(twin, 4)
    pins.unpin(twin.on, ada, first, "ada")


def forgotten(twin: Twin, ada: User) -> None:
    """An upload that nobody ends, one that arrives late, and bytes that nobody knows."""
    job = submit(twin, ada)
    twin.run()
    who = agents.authenticate(twin.on, hello(twin, job).job.id, TOKEN)
    outputs.begin(twin.on, who.job, files())
    (late,) = send(twin, job)
    put(twin, next(row for row in of(twin, Artifact) if row.id == late), lost=twin.world.now())
    finish(twin, job)
    stray(twin)
    twin.pass_time(13 * 3600)
    tidy(twin, 3)
    twin.objects.objects.pop(object_name(late), None)
    inventory.compare_next(twin.on)
    twin.pass_time(24 * 3600)
    tidy(twin)
    twin.world.time = max(end_of(twin, job), twin.world.now())


def sent(twin: Twin, ada: User) -> None:
    """Jobs that are sent files, one of which repeats the other; and one that depends on what the first keeps."""
    job, again = (submit(twin, ada, inputs=["a"]) for _ in range(2))
    inputs.begin(twin.on, job_of(twin, job), NewInput("a", size=1, sha256=X_SHA256))
    (row,) = (row for row in of(twin, Input) if row.artifact)
    twin.objects.objects[object_name(row.artifact)] = b"x"
    inputs.commit(twin.on, job_of(twin, job), "a")
    inputs.adopt(twin.on, job_of(twin, again), job_of(twin, job))
    dependent = submit(twin, ada, **depends(job, copy_outputs=True))
    for one in (job, again, dependent):
        twin.run()
        hello(twin, one)
        finish(twin, one)
    twin.world.time = max(end_of(twin, one) for one in (job, again, dependent))


def stored(twin: Twin, ada: User) -> None:
    """Values are put, again, and as secrets; the job ends, and they go."""
    kept_and_gone(twin, ada)
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    for name, secret in (("a", False), ("a", False), ("b", True), ("b", True), ("c", True), ("a", True)):
        store.put(twin.on, job_of(twin, job), NewValue(name, "x", secret, "ada"), fenced)
    finish(twin, job)


@pytest.mark.parametrize("story", [kept_and_gone, forgotten, sent, stored], ids=lambda story: story.__name__)
def test_no_commit_holds_when_one_of_its_rows_has_moved(
    twin: Twin, story: Callable[[Twin, User], None], ada: User
) -> None:
    guard = Guard(twin)
    story(twin, ada)
    tidy(twin, 6)
    assert guard.wrong == []
    assert nothing_is_left(twin)
    assert len(guard.done) > 20
