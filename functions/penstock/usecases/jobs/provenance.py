"""The signed statement about a job's outputs, made anew for whoever asks. [SEC-2]

It says what the rows say by then. They are kept for as long as the outputs are, except the rows of units, which go 30
days after their unit, and those of units that serve other jobs since: what was only there is left out.
"""

from __future__ import annotations

from penstock.domain.artifacts.inputs import Input
from penstock.domain.artifacts.retention import outputs_gone
from penstock.domain.jobs import origins, statement
from penstock.domain.jobs.jobs import Job, Outcome
from penstock.domain.jobs.statement import Made, Service
from penstock.domain.pools.pools import Lease
from penstock.domain.site.site import GitHubApp
from penstock.domain.units.units import Unit
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.kernel.frozen import dataclass
from penstock.ports import Attestor
from penstock.system import System, current_site
from penstock.usecases.artifacts import owners
from penstock.usecases.jobs import flow, jobs

STATEMENT_BYTES = 4 * 1024**2
"""The longest statement. A function's answer has at most 6 MB, and Base64 makes it longer by a third."""


@dataclass(frozen=True)
class Signed:
    """A statement as it was signed, the id of the key, and the signature."""

    body: bytes
    kid: str
    signature: bytes


def provenance(on: System, user: User, job_id: str, by: Service) -> Signed:
    """The statement about the outputs of a job that succeeded.

    Raises Refused 404, 409 for a job that did not succeed, 410 if what it ran is forgotten, 413 if there is too much to
    say, 422 without outputs or without a key.
    """
    key = _attestor(on)
    body = statement.payload(statement.statement(_made(on, jobs.find(on, user, job_id)), by))
    if len(body) > STATEMENT_BYTES:
        raise Refused(
            413, "statement-too-big", f"the names of the job's outputs take more than {STATEMENT_BYTES} bytes"
        )
    return Signed(body, key.kid(), key.sign(statement.signed_bytes(body)))


def public_key(on: System) -> tuple[str, str]:
    """The id of the key that signs, and its public half in PEM. Raises Refused 422 without a key."""
    key = _attestor(on)
    return key.kid(), statement.pem(key.public_key())


def _attestor(on: System) -> Attestor:
    if on.attestor is None:
        raise Refused(422, "no-provenance-key", "this deployment has no key to sign statements about outputs with")
    return on.attestor


def _made(on: System, job: Job) -> Made:
    """What the rows know of a job's outputs: those of the attempt that succeeded."""
    if job.end.outcome is not Outcome.SUCCEEDED:
        how = job.end.outcome or job.state
        why = f"only the outputs of a job that succeeded are vouched for; job {job.id} is {how}"
        raise Refused(409, "not-succeeded", why)
    if job.end.outputs_gone:
        raise outputs_gone(job.id, job.end.outputs_gone, job.end.discarded_by)
    outputs = [row for row in owners.outputs_of(on, job.id) if row.attempt == job.attempt]
    if not outputs:
        raise Refused(422, "no-outputs", f"job {job.id} has no outputs")
    spec = flow.spec_of(on, job)
    if spec is None:
        raise Refused(410, "spec-gone", f"the script of job {job.id} is no longer kept")
    app = current_site(on).github or GitHubApp(0)
    return Made(
        job=job,
        spec=spec,
        origin=origins.origin(job, spec, app) if job.provenance.check else None,
        outputs=outputs,
        inputs=on.store.find(f"job#{job.id}", "input#", Input),
        leases=[(lease, _unit(on, lease)) for lease in flow.lease_rows(on, job.id, job.attempt)],
    )


def _unit(on: System, lease: Lease) -> Unit | None:
    """The unit of a lease; None if it is forgotten, or was leased again since."""
    unit = flow.unit_of(on, lease)
    is_ours = unit and (unit.lease.job, unit.lease.attempt, unit.lease.order) == (lease.job, lease.attempt, lease.order)
    return unit if is_ours else None
