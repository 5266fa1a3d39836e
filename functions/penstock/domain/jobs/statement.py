"""What the service states of a job's outputs: who had them made, from what, and on what. [SEC-2]

A statement is in the form that public verifiers know: an in-toto Statement v1 with SLSA provenance v1, signed in a DSSE
envelope. docs/users/provenance.md has the meaning of each field.
Sources: https://in-toto.io/Statement/v1, https://slsa.dev/spec/v1.0/provenance,
https://github.com/secure-systems-lab/dsse/blob/master/protocol.md

Everything in it is what rows say. What a job says of itself, such as its tags and its log, is not.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from penstock.domain.artifacts.artifacts import Artifact
from penstock.domain.artifacts.content import Content
from penstock.domain.artifacts.inputs import Input
from penstock.domain.jobs.jobs import Job, Spec
from penstock.domain.jobs.origins import Origin
from penstock.domain.pools.pools import WORKER, Lease
from penstock.domain.units.units import CleanProof, Unit, UnitState
from penstock.kernel.frozen import dataclass

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
PAYLOAD = "application/vnd.in-toto+json"
"""The types of a statement, of what it states, and of the payload of its envelope."""

BUILD = "urn:penstock:job:v1"
"""The type of build: what the parameters of a statement mean."""

PARTS = "sha256OfParts64MiB"
"""The digest of a file that was sent in parts: the SHA-256 of the SHA-256s of its parts, of 64 MiB each."""


@dataclass(frozen=True)
class Service:
    """Who states it: the service's URL, and the version and the digest (SHA-256 in hex) of the agent that it has."""

    url: str
    agent_version: str
    agent_digest: str


@dataclass(frozen=True)
class Made:
    """A job that succeeded, what it ran, and where that comes from, if it checks a commit."""

    job: Job
    spec: Spec
    origin: Origin | None
    outputs: Sequence[Artifact]
    inputs: Sequence[Input]
    leases: Sequence[tuple[Lease, Unit | None]]


def statement(made: Made, by: Service) -> dict[str, Any]:
    """The statement about the outputs of a job's last attempt, as JSON has it."""
    return {
        "_type": STATEMENT,
        "subject": [{"name": row.path, "digest": _digest(row.content)} for row in made.outputs],
        "predicateType": PREDICATE,
        "predicate": {"buildDefinition": _definition(made, by), "runDetails": _run(made, by)},
    }


def _definition(made: Made, by: Service) -> dict[str, Any]:
    request, asked = made.job.request, made.spec.request
    external = {
        "jobFile": made.spec.path,
        "target": request.target,
        "resources": [need.type for need in request.needs if need.order != WORKER],
        "env": sorted(asked.get("env") or {}),
        "matrix": dict(asked.get("matrix") or {}),
    }
    return {
        "buildType": BUILD,
        "externalParameters": {key: value for key, value in external.items() if value},
        "internalParameters": {"target": request.target_resolved, **_reviewed(made.job)},
        "resolvedDependencies": list(_sources(made, by)),
    }


def _reviewed(job: Job) -> dict[str, str]:
    """The environment that the job was approved for, and by whom."""
    return {"environment": job.review.environment, "approvedBy": job.review.by} if job.review else {}


def _sources(made: Made, by: Service) -> Iterator[dict[str, Any]]:
    """The job file, the commit, and the files that were there before the script."""
    source = hashlib.sha256(made.spec.source.encode()).hexdigest()
    yield {"name": "tasks" if made.spec.tasks else "job file", "digest": {"sha256": source}}
    commit = _commit(made)
    if commit:
        yield commit
    for row in made.inputs:
        yield {"name": f"/input/{row.name}", "digest": _digest(row.content)}
    for each in made.job.request.dependencies:
        yield {"name": f"dependency {each.name}", "uri": f"{by.url}/v1/jobs/{each.job}"}


def _commit(made: Made) -> dict[str, Any] | None:
    """The commit: the front end for GitHub knows it, or who submitted the job may vouch for it. [SEC-2]

    It has a ref only if somebody pushed it to that branch. A commit that came with a pull request has its number:
    anybody may have written it.
    """
    origin, said = made.origin, made.job.provenance.vouched
    if origin is None:
        return _source(said["sha"], ref=said.get("ref", "")) if "sha" in said else None
    ref = f"refs/heads/{origin.branch}" if origin.branch else ""
    pull = "" if ref else made.spec.request["env"].get("GITHUB_PULL_REQUEST", "")
    return {**_source(origin.sha, ref=ref, pullRequest=pull), "uri": f"git+{origin.url}"}


def _source(sha: str, **said: str) -> dict[str, Any]:
    known = {key: value for key, value in said.items() if value}
    return {"name": "source", "digest": {"gitCommit": sha}, **({"annotations": known} if known else {})}


def _digest(content: Content) -> dict[str, str]:
    return {PARTS: content.composite} if content.composite else {"sha256": content.sha256}


def _run(made: Made, by: Service) -> dict[str, Any]:
    job, times = made.job, made.job.times
    return {
        "builder": {"id": by.url, "builderDependencies": list(_agent(made.leases, by))},
        "metadata": {
            "invocationId": f"{by.url}/v1/jobs/{job.id}",
            "startedOn": _time(times.started),
            "finishedOn": _time(times.settled),
            "penstock_job": job.id,
            "penstock_name": job.name,
            "penstock_owner": job.owner,
            "penstock_attempt": job.attempt,
        },
        "penstock_leases": [_lease(lease, unit) for lease, unit in made.leases],
    }


def _agent(leases: Iterable[tuple[Lease, Unit | None]], by: Service) -> Iterator[dict[str, Any]]:
    """The program that ran the script. Its digest is known while the service still has the same."""
    for _, unit in leases:
        if unit and unit.session.agent:
            is_same = unit.session.agent == by.agent_version
            digest = {"digest": {"sha256": by.agent_digest}} if is_same else {}
            yield {"name": "agent", **digest, "annotations": {"version": unit.session.agent}}


def _lease(lease: Lease, unit: Unit | None) -> dict[str, Any]:
    """What the job had, and the record that it was put back clean, once it was. [UNIT-2]

    `unit` is None when its row is forgotten, or says more of later leases than of this one.
    """
    is_worker = lease.order == WORKER
    said = {
        "name": lease.name,
        "type": lease.type,
        "pool": lease.pool,
        "slot": lease.slot,
        "fence": lease.fence,
        "unit": lease.unit,
        "maker": unit and unit.maker,
        "machine": dict(unit.creation.metadata) if unit and is_worker else None,
        "made": _time(unit.creation.made) if unit else None,
        "cleaned": _proof(unit.cleaning.proof) if unit and unit.cleaning.proof and _is_put_back(unit) else None,
    }
    return {key: value for key, value in said.items() if value not in (None, {})}


def _is_put_back(unit: Unit) -> bool:
    return unit.state in (UnitState.GONE, UnitState.IDLE)


def _proof(proof: CleanProof) -> dict[str, Any]:
    return {"by": proof.by, "time": _time(proof.time), "checked": proof.checked, "lagSeconds": proof.lag}


def _time(at: datetime | None) -> str | None:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z") if at else None


def payload(said: Mapping[str, Any]) -> bytes:
    """A statement as the bytes that are signed."""
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()


def signed_bytes(body: bytes, kind: str = PAYLOAD) -> bytes:
    """What of an envelope is signed: its type and its payload, each with its length (PAE of DSSE)."""
    return b"DSSEv1 %d %s %d %s" % (len(kind.encode()), kind.encode(), len(body), body)


def pem(key: bytes) -> str:
    """A public key as text. `key` is a SubjectPublicKeyInfo in DER. Source: RFC 7468, section 13."""
    text = base64.b64encode(key).decode()
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    return "\n".join(["-----BEGIN PUBLIC KEY-----", *lines, "-----END PUBLIC KEY-----", ""])
