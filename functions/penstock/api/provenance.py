"""The signed statement about a job's outputs, and the key that others verify it with."""

from __future__ import annotations

import base64
from typing import Annotated

from penstock import agentfile
from penstock.api.app import Caller, Router
from penstock.domain.jobs import statement
from penstock.domain.jobs.statement import Service
from penstock.domain.users.users import READ
from penstock.kernel.frozen import dataclass
from penstock.system import System
from penstock.usecases.jobs import provenance

router = Router("provenance")


@dataclass(frozen=True)
class SignatureView:
    """A signature of a statement."""

    keyid: Annotated[str, "The id of the key, as `/v1/provenance/key` has it."]
    sig: Annotated[str, "The signature: ECDSA with SHA-256 on the curve P-256, in DER, in Base64."]


@dataclass(frozen=True)
class EnvelopeView:
    """A signed statement, as DSSE has it."""

    payloadType: Annotated[str, "Always `application/vnd.in-toto+json`."]
    payload: Annotated[str, "The statement in Base64: docs/users/provenance.md."]
    signatures: Annotated[list[SignatureView], "Its signature."]


@dataclass(frozen=True)
class ProvenanceKey:
    """The key that statements are verified with."""

    keyid: Annotated[str, "Its id."]
    pem: Annotated[str, "The public key, in PEM."]


@router.get("/v1/jobs/{job}/provenance", "Get the signed statement about a job's outputs", READ)
def get_provenance(on: System, user: Caller, job: str) -> EnvelopeView:
    by = Service(on.url, agentfile.version(), agentfile.digest())
    made = provenance.provenance(on, user, job, by)
    return EnvelopeView(statement.PAYLOAD, _text(made.body), [SignatureView(made.kid, _text(made.signature))])


@router.get("/v1/provenance/key", "Show the public key that statements about outputs are signed with")
def get_provenance_key(on: System) -> ProvenanceKey:
    return ProvenanceKey(*provenance.public_key(on))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
