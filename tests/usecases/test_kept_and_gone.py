"""Uploads, ends, dependents, pins, published names and sweeps, in the middle of one another, over a store that lies.

Nothing that somebody owns is ever lost, and nothing that nobody owns is kept beyond its time. The numbers are those of
Concourse's invariants of volumes, from which these are taken over. [ART-1] [ART-2]

I1   what is created and owned never begins to be destroyed
I2   no bytes are deleted while a row says that they exist
I3   a row goes only when its bytes are gone
I6   what was there when a dependent was accepted stays until that settles
I10  who lets go frees no more than what it alone kept
I11  what is being sent arrives, or is gone, within a bounded time
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from penstock.domain.artifacts import artifacts, retention
from penstock.domain.artifacts.artifacts import Artifact, ArtifactState, Pin, artifact_key, id_of
from penstock.domain.artifacts.retention import Retention, retention_key
from penstock.domain.artifacts.volumes import artifact_of, object_name
from penstock.domain.commands import AgentFile
from penstock.domain.jobs import jobs
from penstock.domain.jobs.jobs import Job, JobLimits, Report, Request, Result, State, Times, job_key
from penstock.domain.logs.logs import Archive, ArchiveState
from penstock.domain.pools.pools import WORKER, Lease, LeaseState
from penstock.domain.published import Published
from penstock.domain.users.users import User
from penstock.kernel.errors import Moved, Refused
from penstock.kernel.rows import Change, Create, Delete, Replace, key_of
from penstock.ports import Stored
from penstock.testing.store import MemoryStore
from penstock.testing.twin import START, MemoryObjects, Twin
from penstock.usecases import published
from penstock.usecases import published as naming
from penstock.usecases.artifacts import expire, inventory, outputs, pins
from penstock.usecases.jobs import prerequisites, settle
from tests.usecases.outputs import X_SHA256
from tests.usecases.retained_jobs import tidy

pytestmark = pytest.mark.usefixtures("no_log_is_short")

ADA = User(name="ada", created=START, version=1)
HOURS = (0.02, 1, 13, 24 * 8, 24 * 16, 24 * 50, 24 * 100)
RESULTS = (Result.SUCCEEDED, Result.FAILED, Result.CANCELLED)
TIDIES = 12
"""How many sweeps of an honest world see all to its end that is due at one time."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """What fails is logged, and much is made to fail here."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


class Seen(MemoryStore):
    """Rows in memory: somebody else may move before a commit, and every commit is looked at.

    What is broken is noted and not raised: the sweep goes on after what fails for one row.
    """

    def __init__(self, twin: Twin) -> None:
        super().__init__()
        self.twin = twin
        self.broken: list[str] = []
        self.meanwhile: Callable[[], object] | None = None

    def commit(self, changes: Sequence[Change]) -> bool:
        act, self.meanwhile = self.meanwhile, None
        if act:
            act()
        before = {key_of(change): self.rows.get(key_of(change)) for change in changes}
        done = super().commit(changes)
        if done:
            for change in changes:
                self._note(before[key_of(change)], self.rows.get(key_of(change)), changes)
        return done

    def _note(self, was: Any, now: Any, changes: Sequence[Change]) -> None:
        try:
            self._look(was, now, changes)
        except AssertionError as error:
            self.broken.append(str(error))

    def _look(self, was: Any, now: Any, changes: Sequence[Change]) -> None:
        if isinstance(was, Artifact) and now is None:
            assert was.state is ArtifactState.DESTROYING, f"I3: {was} was forgotten"
            assert object_name(was.id) not in self.twin.objects.objects, f"I3: the bytes of {was} are there"
        if isinstance(was, Artifact) and now and was.owners != now.owners and now.state is ArtifactState.DESTROYING:
            retained, job = self.rows.get(retention_key(was.job)), self.rows.get(job_key(was.job))
            is_over = isinstance(retained, Retention) and retained.ended
            is_told = isinstance(job, Job) and job.end.outputs_gone
            gone = {f"job#{was.job}"} if is_over or is_told else set()
            deleted = [change.was for change in changes if isinstance(change, Delete)]
            gone |= {row.owner for row in deleted if isinstance(row, Pin) and row.artifact == was.id}
            written = [change.row for change in changes if isinstance(change, Replace)]
            gone |= {row.owner for row in written if isinstance(row, Published) and row.withdrawn}
            ended = [change for change in changes if isinstance(change, Replace) and isinstance(change.row, Archive)]
            gone |= {f"job#{each.row.job}" for each in ended if each.row.state is ArchiveState.GONE}
            assert set(was.owners) <= gone, f"I10: {was} was deleted with {gone}"
        if isinstance(was, Artifact) and now and was.state is ArtifactState.CREATING is not now.state:
            late = was.due is not None and was.due <= self.twin.world.now()
            assert late or now.owners, f"I1: {was} had time"
        if isinstance(was, Artifact) and now:
            order = list(ArtifactState)
            assert order.index(was.state) <= order.index(now.state), f"I1: {now} was {was.state}"


class Liar(MemoryObjects):
    """A store that fails to delete, says that it did and lies, or lists what was there a while ago."""

    def __init__(self, twin: Twin) -> None:
        super().__init__()
        self.twin = twin
        self.deletes = "well"
        self.old: list[Stored] | None = None

    def delete(self, name: str) -> None:
        row = self.twin.store.rows.get(artifact_key(artifact_of(name) or ""))
        if not isinstance(row, Artifact) or row.state is not ArtifactState.DESTROYING:
            self.twin.store.broken.append(f"I2: {name} is deleted, and its row says {row}")  # type: ignore[attr-defined]
        if self.deletes == "fails":
            raise OSError("503")
        if self.deletes == "well":
            super().delete(name)

    def list(self, prefix: str, after: str, limit: int) -> Sequence[Stored]:
        if self.old is not None:
            return [each for each in self.old if each.name > after][:limit]
        return super().list(prefix, after, limit)


class Keeping(RuleBasedStateMachine):
    """The world, and what the tests know of it: which dependents were promised what."""

    @initialize()
    def begin(self) -> None:
        self.twin = Twin()
        self.store = self.twin.store = Seen(self.twin)
        self.objects = self.twin.objects = Liar(self.twin)
        self.twin.on = replace(self.twin.on, store=self.store, objects=self.objects)
        self.promised: dict[str, set[str]] = {}
        self.count = 0
        self.job()

    # Who there is

    def of(self, kind: type[Any]) -> list[Any]:
        return [row for row in self.store.rows.values() if isinstance(row, kind)]

    def files(self) -> list[Artifact]:
        """What was made for jobs: no strays."""
        return [row for row in self.of(Artifact) if job_key(row.job) in self.store.rows]

    def jobs(self, *, settled: bool) -> list[Job]:
        return [row for row in self.of(Job) if row.is_settled is settled]

    def job(self, more: Sequence[Change] = (), name: str = "") -> str:
        """A job that runs, with the lease of its worker."""
        self.count += 1
        id, now = name or self.twin.world.ulid(), self.twin.world.now()
        made = Job(
            id=id,
            name=f"build-{self.count % 2}",
            owner="ada",
            request=Request(target="linux", target_resolved="linux", needs=()),
            state=State.RUNNING,
            times=Times(now, now, now, now),
            limits=JobLimits(timeout=600, queue_seconds=600, grace=5, retries=0),
        )
        lease = Lease(
            job=id, attempt=1, order=WORKER, step=WORKER, name="worker", type="linux", pool="target/linux", since=now,
            state=LeaseState.READY, token="t",
        )  # fmt: skip
        assert self.store.commit([Create(made), Create(lease), *more])
        return id

    def do(self, act: Callable[[], object], meanwhile: str) -> None:
        """Do something, and something else in the middle of it. That it is refused, or loses its race, is fine."""
        self.store.meanwhile = self.others()[meanwhile]
        with suppress(Refused, Moved, OSError):
            act()
        self.store.meanwhile = None

    def others(self) -> dict[str, Callable[[], object] | None]:
        return {
            "nothing": None,
            "sweep": lambda: expire.expire_overdue(self.twin.on),
            "commit": lambda: self.quietly(self.commit_all),
            "pin": lambda: self.quietly(self.pin_first),
            "depend": lambda: self.quietly(self.depend_on_last),
            "settle": lambda: self.quietly(self.settle_first),
            "publish": lambda: self.quietly(self.publish_first),
            "withdraw": lambda: self.quietly(self.withdraw_first),
        }

    def publish_first(self) -> None:
        for row in self.files()[:1]:
            self.give(row, "v0")

    def give(self, row: Artifact, version: str) -> None:
        job = self.store.rows[job_key(row.job)]
        assert isinstance(job, Job)
        published.publish(self.twin.on, ADA, job, row.id, "nightly", version, "file")

    def withdraw_first(self) -> None:
        for row in self.of(Published)[:1]:
            self.withdraw(row)

    def withdraw(self, row: Published) -> None:
        naming.unpublish(self.twin.on, ADA, row.of, row.series, row.version_name, row.name)

    def quietly(self, act: Callable[[], object]) -> None:
        with suppress(Refused, Moved, OSError):
            act()

    def commit_all(self) -> None:
        for row in self.files():
            self.quietly(lambda row=row: outputs.commit(self.twin.on, self.store.rows[job_key(row.job)], [row.id]))

    def pin_first(self) -> None:
        for row in self.of(Artifact)[:1]:
            pins.pin(self.twin.on, ADA, row.id, "it is good", 3600)

    def depend_on_last(self) -> None:
        for job in self.jobs(settled=True)[-1:]:
            self.depend(job.id)

    def depend(self, job: str) -> None:
        """The submit of a job that depends on another. From here on it was promised what there is."""
        name = self.twin.world.ulid()
        changes = prerequisites.pin(self.twin.on, job, name)
        there = {row.id for row in self.of(Artifact) if row.job == job and artifacts.is_output(row)}
        before = self.store.meanwhile
        self.store.meanwhile = None
        if before:
            before()
        with suppress(AssertionError):  # its write lost a race: it is not accepted
            self.job(changes, name)
            self.promised[name] = there

    def settle_first(self) -> None:
        for job in self.jobs(settled=False)[:1]:
            self.settle(job.id, Result.FAILED)

    def settle(self, job: str, result: Result) -> None:
        row = self.store.rows[job_key(job)]
        assert isinstance(row, Job)
        self.store.commit([Replace(row, jobs.report(row, Report(result, "it ended", self.twin.world.now())))])
        settle.settle(self.twin.on, job, 1, None, None)

    # What happens

    meanwhile = st.sampled_from(("nothing", "sweep", "commit", "pin", "depend", "settle", "publish", "withdraw"))
    which = st.integers(0, 1000)

    def pick(self, rows: Sequence[Any], which: int) -> Any:
        return rows[which % len(rows)] if rows else None

    @rule()
    def submit(self) -> None:
        if len(self.jobs(settled=False)) < 4:
            self.job()

    @rule(which=which, meanwhile=meanwhile, count=st.integers(1, 3), ends=st.booleans())
    def make(self, which: int, meanwhile: str, count: int, ends: bool) -> None:
        """Outputs from their begin to their commit, as most are; and maybe their job's end."""
        job = self.pick(self.jobs(settled=False), which)
        if job:
            self.upload(which, "nothing", count)
            for row in self.of(Artifact):
                if row.job == job.id:
                    self.put(row)
            self.do(self.commit_all, meanwhile)
            if ends:
                self.do(lambda: self.settle(job.id, RESULTS[which % 3]), "nothing")

    @rule(which=which, meanwhile=meanwhile, count=st.integers(1, 3))
    def upload(self, which: int, meanwhile: str, count: int) -> None:
        job = self.pick(self.jobs(settled=False), which)
        files = [AgentFile(f"/work/{number}", size=1, sha256=X_SHA256) for number in range(count)]
        if job:
            self.do(lambda: outputs.begin(self.twin.on, job, files), meanwhile)

    @rule(which=which)
    def arrive(self, which: int) -> None:
        """A PUT, with a URL that is good for an hour; whatever became of the row meanwhile."""
        row = self.pick(self.files(), which)
        if row:
            self.put(row)

    def put(self, row: Artifact) -> None:
        if self.twin.world.now() - row.time < timedelta(hours=1):
            self.objects.objects[object_name(row.id)] = b"x"
            self.objects.times[object_name(row.id)] = self.twin.world.now()

    @rule()
    def appear(self) -> None:
        """Bytes that no row knows of: of a backup, or of a PUT that came after all was over."""
        name = object_name(id_of(self.twin.world.ulid(), self.twin.world.ulid()))
        self.objects.objects[name], self.objects.times[name] = b"?", self.twin.world.now()

    @rule(which=which, meanwhile=meanwhile)
    def commit(self, which: int, meanwhile: str) -> None:
        row = self.pick(self.files(), which)
        if row:
            self.do(lambda: outputs.commit(self.twin.on, self.store.rows[job_key(row.job)], [row.id]), meanwhile)

    @rule(which=which, meanwhile=meanwhile, result=st.sampled_from(RESULTS))
    def ends(self, which: int, meanwhile: str, result: Result) -> None:
        job = self.pick(self.jobs(settled=False), which)
        if job:
            self.do(lambda: self.settle(job.id, result), meanwhile)

    @rule(which=which, meanwhile=meanwhile)
    def depends(self, which: int, meanwhile: str) -> None:
        job = self.pick(self.of(Job), which)
        if job:
            self.do(lambda: self.depend(job.id), meanwhile)

    @rule(which=which, meanwhile=meanwhile)
    def leaves(self, which: int, meanwhile: str) -> None:
        """A settled dependent's leaving; that of others is lost."""
        rows = [(row.job, name) for row in self.of(Retention) for name in row.dependents]
        found = self.pick([(job, name) for job, name in rows if self.is_settled(name)], which)
        if found:
            self.do(lambda: settle.unpin(self.twin.on, *found), meanwhile)

    def is_settled(self, job: str) -> bool:
        row = self.store.rows[job_key(job)]
        return isinstance(row, Job) and row.is_settled

    @rule(which=which, meanwhile=meanwhile, hours=st.sampled_from((None, 1, 24 * 20)))
    def pin(self, which: int, meanwhile: str, hours: int | None) -> None:
        row, seconds = self.pick(self.of(Artifact), which), hours and hours * 3600
        if row:
            self.do(lambda: pins.pin(self.twin.on, ADA, row.id, "it is good", seconds), meanwhile)

    @rule(which=which, meanwhile=meanwhile)
    def unpin(self, which: int, meanwhile: str) -> None:
        row = self.pick(self.of(Pin), which)
        if row:
            self.do(lambda: pins.unpin(self.twin.on, ADA, row.artifact, row.by), meanwhile)

    @rule(which=which, meanwhile=meanwhile, version=st.sampled_from(("v0", "v1", "v2")))
    def publish(self, which: int, meanwhile: str, version: str) -> None:
        row = self.pick(self.files(), which)
        if row:
            self.do(lambda: self.give(row, version), meanwhile)

    @rule(which=which, meanwhile=meanwhile)
    def unpublish(self, which: int, meanwhile: str) -> None:
        row = self.pick(self.of(Published), which)
        if row:
            self.do(lambda: self.withdraw(row), meanwhile)

    @rule(hours=st.sampled_from(HOURS))
    def time_passes(self, hours: float) -> None:
        self.twin.pass_time(hours * 3600)

    @rule(meanwhile=meanwhile)
    def sweep(self, meanwhile: str) -> None:
        self.do(lambda: expire.expire_overdue(self.twin.on), meanwhile)

    @rule(deletes=st.sampled_from(("well", "fails", "lies")), lags=st.booleans())
    def lie(self, deletes: str, lags: bool) -> None:
        self.objects.deletes = deletes
        self.objects.old = list(MemoryObjects.list(self.objects, "artifacts/", "", 1000)) if lags else None

    @rule(which=which)
    def compare(self, which: int) -> None:
        """A comparison of rows with a list that was read before outputs came."""
        self.time_passes(25)
        self.lie("well", lags=True)
        self.make(which, "nothing", 1, ends=False)
        self.sweep("nothing")
        self.lie("well", lags=False)

    # What must be so

    @invariant()
    def nothing_is_broken(self) -> None:
        """I1, I2, I3, I10"""
        assert not hasattr(self, "store") or self.store.broken == []

    @invariant()
    def what_is_owned_is_there(self) -> None:
        """ART-1"""
        if not hasattr(self, "twin"):
            return
        for row in self.of(Artifact):
            if row.owners:
                assert object_name(row.id) in self.objects.objects, f"ART-1: the bytes of {row} are lost"
                assert (row.state, row.lost) == (ArtifactState.CREATED, None), f"ART-1: {row} is owned"

    @invariant()
    def every_owner_has_its_row_and_every_row_its_owner(self) -> None:
        if not hasattr(self, "twin"):
            return
        said = {(row.id, owner) for row in self.of(Artifact) for owner in row.owners}
        names = {(row.id, f"job#{row.job}") for row in self.of(Artifact) if artifacts.is_output(row)}
        logs = [row for row in self.of(Archive) if row.state is ArchiveState.ARCHIVED]
        names |= {(row.artifact, f"job#{row.job}") for row in logs}
        given = {(row.artifact, row.owner) for row in self.of(Published) if not row.withdrawn}
        assert said == names | given | {(row.artifact, row.owner) for row in self.of(Pin)}

    @invariant()
    def what_was_promised_is_there(self) -> None:
        """I6"""
        if not hasattr(self, "twin"):
            return
        for dependent, promised in self.promised.items():
            for id in () if self.is_settled(dependent) else promised:
                assert object_name(id) in self.objects.objects, f"I6: {dependent} needs {id}"

    def teardown(self) -> None:
        """ART-2, I11: in an honest world, what nobody owns is gone soon, and what somebody owns is not."""
        if not hasattr(self, "twin"):
            return
        self.objects.deletes, self.objects.old, self.store.meanwhile = "well", None, None
        for hours in (7, 24 * 400):
            self.twin.pass_time(hours * 3600)
            for _ in range(TIDIES):
                tidy(self.twin)
                self.twin.pass_time(3601)
        self._look_at_the_end()

    def _look_at_the_end(self) -> None:
        self.nothing_is_broken()
        now, owned = self.twin.world.now(), [row for row in self.of(Artifact) if row.owners]
        assert [row for row in self.of(Artifact) if row not in owned] == [], "ART-2: what nobody owns is kept"
        assert all(row.state is ArtifactState.CREATED for row in self.of(Artifact)), "I11"
        assert set(self.objects.objects) == {object_name(row.id) for row in owned}, "ART-2: bytes that nobody owns"
        for row in self.of(Retention):
            needed = [name for name in row.dependents if not self.is_settled(name)]
            assert row.until is None or needed, f"ART-2: {row} is over since {now - row.until}"
        for job in self.of(Job):
            assert job.end.kept_until is None, f"ART-2: {job.id} is over since {now - job.end.kept_until}"
        self.what_is_owned_is_there()
        self.every_owner_has_its_row_and_every_row_its_owner()
        self.what_was_promised_is_there()


def frees_what_others_own(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(artifacts, "disown", lambda artifact, owner, now: artifacts.destroy(artifact, now))


def forgets_what_is_owned(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(artifacts, "own", lambda artifact, owner: replace(artifact, owners=(owner,)))
    patch.setattr(artifacts, "is_abandoned", lambda artifact, now: artifact.due is not None and artifact.due <= now)


def believes_that_bytes_are_gone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Liar, "size", lambda objects, name: None if objects.deletes == "lies" else len(objects.objects[name]))


def ends_what_others_need(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(expire, "_unsettled", lambda on, row: ())


def writes_no_dependent(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(retention, "pinned", lambda row, dependent: row)


def believes_the_list(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(artifacts, "mark_found", lambda artifact: replace(artifact, lost=START))


def keeps_strays(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(inventory, "_adopt_strays", lambda on, part, spans, steps: None)


def gives_up_after_one_try(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(artifacts, "begin_deletion", lambda artifact, now: replace(artifact, tries=1, due=None))


def takes_no_note_of_what_is_published(patch: pytest.MonkeyPatch) -> None:
    real = artifacts.own
    patch.setattr(
        artifacts, "own", lambda artifact, owner: artifact if owner.startswith("published") else real(artifact, owner)
    )


PLANTED = (
    frees_what_others_own, forgets_what_is_owned, believes_that_bytes_are_gone, ends_what_others_need,
    writes_no_dependent, believes_the_list, keeps_strays, gives_up_after_one_try,
    takes_no_note_of_what_is_published,
)  # fmt: skip


RARE = (gives_up_after_one_try,)
"""What only one of hundreds of examples finds."""


@pytest.mark.parametrize(
    "plant", [pytest.param(plant, marks=pytest.mark.long if plant in RARE else ()) for plant in PLANTED]
)
def test_what_is_planted_is_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine can fail."""
    plant(monkeypatch)
    many = settings(
        max_examples=500,
        stateful_step_count=40,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        derandomize=True,
    )
    with pytest.raises((AssertionError, ExceptionGroup, KeyError)):
        run_state_machine_as_test(Keeping, settings=many)


TestKeeping = Keeping.TestCase
TestKeeping.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
