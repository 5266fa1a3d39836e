"""Workers: woken by API Gateway. A worker acts only for the attempt that it was made for."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.utilities.typing import LambdaContext

from penstock import agentfile, bootstrap
from penstock.domain.jobs.failures import heard
from penstock.domain.jobs.jobs import Result
from penstock.kernel import limits
from penstock.kernel.errors import Refused
from penstock.usecases import caches
from penstock.usecases.artifacts import inputs, outputs
from penstock.usecases.caches import CacheRequest as Cache
from penstock.usecases.github import tokens
from penstock.usecases.jobs import store
from penstock.usecases.jobs.jobs import fence
from penstock.usecases.jobs.store import NewValue
from penstock.usecases.users import oidc, users
from penstock.usecases.workers import agents, hosts
from penstock.usecases.workers.agents import Caller, Hello
from penstock.usecases.workers.hosts import HostStatus
from penstock.web.entry import answer, body, reply, resolver
from penstock.wire.agent import (
    AgentCommit,
    AgentCommitCache,
    AgentEvents,
    AgentFindCache,
    AgentFinish,
    AgentGetValue,
    AgentHello,
    AgentHost,
    AgentIdentity,
    AgentInputs,
    AgentOutputs,
    AgentParts,
    AgentPutValue,
    AgentSaveCache,
)

log = Logger()
app = resolver()


def caller(job: str) -> Caller:
    """The worker whose request this is."""
    scheme, _, token = (app.current_event.headers.get("authorization") or "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise Refused(401, "no-token", "show the worker's token: Authorization: Bearer <token>")
    return agents.authenticate(bootstrap.aws(), job, token.strip())


@app.get("/v1/agent/agent.pyz")
def agent_source() -> Response[Any]:
    return Response(200, "application/zip", agentfile.build(), {"etag": f'"{agentfile.digest()}"'})


@app.post("/v1/agent/hello")
def agent_hello() -> Response[Any]:
    ask = body(app, AgentHello)
    told = Hello(
        ask.worker, ask.key, ask.token, ask.host, ask.previous, ask.cleaned, ask.version, ask.document, ask.signature,
        ask.broken, ask.copies,
    )  # fmt: skip
    return reply(agents.hello(bootstrap.aws(), told))


@app.post("/v1/agent/jobs/<job>/events")
def agent_events(job: str) -> Response[Any]:
    who = caller(job)
    ask = body(app, AgentEvents, 4 * limits.EVENT_BATCH_BYTES)
    return reply(agents.append_events(bootstrap.aws(), who, ask.first, agents.parse_lines(ask.events)))


@app.post("/v1/agent/jobs/<job>/heartbeat")
def agent_heartbeat(job: str) -> Response[Any]:
    return reply(agents.heartbeat(bootstrap.aws(), caller(job)))


@app.post("/v1/agent/jobs/<job>/resources")
def agent_resources(job: str) -> Response[Any]:
    return reply(agents.resources(bootstrap.aws(), caller(job)))


@app.post("/v1/agent/jobs/<job>/store/get")
def agent_get_value(job: str) -> Response[Any]:
    who = caller(job)
    name = body(app, AgentGetValue).name
    tokens.request(bootstrap.aws(), who.job, name)
    found = store.read(bootstrap.aws(), who.job, name)
    return reply({"there": True, "value": found[0], "secret": found[1]} if found else {"there": False})


@app.post("/v1/agent/jobs/<job>/store/put")
def agent_put_value(job: str) -> Response[Any]:
    who, ask = caller(job), body(app, AgentPutValue)
    store.put(bootstrap.aws(), who.job, NewValue(ask.name, ask.value, ask.secret), [fence])
    return reply({})


@app.post("/v1/agent/jobs/<job>/caches/find")
def agent_find_cache(job: str) -> Response[Any]:
    who, ask = caller(job), body(app, AgentFindCache)
    return reply(caches.find(bootstrap.aws(), who.job, Cache(ask.name, ask.paths, ask.key), ask.restore_keys))


@app.post("/v1/agent/jobs/<job>/caches/save")
def agent_save_cache(job: str) -> Response[Any]:
    who, ask = caller(job), body(app, AgentSaveCache)
    cache = Cache(ask.name, ask.paths, ask.key)
    return reply(caches.begin(bootstrap.aws(), who.job, cache, ask.size, ask.sha256, ask.composite))


@app.post("/v1/agent/jobs/<job>/caches/parts")
def agent_cache_parts(job: str) -> Response[Any]:
    who = caller(job)
    return reply(caches.sign_parts(bootstrap.aws(), who.job, body(app, AgentParts)))


@app.post("/v1/agent/jobs/<job>/caches/commit")
def agent_commit_cache(job: str) -> Response[Any]:
    who, ask = caller(job), body(app, AgentCommitCache)
    return reply(caches.commit(bootstrap.aws(), who.job, Cache(ask.name, ask.paths, ask.key), ask.id))


@app.post("/v1/agent/jobs/<job>/identity")
def agent_identity(job: str) -> Response[Any]:
    who = caller(job)
    return reply(oidc.token(bootstrap.aws(), who.job, body(app, AgentIdentity).audience))


@app.post("/v1/agent/jobs/<job>/outputs")
def agent_outputs(job: str) -> Response[Any]:
    who = caller(job)
    return reply(outputs.begin(bootstrap.aws(), who.job, body(app, AgentOutputs).files))


@app.post("/v1/agent/jobs/<job>/outputs/parts")
def agent_parts(job: str) -> Response[Any]:
    who = caller(job)
    return reply(outputs.sign_parts(bootstrap.aws(), who.job, body(app, AgentParts)))


@app.post("/v1/agent/jobs/<job>/outputs/commit")
def agent_commit(job: str) -> Response[Any]:
    who = caller(job)
    return reply(outputs.commit(bootstrap.aws(), who.job, body(app, AgentCommit).ids))


@app.post("/v1/agent/jobs/<job>/inputs")
def agent_inputs(job: str) -> Response[Any]:
    who = caller(job)
    return reply(inputs.list_for_agent(bootstrap.aws(), who.job, body(app, AgentInputs).after))


@app.post("/v1/agent/jobs/<job>/finish")
def agent_finish(job: str) -> Response[Any]:
    who = caller(job)
    ask = body(app, AgentFinish)
    said = ask.failure
    failure = heard(said.kind, said.evidence, said.task, said.task_name, said.lines) if said else None
    if ask.result == "broken":
        return reply(
            agents.report_broken(bootstrap.aws(), who, ask.broken or ask.reason or "it did not say how", failure)
        )
    if ask.result == "unprepared":
        return reply(
            agents.report_unprepared(bootstrap.aws(), who, ask.reason or "its inputs could not be had", failure)
        )
    reason, result = ask.reason or f"the script {ask.result}", Result(ask.result)
    failure = None if result is Result.SUCCEEDED else failure
    return reply(agents.report_finished(bootstrap.aws(), who, result, reason, ask.exit_code, ask.broken or "", failure))


@app.post("/v1/agent/hosts/<host>")
def agent_host(host: str) -> Response[Any]:
    on = bootstrap.aws()
    user = users.authenticate(on, app.current_event.headers.get("authorization"))
    ask = body(app, AgentHost)
    said = HostStatus(ask.session, ask.machine, ask.worker, ask.stage, ask.cleaned, ask.trouble, ask.leaving)
    return reply(hosts.poll(on, user, host, said))


@log.inject_lambda_context
@bootstrap.metered
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request."""
    return answer(app, event, context)
