"""The statement about a job's outputs: of which jobs there is one, for whom, and that others can verify it. [SEC-2]"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

from penstock.domain.artifacts.volumes import object_name
from penstock.domain.commands import AgentFile, SubmitJob
from penstock.domain.jobs import statement
from penstock.domain.jobs.jobs import Provenance, Result, job_key, spec_key
from penstock.domain.jobs.statement import Service
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.testing.twin import Twin
from penstock.usecases.artifacts import outputs
from penstock.usecases.jobs import provenance
from penstock.usecases.jobs import submit as jobs_submit
from penstock.usecases.jobs.provenance import Signed
from penstock.usecases.site import apply
from penstock.usecases.workers import agents
from tests.usecases.conftest import SITE
from tests.usecases.steps import SCRIPT, TOKEN, finish, hello, job_of, run_to_end, submit, sweep, worker_of

BY = Service("http://here", "a1b2c3d4", "d" * 64)
EVE = User(name="eve", created=datetime(2026, 1, 1, tzinfo=UTC), version=1)


def keep(twin: Twin, job: str, path: str = "/work/app", content: bytes = b"app") -> None:
    """The agent of a running job keeps a file."""
    caller = agents.authenticate(twin.on, job, TOKEN)
    file = AgentFile(path, size=len(content), sha256=hashlib.sha256(content).hexdigest())
    (upload,) = outputs.begin(twin.on, caller.job, [file]).uploads
    twin.objects.store(object_name(upload.id), content)
    outputs.commit(twin.on, caller.job, [upload.id])


def built(twin: Twin, user: User, **ask: object) -> str:
    """A job that succeeded, and left a file."""
    job = submit(twin, user, **ask)
    twin.run()
    hello(twin, job)
    keep(twin, job)
    finish(twin, job)
    return job


def stated(twin: Twin, user: User, job: str) -> Any:
    return json.loads(provenance.provenance(twin.on, user, job, BY).body)


def refused(call: Callable[[], object]) -> tuple[int, str]:
    with pytest.raises(Refused) as told:
        call()
    return told.value.status, told.value.code


def envelope(found: Signed) -> Envelope:
    """The envelope as it goes over the wire, read by a library that is not ours."""
    sig = base64.b64encode(found.signature).decode()
    body = base64.b64encode(found.body).decode()
    sent = {"payloadType": statement.PAYLOAD, "payload": body, "signatures": [{"keyid": found.kid, "sig": sig}]}
    return Envelope.from_dict(sent)


def key(twin: Twin, kid: str) -> SSlibKey:
    named, text = provenance.public_key(twin.on)
    assert named == kid
    return SSlibKey(kid, "ecdsa", "ecdsa-sha2-nistp256", {"public": text})


def test_another_program_verifies_it(twin: Twin, ada: User) -> None:
    found = provenance.provenance(twin.on, ada, built(twin, ada), BY)
    assert set(envelope(found).verify([key(twin, found.kid)], 1)) == {found.kid}
    with pytest.raises(VerificationError):
        envelope(replace(found, body=found.body.replace(b"ada", b"eve"))).verify([key(twin, found.kid)], 1)


def test_what_rows_know_of_a_job_is_stated(twin: Twin, ada: User) -> None:
    job = built(twin, ada, resources=["bench"])
    said = stated(twin, ada, job)
    assert said["subject"] == [{"name": "/work/app", "digest": {"sha256": hashlib.sha256(b"app").hexdigest()}}]
    (script,) = said["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert script["digest"]["sha256"] == hashlib.sha256(SCRIPT.encode()).hexdigest()
    run = said["predicate"]["runDetails"]
    assert (run["metadata"]["penstock_owner"], run["metadata"]["penstock_job"]) == ("ada", job)
    assert [(each["name"], each["fence"] > 0) for each in run["penstock_leases"]] == [("worker", True), ("bench", True)]
    assert all(each["cleaned"]["checked"] for each in run["penstock_leases"])


def test_a_lease_that_is_not_put_back_yet_has_no_record(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    keep(twin, job)
    agents.report_finished(twin.on, agents.authenticate(twin.on, job, TOKEN), Result.SUCCEEDED, "done", 0)
    (worker,) = stated(twin, ada, job)["predicate"]["runDetails"]["penstock_leases"]
    assert "cleaned" not in worker
    twin.run()
    (worker,) = stated(twin, ada, job)["predicate"]["runDetails"]["penstock_leases"]
    assert worker["cleaned"]


def test_of_a_worker_that_has_another_job_its_lease_is_left(twin: Twin, ada: User) -> None:
    job = built(twin, ada)
    worker = worker_of(twin, job)
    twin.store.rows[worker.key] = replace(worker, lease=replace(worker.lease, job=submit(twin, ada)))
    (lease,) = stated(twin, ada, job)["predicate"]["runDetails"]["penstock_leases"]
    assert (lease["unit"], "maker" in lease, "cleaned" in lease) == (worker.id, False, False)
    del twin.store.rows[worker.key]  # it is forgotten
    assert stated(twin, ada, job)["predicate"]["runDetails"]["penstock_leases"] == [lease]


def test_only_the_attempt_that_succeeded_is_vouched_for(twin: Twin, ada: User) -> None:
    """The first attempt is lost after it kept a file; what it left is not what the second one made."""
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    keep(twin, job, content=b"half of it")
    sweep(twin, 400)
    sweep(twin)
    assert job_of(twin, job).attempt == 2
    hello(twin, job)
    keep(twin, job, content=b"app")
    finish(twin, job)
    assert [each["digest"]["sha256"] for each in stated(twin, ada, job)["subject"]] == [
        hashlib.sha256(b"app").hexdigest()
    ]


def test_there_is_none_of_a_job_that_did_not_succeed(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    keep(twin, job)
    with pytest.raises(Refused, match=f"job {job} is running"):
        stated(twin, ada, job)
    finish(twin, job, Result.FAILED)
    with pytest.raises(Refused, match=f"job {job} is failed"):
        stated(twin, ada, job)
    assert refused(lambda: stated(twin, ada, job)) == (409, "not-succeeded")


def test_there_is_none_without_outputs(twin: Twin, ada: User) -> None:
    """Whatever else is missing."""
    job = submit(twin, ada)
    run_to_end(twin, job)
    assert refused(lambda: stated(twin, ada, job)) == (422, "no-outputs")
    twin.store.rows[job_key(job)] = replace(job_of(twin, job), spec=None)
    assert refused(lambda: stated(twin, ada, job)) == (422, "no-outputs")


def test_there_is_none_of_outputs_that_are_gone(twin: Twin, ada: User) -> None:
    job = built(twin, ada)
    for _ in range(3):
        sweep(twin, 40 * 24 * 3600)
    assert refused(lambda: stated(twin, ada, job)) == (422, "outputs-gone")


def test_there_is_none_without_the_script(twin: Twin, ada: User) -> None:
    job = built(twin, ada)
    row = job_of(twin, job)
    twin.store.rows[job_key(job)] = replace(row, spec=None)
    twin.store.rows.pop(spec_key(job), None)
    assert refused(lambda: stated(twin, ada, job)) == (410, "spec-gone")


def test_there_is_none_without_a_key(twin: Twin, ada: User) -> None:
    job = built(twin, ada)
    none = replace(twin.on, attestor=None)
    assert refused(lambda: provenance.provenance(none, ada, job, BY)) == (422, "no-provenance-key")
    assert refused(lambda: provenance.public_key(none)) == (422, "no-provenance-key")


def test_who_may_not_see_a_job_gets_none(twin: Twin, ada: User) -> None:
    """SEC-2: and nothing is signed for whoever asks."""
    job = built(twin, ada)
    assert refused(lambda: stated(twin, EVE, job)) == (404, "job-not-found")


def test_one_that_no_answer_has_room_for_is_refused(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    job = built(twin, ada)
    size = len(provenance.provenance(twin.on, ada, job, BY).body)
    monkeypatch.setattr(provenance, "STATEMENT_BYTES", size)
    assert stated(twin, ada, job)
    monkeypatch.setattr(provenance, "STATEMENT_BYTES", size - 1)
    assert refused(lambda: stated(twin, ada, job)) == (413, "statement-too-big")


def source(said: Any) -> Any:
    found = said["predicate"]["buildDefinition"]["resolvedDependencies"]
    return next((each for each in found if each["name"] == "source"), None)


GITHUB = {"GITHUB_REPOSITORY": "oxide/hubris", "GITHUB_SHA": "a" * 40, "GITHUB_BRANCH": "main"}


@pytest.mark.parametrize(
    ("more", "url"),
    [
        ("", "git+https://github.com/oxide/hubris"),
        (
            '[github]\napp = 1\napi = "https://git.example/api/v3"\nrepositories = ["oxide/*"]\n',
            "git+https://git.example/oxide/hubris",
        ),
    ],
)
def test_a_check_of_a_commit_says_where_it_comes_from(twin: Twin, ada: User, more: str, url: str) -> None:
    apply.apply(twin.on, "admin", SITE + more, "site.toml")
    twin.run()
    job = jobs_submit.submit(
        twin.on, ada, SubmitJob(SCRIPT, env=GITHUB), None, commit=Provenance(check=f"1/{'a' * 40}/1")
    )
    twin.run()
    hello(twin, job)
    keep(twin, job)
    finish(twin, job)
    found = source(stated(twin, ada, job))
    assert (found["uri"], found["annotations"]) == (url, {"ref": "refs/heads/main"})


def test_a_job_that_merely_has_such_an_environment_comes_from_nowhere(twin: Twin, ada: User) -> None:
    """SEC-2: anybody may set it."""
    assert source(stated(twin, ada, built(twin, ada, env=GITHUB))) is None
