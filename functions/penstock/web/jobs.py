"""What users do with jobs, over HTTP: parse, call, reply."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from penstock import bootstrap, wire
from penstock.domain.jobs.jobs import Job, State
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.kernel.errors import Refused
from penstock.usecases.artifacts import inputs, outputs
from penstock.usecases.jobs import cancel, holds, jobs, submit
from penstock.usecases.logs import logs
from penstock.usecases.users import users
from penstock.web import views
from penstock.web.entry import body, idempotency_key, is_on, page_after, reply, whole_number

router = APIGatewayHttpRouter()  # type: ignore[no-untyped-call]


def caller() -> User:
    """Whose request this is."""
    return users.authenticate(bootstrap.aws(), router.current_event.headers.get("authorization"))


def _job(job_id: str) -> Job:
    return jobs.find(bootstrap.aws(), caller(), job_id)


def _view(job: Job) -> wire.JobView:
    on = bootstrap.aws()
    return views.job(job, jobs.leases_of(on, job), holds.held_units(on, job))


@router.post("/v1/jobs")
def submit_job() -> Response[Any]:
    user = caller()
    ask = body(router, wire.SubmitJob)
    if is_on(router, "plan"):
        return reply(views.plan(submit.plan(bootstrap.aws(), user, ask)))
    key = idempotency_key(router)
    return reply(wire.Created(submit.submit(bootstrap.aws(), user, ask, key)), 201)


@router.get("/v1/jobs")
def list_jobs() -> Response[Any]:
    user, query = caller(), router.current_event.query_string_parameters or {}
    state = query.get("state", "")
    if state and state not in list(State):
        raise Refused(400, "bad-request", f"state is one of {', '.join(State)}")
    limit = whole_number(router, "limit", 50, 1, limits.PAGE)
    filters = {"state": state, "target": query.get("target", "")}
    page = page_after(router)
    rows, following = jobs.list_jobs(bootstrap.aws(), user, query.get("owner"), filters, _tags(), limit, page)
    return reply(wire.JobPage([views.job(row, jobs.leases_of(bootstrap.aws(), row)) for row in rows], following))


def _tags() -> dict[str, str]:
    """Tags asked for as tag=k=v, also more than once. The raw text is read, as the parsed one joins with commas."""
    found = {}
    for pair in parse_qs(router.current_event.raw_query_string, errors="replace").get("tag", []):
        name, equals, value = pair.partition("=")
        if not equals:
            raise Refused(400, "bad-request", "tag looks like tag=name=value")
        found[name] = value
    return found


@router.get("/v1/jobs/<job>")
def get_job(job: str) -> Response[Any]:
    return reply(_view(_job(job)))


@router.post("/v1/jobs/<job>/cancel")
def cancel_job(job: str) -> Response[Any]:
    return reply(_view(cancel.cancel(bootstrap.aws(), caller(), job)))


@router.post("/v1/jobs/<job>/hold")
def hold_job(job: str) -> Response[Any]:
    user, ask = caller(), body(router, wire.HoldJob)
    return reply(_view(holds.request(bootstrap.aws(), user, job, ask.reason, ask.for_, whatever=ask.whatever)))


@router.post("/v1/jobs/<job>/release")
def release_job(job: str) -> Response[Any]:
    return reply(_view(holds.release(bootstrap.aws(), caller(), job)))


@router.post("/v1/jobs/<job>/retry")
def retry_job(job: str) -> Response[Any]:
    user = caller()
    found = jobs.find(bootstrap.aws(), user, job)
    return reply(wire.Created(submit.retry(bootstrap.aws(), user, found)), 201)


@router.get("/v1/jobs/<job>/why")
def explain_job(job: str) -> Response[Any]:
    return reply(views.why(jobs.explain(bootstrap.aws(), _job(job))))


@router.get("/v1/jobs/<job>/events")
def read_events(job: str) -> Response[Any]:
    found = _job(job)
    after = whole_number(router, "after", 0, 0, 10**11)
    limit = whole_number(router, "limit", 500, 1, 1000)
    most = whole_number(router, "last", 0, 0, 10**11)
    if most:
        after = max(after, logs.count(bootstrap.aws(), job) - most)
    if not found.is_settled:
        logs.watch(bootstrap.aws(), job)
    events = [views.event(event) for event in logs.read(bootstrap.aws(), job, after, limit)]
    last = events[-1].seq if events else after
    return reply(wire.EventPage(events, last, found.state.value, found.outcome.value if found.outcome else None))


@router.get("/v1/jobs/<job>/outputs")
def list_outputs(job: str) -> Response[Any]:
    found, after = outputs.list_outputs(bootstrap.aws(), _job(job), page_after(router))
    return reply(wire.OutputPage([views.output(row) for row in found], after))


@router.post("/v1/jobs/<job>/outputs/<output>/sign")
def sign_output(job: str, output: str) -> Response[Any]:
    found = _job(job)
    ask = body(router, wire.SignOutput) if router.current_event.body else wire.SignOutput()
    signed = outputs.sign(bootstrap.aws(), found, output, ask.expires_in)
    return reply(wire.SignedOutput(**signed))


def _inputs(job: Job) -> Response[Any]:
    return reply(wire.InputList([views.input(row) for row in inputs.list_inputs(bootstrap.aws(), job)]))


@router.get("/v1/jobs/<job>/inputs")
def list_inputs(job: str) -> Response[Any]:
    return _inputs(_job(job))


@router.post("/v1/jobs/<job>/inputs")
def send_input(job: str) -> Response[Any]:
    found = _job(job)
    return reply(wire.InputUpload(**inputs.begin(bootstrap.aws(), found, body(router, wire.NewInput))))


@router.post("/v1/jobs/<job>/inputs/parts")
def send_parts(job: str) -> Response[Any]:
    found = _job(job)
    return reply(wire.PartUploads(**inputs.sign_parts(bootstrap.aws(), found, body(router, wire.InputParts))))


@router.post("/v1/jobs/<job>/inputs/commit")
def commit_input(job: str) -> Response[Any]:
    found = _job(job)
    inputs.commit(bootstrap.aws(), found, body(router, wire.InputName).name)
    return _inputs(found)


@router.get("/v1/jobs/<job>/timings")
def get_timings(job: str) -> Response[Any]:
    on, found = bootstrap.aws(), _job(job)
    return reply(views.timings(found, jobs.every_lease(on, found), on.world.now()))
