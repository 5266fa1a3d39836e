"""What agents call: on workers, for the attempt that they run, and on hosts; and who has a lease without a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, Literal

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2 as Event

from penstock.api.app import Authenticated, Router
from penstock.api.app import Caller as Person
from penstock.domain.commands import (
    MACHINE_CHARS,
    AgentFile,
    AgentHost,
    AgentLine,
    AgentParts,
    CommitCache,
    FindCache,
    Hello,
    SaveCache,
)
from penstock.domain.jobs.failures import Failure, from_agent
from penstock.domain.jobs.jobs import Result
from penstock.domain.replies import (
    Assignment,
    CacheDropped,
    CacheHit,
    CacheMiss,
    CacheRefused,
    CacheSaved,
    CacheTaken,
    CacheUpload,
    Empty,
    HostInstruction,
    IdentityToken,
    Idle,
    InputDownloads,
    LeaseRenewed,
    LinesReceived,
    NoValue,
    OutputUploads,
    PartUploads,
    ResourceList,
    ResultReceived,
    StoredValue,
)
from penstock.domain.users.users import HOST, SUBMIT, Need
from penstock.kernel import limits
from penstock.kernel.errors import Refused
from penstock.kernel.frozen import dataclass
from penstock.kernel.limits import Bound
from penstock.system import System
from penstock.usecases import caches
from penstock.usecases.artifacts import inputs, outputs
from penstock.usecases.github import tokens
from penstock.usecases.jobs import store
from penstock.usecases.jobs.flow import fenced
from penstock.usecases.jobs.store import NewValue
from penstock.usecases.users import oidc
from penstock.usecases.workers import agents, hosts
from penstock.usecases.workers.agents import Caller

router = Router("agents")

JOB = "/v1/agent/jobs/{job}"

FETCH_SECONDS = 300
"""How long the URL of the agent's file is good, in seconds. A client follows the redirect at once."""


def _worker(on: System, event: Event, path: Mapping[str, str], need: Need) -> Caller:
    del need
    scheme, _, token = (event.headers.get("authorization") or "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise Refused(401, "no-token", "show the worker's token: Authorization: Bearer <token>")
    return agents.authenticate(on, path["job"], token.strip())


Worker = Annotated[Caller, Authenticated(_worker, "For the job's worker only.", has_scopes=False)]
"""Whoever calls, who must be the worker of the job in the path."""


@dataclass(frozen=True)
class AgentEvents:
    """Lines of a job's log, in order."""

    first: Annotated[int, Bound(least=1, most=10**9), "The agent's number of the first line. Lines count from 1."]
    events: Annotated[list[AgentLine], "The lines."]


@dataclass(frozen=True)
class AgentGetValue:
    """A value of the job's store to read."""

    name: Annotated[str, Bound(most=64), "The value's name."]


@dataclass(frozen=True)
class AgentPutValue:
    """A value to put into the job's store."""

    name: Annotated[str, Bound(most=64), "The value's name."]
    value: Annotated[str, "The value."]
    secret: Annotated[bool, "Whether only the job may read it."] = False


@dataclass(frozen=True)
class AgentIdentity:
    """A request for an identity token."""

    audience: Annotated[str, Bound(most=255), "Who the token is for: its `aud`."]


@dataclass(frozen=True)
class AgentOutputs:
    """Outputs to upload."""

    files: Annotated[list[AgentFile], "The files."]


@dataclass(frozen=True)
class AgentCommit:
    """Outputs that were uploaded."""

    ids: Annotated[list[str], "The ids of their uploads."]


@dataclass(frozen=True)
class AgentInputs:
    """Which page of the job's inputs to list."""

    after: Annotated[str, Bound(most=64), "`next` of the page before it. By default the first page."] = ""


@dataclass(frozen=True)
class AgentFailure:
    """Why a job did not succeed. Unknown values are left out, and long ones are cut."""

    kind: Annotated[str, Bound(most=64), "The kind of failure, one of those in docs/users/failures.md."]
    evidence: Annotated[dict[str, Any], "What was observed, by name. Each kind has its own."] = field(
        default_factory=dict
    )
    task: Annotated[int | None, "The number of the task that ended the job. Tasks count from 0."] = None
    task_name: Annotated[str, "That task's name."] = ""
    lines: Annotated[list[str], "The last lines that it wrote."] = field(default_factory=list)


@dataclass(frozen=True)
class AgentFinish:
    """How a job ended."""

    result: Annotated[
        Literal["succeeded", "failed", "cancelled", "timed_out", "broken", "unprepared"],
        "How the script ended. `broken`: it did not begin, as something is wrong with the machine. `unprepared`: it "
        "did not begin, as the inputs could not be fetched.",
    ]
    exit_code: Annotated[int | None, "The script's exit code; null if it did not end by itself."] = None
    signal: Annotated[int | None, "The number of the signal that ended the script; null if none did."] = None
    task: Annotated[int | None, "The number of the task that ended the job. Tasks count from 0."] = None
    reason: Annotated[str | None, Bound(most=2000), "Why it ended that way, in a sentence."] = None
    broken: Annotated[
        str | None, Bound(most=MACHINE_CHARS), "What is wrong with the machine, however the script ended."
    ] = None
    failure: Annotated[AgentFailure | None, "Why it did not succeed."] = None
    outputs: Annotated[
        list[str],
        f"The ids of the last uploads of outputs, at most {limits.OUTPUTS_WITH_REPORT}. They are recorded with the "
        "end, or nothing is.",
    ] = field(default_factory=list)


@router.get("/v1/agent/agent.pyz", "Download the agent, by a redirect", status=302)
def agent_source(on: System) -> Response[Any]:
    file = on.agent_file
    if not file:  # while a deployment updates this function, its code may be newer than its settings
        raise Refused(503, "no-agent-file", "this function does not know yet where the agent is; try again in a minute")
    led = file.objects.download(file.name, FETCH_SECONDS, "agent.pyz")
    return Response(302, "text/plain", "", {"etag": f'"{file.name.removesuffix(".pyz")}"', "location": led.url})


@router.post("/v1/agent/hello", "Say hello, and get the job")
def agent_hello(on: System, ask: Hello) -> Assignment | Idle:
    return agents.hello(on, ask)


@router.post(f"{JOB}/events", "Send lines of the job's log", most=4 * limits.EVENT_BATCH_BYTES)
def agent_events(on: System, worker: Worker, ask: AgentEvents) -> LinesReceived:
    return agents.append_events(on, worker, ask.first, agents.parse_lines(ask.events))


@router.post(f"{JOB}/resources", "Get the metadata of the job's resources again")
def agent_resources(on: System, worker: Worker) -> ResourceList:
    return agents.resources(on, worker)


@router.post(f"{JOB}/inputs", "List what to fetch before the script begins")
def agent_inputs(on: System, worker: Worker, ask: AgentInputs) -> InputDownloads:
    return inputs.list_for_agent(on, worker.job, ask.after)


@router.post(f"{JOB}/store/get", "Read a value of the job's store")
def agent_get_value(on: System, worker: Worker, ask: AgentGetValue) -> StoredValue | NoValue:
    tokens.request(on, worker.job, ask.name)
    return store.read(on, worker.job, ask.name)


@router.post(f"{JOB}/store/put", "Put a value into the job's store")
def agent_put_value(on: System, worker: Worker, ask: AgentPutValue) -> Empty:
    store.put(on, worker.job, NewValue(ask.name, ask.value, ask.secret), fenced)
    return Empty()


@router.post(f"{JOB}/caches/find", "Find the entry of a cache to restore")
def agent_find_cache(on: System, worker: Worker, ask: FindCache) -> CacheHit | CacheMiss:
    return caches.find(on, worker.job, ask, ask.restore_keys)


@router.post(f"{JOB}/caches/save", "Begin to upload an archive for a cache")
def agent_save_cache(on: System, worker: Worker, ask: SaveCache) -> CacheUpload | CacheTaken | CacheRefused:
    return caches.begin(on, worker.job, ask)


@router.post(f"{JOB}/caches/parts", "Get URLs to upload parts of an archive to")
def agent_cache_parts(on: System, worker: Worker, ask: AgentParts) -> PartUploads:
    return caches.sign_parts(on, worker.job, ask)


@router.post(f"{JOB}/caches/commit", "Confirm that an archive was uploaded")
def agent_commit_cache(on: System, worker: Worker, ask: CommitCache) -> CacheSaved | CacheDropped:
    return caches.commit(on, worker.job, ask, ask.id)


@router.post(f"{JOB}/identity", "Get an identity token of the attempt")
def agent_identity(on: System, worker: Worker, ask: AgentIdentity) -> IdentityToken:
    return oidc.token(on, worker.job, ask.audience)


@router.post(f"{JOB}/heartbeat", "Renew the lease")
def agent_heartbeat(on: System, worker: Worker) -> LeaseRenewed:
    return agents.heartbeat(on, worker)


@router.post(f"{JOB}/outputs", "Begin to upload outputs")
def agent_outputs(on: System, worker: Worker, ask: AgentOutputs) -> OutputUploads:
    return outputs.begin(on, worker.job, ask.files)


@router.post(f"{JOB}/outputs/parts", "Get URLs to upload parts of an output to")
def agent_parts(on: System, worker: Worker, ask: AgentParts) -> PartUploads:
    return outputs.sign_parts(on, worker.job, ask)


@router.post(f"{JOB}/outputs/commit", "Confirm that outputs were uploaded")
def agent_commit(on: System, worker: Worker, ask: AgentCommit) -> Empty:
    return outputs.commit(on, worker.job, ask.ids)


@router.post(f"{JOB}/finish", "Report how the job ended")
def agent_finish(on: System, worker: Worker, ask: AgentFinish) -> ResultReceived:
    failure = _failure(ask.failure)
    if ask.result == "broken":
        return agents.report_broken(on, worker, ask.broken or ask.reason or "it did not say how", failure)
    if ask.result == "unprepared":
        return agents.report_unprepared(on, worker, ask.reason or "its inputs could not be had", failure)
    reason, result = ask.reason or f"the script {ask.result}", Result(ask.result)
    failure = None if result is Result.SUCCEEDED else failure
    return agents.report_finished(on, worker, result, reason, ask.exit_code, ask.broken or "", failure, ask.outputs)


def _failure(told: AgentFailure | None) -> Failure | None:
    return from_agent(told.kind, told.evidence, told.task, told.task_name, told.lines) if told else None


@router.post("/v1/agent/leases/{lease}/resources", "Get the metadata of what a lease without a job has", SUBMIT)
def lease_resources(on: System, user: Person, lease: str) -> ResourceList:
    return agents.lease_resources(on, user, lease)


@router.post("/v1/agent/hosts/{host}", "Get the next step of a host", HOST)
def agent_host(on: System, user: Person, host: str, ask: AgentHost) -> HostInstruction:
    return hosts.poll(on, user, host, ask)
