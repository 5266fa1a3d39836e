"""Big files are sent in parts: begun once, gone on with, and put together when all of it is there. [ART-1] [ART-2]"""

from __future__ import annotations

import hashlib

import pytest

from penstock.domain.artifacts import volumes
from penstock.domain.artifacts.artifacts import Artifact, ArtifactState, artifact_key
from penstock.domain.artifacts.content import Content
from penstock.domain.artifacts.volumes import PART_BYTES, WHOLE_BYTES
from penstock.domain.commands import AgentFile, AgentParts, InputParts, NewInput
from penstock.domain.jobs.jobs import State
from penstock.domain.replies import InputUpload, OutputUpload, PartUpload
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.kernel.errors import Refused
from penstock.testing.twin import Twin
from penstock.usecases.artifacts import inputs, outputs, owners, uploads
from penstock.usecases.site import apply
from penstock.usecases.workers import agents
from penstock.usecases.workers.agents import Caller
from tests.usecases.conftest import SITE
from tests.usecases.inputs import digest
from tests.usecases.races import before_the_next_commit
from tests.usecases.steps import finish, hello, job_of, submit, sweep

FIRST, LAST = b"a" * PART_BYTES, b"tail"
PARTS = [digest(FIRST), digest(LAST)]
WHOLE = digest(FIRST + LAST)
BIG = AgentFile("/work/big", size=len(FIRST + LAST), sha256=WHOLE, composite=volumes.composite(PARTS))


@pytest.fixture
def who(twin: Twin, ada: User) -> Caller:
    """The worker of a job that runs."""
    job = submit(twin, ada)
    twin.run()
    return hello(twin, job)


def begin(twin: Twin, who: Caller, file: AgentFile = BIG) -> OutputUpload:
    (told,) = outputs.begin(twin.on, who.job, [file]).uploads
    return told


def row_name(row: Artifact) -> str:
    return f"artifacts/{row.id}"


def send(twin: Twin, told: list[PartUpload], *data: bytes) -> None:
    for each, bytes_ in zip(told, data, strict=True):
        name, _, number = each.url.removeprefix("memory://").partition("#")
        twin.objects.begun[name][int(number)] = bytes_


def ask(twin: Twin, who: Caller, id: str, first: int, *digests: str) -> list[PartUpload]:
    return outputs.sign_parts(twin.on, who.job, AgentParts(id, first=first, sha256=list(digests))).parts


def test_parts_are_sent_and_are_one_output(twin: Twin, who: Caller) -> None:
    told = begin(twin, who)
    assert (told.url, told.part_bytes) == ("", PART_BYTES)
    leaves = ask(twin, who, told.id, 1, *PARTS)
    assert [(each.number, each.there, bool(each.url)) for each in leaves] == [
        (1, False, True),
        (2, False, True),
    ]
    send(twin, leaves, FIRST, LAST)
    for _ in range(2):
        outputs.commit(twin.on, who.job, [told.id])
    with pytest.raises(Refused, match="has arrived"):
        ask(twin, who, told.id, 1, *PARTS)
    (row,) = outputs.list_outputs(twin.on, who.job.id)[0]
    assert (row.size, row.sha256, row.composite) == (BIG.size, "", BIG.composite), "that of the whole nobody verified"
    signed = outputs.sign(twin.on, who.job, row.id, 60)
    assert (signed.sha256, signed.composite) == (None, BIG.composite)
    assert twin.objects.objects[f"artifacts/{row.id}"] == FIRST + LAST
    assert not twin.objects.begun


def test_what_is_there_is_not_asked_for_again_and_not_taken_before_all_of_it_is(twin: Twin, who: Caller) -> None:
    told = begin(twin, who)
    send(twin, ask(twin, who, told.id, 2, PARTS[1]), LAST)
    with pytest.raises(Refused, match=f"of /work/big 0 of {BIG.size} bytes have arrived"):
        outputs.commit(twin.on, who.job, [told.id])
    assert begin(twin, who) == told
    first, last = ask(twin, who, told.id, 1, *PARTS)
    assert (first.there, last.there, last.url) == (False, True, "")
    send(twin, [first], FIRST)
    outputs.commit(twin.on, who.job, [told.id])


def test_only_what_was_named_the_same_is_gone_on_with(twin: Twin, who: Caller) -> None:
    """Another size, other bytes, another path: another file."""
    ids = {begin(twin, who, each).id for each in (BIG, *others())}
    assert len(ids) == 5
    assert {begin(twin, who, each).id for each in (BIG, *others())} == ids
    rows = twin.on.store.find(f"job#{who.job.id}", "artifact#", Artifact)
    assert len(rows) == len(ids)


def others() -> list[AgentFile]:
    return [
        AgentFile("/work/else", size=4, sha256=WHOLE),
        AgentFile("/work/big", size=4, sha256=WHOLE),
        AgentFile("/work/big", size=5, sha256="0" * 64),
        AgentFile("/work/big", size=BIG.size, sha256=WHOLE),
    ]


def test_what_has_arrived_is_not_sent_over(twin: Twin, who: Caller) -> None:
    """The bytes of what a job owns never change. [ART-1]"""
    small = AgentFile("/work/small", size=4, sha256=digest(LAST))
    told = begin(twin, who, small)
    twin.objects.objects[told.url.removeprefix("memory://")] = LAST
    outputs.commit(twin.on, who.job, [told.id])
    assert begin(twin, who, small).id != told.id


def test_what_is_gone_on_with_counts_once(twin: Twin, who: Caller) -> None:
    files = [AgentFile(f"/work/{number}", size=4, sha256=WHOLE) for number in range(limits.OUTPUTS)]
    for _ in range(2):
        for start in range(0, len(files), limits.OUTPUTS_PER_CALL):
            outputs.begin(twin.on, who.job, files[start : start + limits.OUTPUTS_PER_CALL])
    with pytest.raises(Refused, match="a job keeps at most 1000 outputs"):
        begin(twin, who)


def test_an_attempt_does_not_go_on_with_what_the_one_before_it_began(twin: Twin, ada: User) -> None:
    """Its worker may be sending still. [SLOT-3]"""
    job = submit(twin, ada, retries=1)
    twin.run()
    before = hello(twin, job)
    told = begin(twin, before)
    agents.report_unprepared(twin.on, before, "the machine is odd")
    twin.run()
    again = hello(twin, job)
    assert again.job.attempt == 2
    assert begin(twin, again).id != told.id


@pytest.mark.parametrize(
    ("first", "digests", "why"),
    [(2, PARTS, "of its 2 parts, 2 to 3 were named"), (1, ["x"], "64 hex digits"), (1, [], "1 to 0")],
)
def test_parts_that_it_does_not_have_are_refused(
    twin: Twin, who: Caller, first: int, digests: list[str], why: str
) -> None:
    told = begin(twin, who)
    with pytest.raises(Refused, match=f"/work/big: .*{why}") as error:
        ask(twin, who, told.id, first, *digests)
    assert error.value.status == 400


def test_what_is_in_one_piece_or_unknown_has_no_parts(twin: Twin, who: Caller) -> None:
    told = begin(twin, who, AgentFile("/work/small", size=4, sha256=digest(LAST)))
    with pytest.raises(Refused, match="it is sent in one piece"):
        ask(twin, who, told.id, 1, PARTS[0])
    for unknown in ("x", f"{'0' * 26}.{who.job.id}"):
        with pytest.raises(Refused, match="no output"):
            ask(twin, who, unknown, 1, PARTS[0])


@pytest.mark.parametrize(
    ("file", "status", "why"),
    [
        (AgentFile("/a", size=-1, sha256=WHOLE), 400, "needs a size"),
        (AgentFile("/a", size=1, sha256="x"), 400, "64 hex digits"),
        (AgentFile("/a", size=1, sha256=WHOLE, composite="x"), 400, "64 hex digits"),
        (AgentFile("a", size=1, sha256=WHOLE), 400, "no absolute path"),
        (AgentFile("/a", size=2 * WHOLE_BYTES + 1, sha256=WHOLE, composite=WHOLE), 413, "the site takes"),
        (AgentFile("/a", size=WHOLE_BYTES + 1, sha256=WHOLE), 400, "too big to be sent in one piece"),
    ],
)
def test_what_cannot_be_a_file_is_refused(twin: Twin, who: Caller, file: AgentFile, status: int, why: str) -> None:
    apply.apply(twin.on, "admin", f"{SITE}[limits]\noutput_bytes = {2 * WHOLE_BYTES}", "site.toml")
    with pytest.raises(Refused, match=why) as error:
        begin(twin, who, file)
    assert error.value.status == status
    for good in (
        AgentFile("/a", size=WHOLE_BYTES, sha256=WHOLE),
        AgentFile("/a", size=2 * WHOLE_BYTES, sha256=WHOLE, composite=WHOLE),
    ):
        begin(twin, who, good)


def test_an_input_is_sent_in_parts_too(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, inputs=["big"])
    new = NewInput("big", size=BIG.size, sha256=WHOLE, composite=BIG.composite)
    with pytest.raises(Refused, match="nobody began to send big"):
        inputs.sign_parts(twin.on, job_of(twin, job), InputParts("big", first=1, sha256=PARTS))
    assert inputs.begin(twin.on, job_of(twin, job), new).part_bytes == PART_BYTES
    send(
        twin, inputs.sign_parts(twin.on, job_of(twin, job), InputParts("big", first=1, sha256=PARTS)).parts, FIRST, LAST
    )
    inputs.commit(twin.on, job_of(twin, job), "big")
    assert hashlib.sha256(next(iter(twin.objects.objects.values()))).hexdigest() == WHOLE
    assert inputs.begin(twin.on, job_of(twin, job), new) == InputUpload(
        there=True, method="", url="", headers={}, part_bytes=0
    )


def test_an_input_may_take_long_while_its_parts_are_requested(twin: Twin, ada: User) -> None:
    """On a slow line an upload takes hours, and the next file is begun after it."""
    job = submit(twin, ada, inputs=["big", "later"])
    inputs.begin(twin.on, job_of(twin, job), NewInput("big", size=BIG.size, sha256=WHOLE, composite=BIG.composite))
    for _ in range(3):
        sweep(twin, 50 * 60)
        told = inputs.sign_parts(twin.on, job_of(twin, job), InputParts("big", first=1, sha256=PARTS)).parts
    assert job_of(twin, job).state is State.WAITING
    send(twin, told, FIRST, LAST)
    inputs.commit(twin.on, job_of(twin, job), "big")
    assert inputs.begin(twin.on, job_of(twin, job), NewInput("later", size=4, sha256=digest(LAST))).url
    sweep(twin, 61 * 60)
    assert (job_of(twin, job).end.reason or "").startswith("the input later did not arrive within 60 min")


def test_who_downloads_parts_is_told_how_they_are_checked() -> None:
    whole, parts = Content(4, WHOLE, ""), Content(4, "", BIG.composite)
    assert uploads.described(whole) == {"size": 4, "sha256": WHOLE}
    assert uploads.described(parts) == {
        "size": 4, "sha256": "", "composite": BIG.composite, "part_bytes": volumes.PART_BYTES,
    }  # fmt: skip


def test_parts_of_what_nobody_came_to_own_go_with_it(twin: Twin, who: Caller) -> None:
    told = begin(twin, who)
    (row,) = twin.on.store.find(f"job#{who.job.id}", "artifact#", Artifact)
    begin(twin, who, AgentFile("/work/small", size=4, sha256=digest(LAST)))
    send(twin, ask(twin, who, told.id, 1, PARTS[0]), FIRST)
    abandon, abandoned = twin.objects.abandon, []
    twin.objects.abandon = lambda name: abandoned.append(name) or abandon(name)  # type: ignore[method-assign, func-returns-value]
    finish(twin, who.job.id)
    for _ in range(3):
        sweep(twin, 7 * 24 * 3600)
    assert twin.on.store.get(artifact_key(row.id), Artifact) is None
    assert not twin.objects.begun
    assert abandoned == [row_name(row)]


def test_an_upload_has_time_while_its_parts_are_requested(twin: Twin, who: Caller) -> None:
    told = begin(twin, who)
    for hours in (5, 6, 11):
        twin.pass_time(hours * 3600)
        owners.move_on(twin.on, told.id)
        leaves = ask(twin, who, told.id, 1, *PARTS)
    send(twin, leaves, FIRST, LAST)
    outputs.commit(twin.on, who.job, [told.id])
    assert outputs.find(twin.on, who.job, told.id)


def test_an_upload_that_is_over_while_it_gets_more_time_stays_over(twin: Twin, who: Caller) -> None:
    """Its parts are joined between the reading and the write: what is there does not become abandoned. [ART-1]"""
    told = begin(twin, who)
    twin.pass_time(7 * 3600)
    send(twin, ask(twin, who, told.id, 1, *PARTS), FIRST, LAST)
    twin.pass_time(7 * 3600)
    before_the_next_commit(twin, lambda: outputs.commit(twin.on, who.job, [told.id]))
    ask(twin, who, told.id, 1, *PARTS)
    assert owners.find(twin.on, told.id).state is ArtifactState.CREATED


def test_an_upload_that_just_began_is_not_written_again(twin: Twin, who: Caller) -> None:
    told = begin(twin, who)
    before = owners.find(twin.on, told.id)
    ask(twin, who, told.id, 1, *PARTS)
    assert owners.find(twin.on, told.id) == before


def test_an_upload_that_nobody_goes_on_with_expires(twin: Twin, who: Caller) -> None:
    told = begin(twin, who)
    twin.pass_time(7 * 3600)
    ask(twin, who, told.id, 1, *PARTS)
    twin.pass_time(12 * 3600)
    owners.move_on(twin.on, told.id)
    assert owners.find(twin.on, told.id) is None


def test_only_parts_are_joined_and_only_once(twin: Twin, who: Caller) -> None:
    """Nothing is put together of what was sent in one piece, nor again of what is there."""
    joined: list[str] = []
    twin.objects.join = lambda name, count, composite: joined.append(name)  # type: ignore[method-assign]
    small, big = begin(twin, who, AgentFile("/work/small", size=4, sha256=digest(LAST))), begin(twin, who)
    for told in (small, big):
        with pytest.raises(Refused, match="bytes have arrived"):
            outputs.commit(twin.on, who.job, [told.id])
    (row,) = (row for row in twin.on.store.find(f"job#{who.job.id}", "artifact#", Artifact) if row.path == BIG.path)
    assert joined == [row_name(row)]
    twin.objects.objects[joined[0]], twin.objects.composites[joined[0]] = FIRST + LAST, BIG.composite
    outputs.commit(twin.on, who.job, [big.id])
    assert len(joined) == 1
