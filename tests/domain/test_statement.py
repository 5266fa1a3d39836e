"""The statement about a job's outputs: exactly what rows know, and nothing that a job says of itself. [SEC-2]"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from penstock.domain.artifacts.artifacts import Artifact
from penstock.domain.artifacts.inputs import Input
from penstock.domain.jobs import statement
from penstock.domain.jobs.dependencies import Dependency, On
from penstock.domain.jobs.jobs import Spec
from penstock.domain.jobs.origins import Origin
from penstock.domain.jobs.statement import Made, Service
from penstock.domain.jobs.tasks import NewTask
from penstock.domain.pools.pools import LeaseState
from penstock.domain.units.units import CleanProof, UnitKind, UnitState
from tests.domain.helpers import MINUTE, NOW, job, lease, unit

BY = Service("https://penstock.example", "a1b2c3d4", "d" * 64)
SHA = "c" * 40
FILE = Artifact(
    id="01KDVDNA0317KTAKC7QQ0ZE0KT.J1", path="/work/app.tar", size=5, sha256="1" * 64, by="ada", time=NOW, attempt=1
)
SPEC = Spec(job="J1", path="ci/build.sh", script="true", env={"A": "1", "B": "2"}, request={"env": {"B": "2"}})
DONE = job(started=NOW, settled=NOW + MINUTE, tags={"ref": "refs/heads/main"}, vouched={})
PROOF = CleanProof(by="the factory here", time=NOW + MINUTE, checked="the machine is gone", lag=2)
WORKER = lease(0, LeaseState.READY, name="worker", type="ubuntu", pool="target/ubuntu", slot="1", fence=7, unit="w-1")
BENCH = lease(1, LeaseState.READY, name="db", slot="bench-1", fence=3, unit="r-1")
GONE = unit(state=UnitState.GONE, made=NOW, metadata={"instance": "i-1"}, agent=BY.agent_version, proof=PROOF, due=None)
LENT = unit(id="r-1", is_a=UnitKind.RESOURCE, maker="benches", state=UnitState.DIRTY, made=NOW, proof=PROOF)
MADE = Made(job=DONE, spec=SPEC, origin=None, outputs=[FILE], inputs=[], leases=[(WORKER, GONE), (BENCH, LENT)])


def said(**changes: Any) -> Any:
    return statement.statement(replace(MADE, **changes), BY)


def sources(**changes: Any) -> dict[str, Any]:
    found = said(**changes)["predicate"]["buildDefinition"]["resolvedDependencies"]
    return {each["name"]: {key: value for key, value in each.items() if key != "name"} for each in found}


def test_the_tasks_of_a_job_without_a_file_are_stated() -> None:
    spec = replace(SPEC, script="", tasks=(NewTask("a", "true"), NewTask("b", "false", uid=0)))
    text = spec.source
    assert [each["name"] for each in json.loads(text)] == ["a", "b"]
    assert sources(spec=spec) == {"tasks": {"digest": {"sha256": hashlib.sha256(text.encode()).hexdigest()}}}


def test_the_whole_statement() -> None:
    assert said() == {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "/work/app.tar", "digest": {"sha256": "1" * 64}}],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "urn:penstock:job:v1",
                "externalParameters": {
                    "jobFile": "ci/build.sh",
                    "target": "default",
                    "resources": ["bench"],
                    "env": ["B"],
                },
                "internalParameters": {"target": "ubuntu"},
                "resolvedDependencies": [
                    {"name": "job file", "digest": {"sha256": hashlib.sha256(b"true").hexdigest()}}
                ],
            },
            "runDetails": {
                "builder": {
                    "id": "https://penstock.example",
                    "builderDependencies": [
                        {"name": "agent", "digest": {"sha256": "d" * 64}, "annotations": {"version": "a1b2c3d4"}}
                    ],
                },
                "metadata": {
                    "invocationId": "https://penstock.example/v1/jobs/J1",
                    "startedOn": "2026-01-02T03:04:05.000Z",
                    "finishedOn": "2026-01-02T03:05:05.000Z",
                    "penstock_job": "J1",
                    "penstock_name": "build",
                    "penstock_owner": "ada",
                    "penstock_attempt": 1,
                },
                "penstock_leases": [
                    {
                        "name": "worker",
                        "type": "ubuntu",
                        "pool": "target/ubuntu",
                        "slot": "1",
                        "fence": 7,
                        "unit": "w-1",
                        "maker": "here",
                        "machine": {"instance": "i-1"},
                        "made": "2026-01-02T03:04:05.000Z",
                        "cleaned": {
                            "by": "the factory here",
                            "time": "2026-01-02T03:05:05.000Z",
                            "checked": "the machine is gone",
                            "lagSeconds": 2,
                        },
                    },
                    {
                        "name": "db",
                        "type": "bench",
                        "pool": "resource/bench",
                        "slot": "bench-1",
                        "fence": 3,
                        "unit": "r-1",
                        "maker": "benches",
                        "made": "2026-01-02T03:04:05.000Z",
                    },
                ],
            },
        },
    }


def test_what_wells_say_of_a_resource_stays_secret() -> None:
    """SEC-1: only the job is told."""
    told = replace(LENT, creation=replace(LENT.creation, metadata={"password": "hunter2"}))
    assert "hunter2" not in json.dumps(said(leases=[(BENCH, told)]))


def test_values_of_the_environment_are_left_out() -> None:
    """SEC-1: a statement goes where files go."""
    spec = replace(SPEC, request={"env": {"TOKEN": "hunter2"}, "matrix": {"os": "linux"}})
    asked = said(spec=spec)["predicate"]["buildDefinition"]["externalParameters"]
    assert (asked["env"], asked["matrix"]) == (["TOKEN"], {"os": "linux"})
    assert "hunter2" not in json.dumps(said(spec=spec))


def test_a_file_that_was_sent_in_parts_has_the_digest_that_was_verified() -> None:
    big = replace(FILE, sha256="", composite="2" * 64)
    assert said(outputs=[big])["subject"][0]["digest"] == {"sha256OfParts64MiB": "2" * 64}


def test_what_was_there_before_the_script() -> None:
    given = Input(job="J1", artifact="x", name="src.tar", until=NOW, size=1, sha256="3" * 64, is_committed=True)
    needs = job(dependencies=(Dependency("lib", "J0", On.SUCCESS),), settled=NOW)
    assert sources(inputs=[given], job=needs) == {
        "job file": {"digest": {"sha256": hashlib.sha256(b"true").hexdigest()}},
        "/input/src.tar": {"digest": {"sha256": "3" * 64}},
        "dependency lib": {"uri": "https://penstock.example/v1/jobs/J0"},
    }


def of_github(**env: str) -> dict[str, Any]:
    spec = replace(SPEC, request={"env": {"GITHUB_SHA": SHA, **env}})
    origin = Origin("o/r", "https://github.com/o/r", SHA, env.get("GITHUB_BRANCH", ""), (), clone=True)
    found: dict[str, Any] = sources(spec=spec, origin=origin)["source"]
    return found


def test_a_commit_that_somebody_pushed_to_a_branch() -> None:
    known = {"uri": "git+https://github.com/o/r", "digest": {"gitCommit": SHA}}
    assert of_github() == known
    on_main = {**known, "annotations": {"ref": "refs/heads/main"}}
    assert of_github(GITHUB_BRANCH="main") == on_main
    assert of_github(GITHUB_BRANCH="main", GITHUB_PULL_REQUEST="7") == on_main


def test_a_commit_of_a_pull_request_has_no_ref() -> None:
    """SEC-2: anybody may have written it."""
    assert of_github(GITHUB_PULL_REQUEST="7")["annotations"] == {"pullRequest": "7"}


def test_a_job_file_cannot_hide_that_it_is_of_a_pull_request() -> None:
    spec = replace(SPEC, env={"GITHUB_PULL_REQUEST": ""}, request={"env": {"GITHUB_PULL_REQUEST": "7"}})
    origin = Origin("o/r", "https://github.com/o/r", SHA, "", (), clone=True)
    assert sources(spec=spec, origin=origin)["source"]["annotations"] == {"pullRequest": "7"}


def test_a_commit_that_the_submitter_vouched_for() -> None:
    vouched = job(vouched={"sha": SHA, "ref": "refs/tags/v1"}, settled=NOW)
    expected = {"digest": {"gitCommit": SHA}, "annotations": {"ref": "refs/tags/v1"}}
    assert sources(job=vouched)["source"] == expected
    assert sources(job=job(vouched={"sha": SHA}, settled=NOW))["source"] == {"digest": {"gitCommit": SHA}}


def test_tags_vouch_for_nothing() -> None:
    """SEC-2: anybody may set them."""
    assert "source" not in sources(job=job(tags={"sha": SHA, "ref": "refs/heads/main"}, settled=NOW))


def agent(version: str) -> Any:
    found = replace(GONE, session=replace(GONE.session, agent=version))
    return said(leases=[(WORKER, found)])["predicate"]["runDetails"]["builder"]["builderDependencies"]


def test_the_digest_of_an_agent_that_the_service_no_longer_has_is_not_known() -> None:
    assert agent("00000000") == [{"name": "agent", "annotations": {"version": "00000000"}}]
    assert agent("") == []


def test_of_a_unit_that_is_forgotten_its_lease_is_left() -> None:
    (left,) = said(leases=[(WORKER, None)])["predicate"]["runDetails"]["penstock_leases"]
    assert left == {
        "name": "worker",
        "type": "ubuntu",
        "pool": "target/ubuntu",
        "slot": "1",
        "fence": 7,
        "unit": "w-1",
    }


def test_a_unit_is_put_back_once_it_is_gone_or_kept_for_the_next() -> None:
    """UNIT-2: an older record is not of this lease."""

    def is_clean(state: UnitState, proof: CleanProof | None) -> bool:
        found = replace(GONE, state=state, cleaning=replace(GONE.cleaning, proof=proof))
        return "cleaned" in said(leases=[(WORKER, found)])["predicate"]["runDetails"]["penstock_leases"][0]

    assert {state for state in UnitState if is_clean(state, PROOF)} == {UnitState.GONE, UnitState.IDLE}
    assert not is_clean(UnitState.GONE, None)


def test_what_is_signed_is_what_dsse_says() -> None:
    """The example of the protocol, and a length that counts bytes."""
    signed = statement.signed_bytes(b"hello world", "http://example.com/HelloWorld")
    assert signed == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    body = statement.payload({"name": "größe"})
    assert body == '{"name":"größe"}'.encode()
    assert statement.signed_bytes(body) == b"DSSEv1 28 application/vnd.in-toto+json 18 " + body


def test_a_key_as_text() -> None:
    public = ec.generate_private_key(ec.SECP256R1()).public_key()
    text = statement.pem(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
    assert text.encode() == public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
