"""Every call that the service takes, as data. The OpenAPI document is made from it, routes are tested against it."""

from __future__ import annotations

from dataclasses import dataclass

from penstock import wire
from penstock.wire import agent as wire_agent


@dataclass(frozen=True)
class Operation:
    """One call: what is sent, what comes back, and which parameters there are besides those in the path.

    `also` are other answers that a parameter asks for: status, when, and what comes back.
    """

    name: str
    method: str
    path: str
    summary: str
    reply: type | None = None
    body: type | None = None
    status: int = 200
    query: tuple[str, ...] = ()
    open: bool = False
    also: tuple[tuple[int, str, type], ...] = ()


UNITS = (("worker", wire.WorkerView), ("resource", wire.ResourceView))
"""What factories and wells make, and how it is shown."""


def _custody(kind: str, view: type) -> tuple[Operation, ...]:
    """What operators do with a unit."""
    path = f"/v1/{kind}s/{{{kind}}}"
    remove = wire.RemoveUnit
    return (
        Operation(
            f"read_{kind}_events", "GET", f"{path}/events", f"Read a {kind}'s log", wire.UnitEventPage,
            query=("after", "limit"),
        ),
        Operation(f"hold_{kind}", "POST", f"{path}/hold", f"Keep a {kind} as it is", view, wire.HoldUnit),
        Operation(f"release_{kind}", "POST", f"{path}/release", f"Let a {kind} go", view, wire.ReleaseUnit),
        Operation(f"drain_{kind}", "POST", f"{path}/drain", f"Lend a {kind} to nobody any more", view, remove),
        Operation(f"recycle_{kind}", "POST", f"{path}/recycle", f"Destroy a {kind} now", view, remove),
    )  # fmt: skip


FILE = "{owner}/{series}/{version}/{name}"
PUBLISHED = f"/v1/published/{FILE}"
PUBLIC_FILE = f"/v1/public/file/{FILE}"

SORTS = ("targets", "resource-types", "factories", "wells")
"""What a site is made of."""

SHOWN = {"factories": wire.MakerView, "wells": wire.MakerView, "resource-types": wire.ResourceTypeView}
"""How one of them is shown, if not as all are listed."""

OPERATIONS = (
    Operation(
        "submit_job",
        "POST",
        "/v1/jobs",
        "Submit a job, or (plan=true) say what would become of it",
        wire.Created,
        wire.SubmitJob,
        201,
        query=("plan",),
        also=((200, "planned: nothing was written", wire.PlanView),),
    ),
    Operation(
        "list_jobs",
        "GET",
        "/v1/jobs",
        "List your jobs, newest first",
        wire.JobPage,
        query=("state", "target", "tag", "owner", "limit", "page"),
    ),
    Operation("get_job", "GET", "/v1/jobs/{job}", "Show a job", wire.JobView),
    Operation("cancel_job", "POST", "/v1/jobs/{job}/cancel", "Cancel a job", wire.JobView),
    Operation(
        "hold_job",
        "POST",
        "/v1/jobs/{job}/hold",
        "Hold what a job has when its script has ended",
        wire.JobView,
        wire.HoldJob,
    ),
    Operation("release_job", "POST", "/v1/jobs/{job}/release", "Hold nothing of a job any more", wire.JobView),
    Operation("retry_job", "POST", "/v1/jobs/{job}/retry", "Submit a job once more", wire.Created, status=201),
    Operation("explain_job", "GET", "/v1/jobs/{job}/why", "Say why a job is where it is", wire.WhyView),
    Operation(
        "read_events",
        "GET",
        "/v1/jobs/{job}/events",
        "Read a job's log",
        wire.EventPage,
        query=("after", "limit", "last"),
    ),
    Operation(
        "list_outputs", "GET", "/v1/jobs/{job}/outputs", "List a job's outputs", wire.OutputPage, query=("page",)
    ),
    Operation(
        "sign_output",
        "POST",
        "/v1/jobs/{job}/outputs/{output}/sign",
        "Get a URL for an output",
        wire.SignedOutput,
        wire.SignOutput,
    ),
    Operation(
        "publish_output",
        "POST",
        "/v1/jobs/{job}/outputs/{output}/publish",
        "Publish an output",
        wire.PublishedView,
        wire.PublishOutput,
        201,
        also=((200, "it was published already, with the same bytes", wire.PublishedView),),
    ),
    Operation(
        "list_published",
        "GET",
        "/v1/published",
        "List what an owner published, by name",
        wire.PublishedPage,
        query=("owner", "series", "version", "limit", "page"),
    ),
    Operation("get_published", "GET", PUBLISHED, "Show a published file", wire.PublishedView),
    Operation("unpublish", "DELETE", PUBLISHED, "Withdraw a published file", wire.PublishedView),
    Operation(
        "sign_published",
        "POST",
        f"{PUBLISHED}/sign",
        "Get a URL for a published file",
        wire.SignedOutput,
        wire.SignOutput,
    ),
    Operation("list_access", "GET", "/v1/series/{owner}", "Show who may read an owner's series", wire.AccessPage),
    Operation("set_access", "PUT", "/v1/series/{owner}", "Say who may read a series", wire.AccessPage, wire.SetAccess),
    Operation("read_published", "GET", PUBLIC_FILE, "Be led to a published file", status=302, open=True),
    Operation("look_at_published", "HEAD", PUBLIC_FILE, "Look whether a file is published", open=True),
    Operation("list_inputs", "GET", "/v1/jobs/{job}/inputs", "List what is sent with a job", wire.InputList),
    Operation(
        "send_input",
        "POST",
        "/v1/jobs/{job}/inputs",
        "Get a URL to send an input to",
        wire.InputUpload,
        wire.NewInput,
    ),
    Operation(
        "send_parts",
        "POST",
        "/v1/jobs/{job}/inputs/parts",
        "Get URLs to send parts of an input to, at most 100 at once",
        wire.PartUploads,
        wire.InputParts,
    ),
    Operation(
        "commit_input",
        "POST",
        "/v1/jobs/{job}/inputs/commit",
        "Say that an input was sent",
        wire.InputList,
        wire.InputName,
    ),
    Operation("list_values", "GET", "/v1/jobs/{job}/store", "List a job's values", wire.ValuePage),
    Operation("get_value", "GET", "/v1/jobs/{job}/store/{name}", "Show a value of a job", wire.ValueView),
    Operation(
        "put_value",
        "PUT",
        "/v1/jobs/{job}/store/{name}",
        "Put a value into a job's store",
        wire.ValueView,
        wire.PutValue,
    ),
    Operation("get_timings", "GET", "/v1/jobs/{job}/timings", "Show how long each step took", wire.TimingsView),
    Operation(
        "list_artifacts",
        "GET",
        "/v1/artifacts",
        "List your artifacts, newest first",
        wire.ArtifactPage,
        query=("by", "limit", "page"),
    ),
    Operation("get_artifact", "GET", "/v1/artifacts/{artifact}", "Show an artifact", wire.ArtifactView),
    Operation(
        "explain_artifact", "GET", "/v1/artifacts/{artifact}/why", "Say why an artifact is kept", wire.ArtifactWhy
    ),
    Operation(
        "pin_artifact", "PUT", "/v1/artifacts/{artifact}/pin", "Keep an artifact", wire.ArtifactView, wire.PinArtifact
    ),
    Operation("unpin_artifact", "DELETE", "/v1/artifacts/{artifact}/pin", "Keep an artifact no longer", query=("by",)),
    Operation(
        "sign_artifact",
        "POST",
        "/v1/artifacts/{artifact}/sign",
        "Get a URL for an artifact",
        wire.SignedOutput,
        wire.SignOutput,
    ),
    Operation(
        "list_artifacts_to_go",
        "GET",
        "/v1/artifacts-to-go",
        "Say what the sweep would delete within some seconds",
        wire.ForeseenView,
        query=("within",),
    ),
    Operation(
        "list_caches",
        "GET",
        "/v1/caches",
        "List what your caches have, newest first",
        wire.CachePage,
        query=("owner", "limit", "page"),
    ),
    Operation("get_cache", "GET", "/v1/caches/{cache}", "Show an entry of a cache", wire.CacheView),
    Operation("delete_cache", "DELETE", "/v1/caches/{cache}", "Delete an entry of a cache", wire.CacheView),
    Operation("list_pools", "GET", "/v1/pools", "List the pools", wire.PoolPage),
    Operation("get_pool", "GET", "/v1/pools/{sort}/{name}", "Show a pool, its holders and its queue", wire.PoolView),
    Operation(
        "resize_pool", "PUT", "/v1/pools/{sort}/{name}/limit", "Set a pool's limit", wire.PoolView, wire.PoolLimit
    ),
    Operation("pause_pool", "POST", "/v1/pools/{sort}/{name}/pause", "Stop granting from a pool", wire.PoolView),
    Operation("resume_pool", "POST", "/v1/pools/{sort}/{name}/resume", "Grant from a pool again", wire.PoolView),
    Operation(
        "list_commits",
        "GET",
        "/v1/github/commits",
        "List the commits that jobs came from",
        wire.CommitPage,
        query=("limit", "page"),
    ),
    Operation(
        "list_deliveries",
        "GET",
        "/v1/github/deliveries",
        "List what GitHub said",
        wire.DeliveryPage,
        query=("limit", "page"),
    ),
    Operation(
        "redeliver",
        "POST",
        "/v1/github/deliveries/{delivery}/redeliver",
        "Take a delivery once more",
        wire.DeliveryView,
    ),
    Operation("list_canaries", "GET", "/v1/canaries", "List the canaries", wire.CanaryPage),
    Operation("send_canary", "POST", "/v1/canaries/{sort}/{name}/send", "Send a canary now", wire.CanaryView),
    Operation("get_graph", "GET", "/v1/graph", "Show who waits for what, and who has it", wire.GraphView),
    Operation("list_workers", "GET", "/v1/workers", "List the workers", wire.WorkerPage, query=("page",)),
    Operation("get_worker", "GET", "/v1/workers/{worker}", "Show a worker", wire.WorkerView),
    Operation("list_resources", "GET", "/v1/resources", "List the resources", wire.ResourcePage, query=("page",)),
    Operation("get_resource", "GET", "/v1/resources/{resource}", "Show a resource", wire.ResourceView),
    *(operation for kind, view in UNITS for operation in _custody(kind, view)),
    Operation("get_site", "GET", "/v1/config", "Show the site's configuration", wire.SiteView),
    Operation(
        "apply_site",
        "PUT",
        "/v1/config",
        "Check (check=true) or apply the site's configuration",
        wire.SiteChanges,
        wire.ApplySite,
        query=("check",),
    ),
    *(
        Operation(f"list_{sort.replace('-', '_')}", "GET", f"/v1/{sort}", f"List the {sort}", wire.EntryPage)
        for sort in SORTS
    ),
    *(
        Operation(
            f"get_{sort.replace('-', '_')[:-1]}",
            "GET",
            f"/v1/{sort}/{{name}}",
            "Show one of them",
            SHOWN.get(sort, wire.Entry),
        )
        for sort in SORTS
    ),
    Operation(
        "test_factory",
        "POST",
        "/v1/factories/{name}/test",
        "Submit a job that shows whether a factory works",
        wire.FactoryTestStarted,
        wire.NewFactoryTest,
        201,
    ),
    Operation(
        "get_factory_test",
        "GET",
        "/v1/factories/{name}/tests/{job}",
        "Show how far a factory's test is",
        wire.FactoryTestView,
    ),
    Operation("who_am_i", "GET", "/v1/whoami", "Show whose token this is", wire.UserView),
    Operation("list_users", "GET", "/v1/users", "List the users", wire.UserPage, query=("page",)),
    Operation("create_user", "POST", "/v1/users", "Create a user", wire.UserView, wire.NewUser, 201),
    Operation("grant", "PUT", "/v1/users/{name}/privileges/{privilege}", "Grant a privilege", wire.UserView),
    Operation(
        "revoke",
        "DELETE",
        "/v1/users/{name}/privileges/{privilege}",
        "Revoke a privilege; with now=true also from the jobs that hold something under it",
        wire.RevokedView,
        query=("now",),
    ),
    Operation(
        "list_audit",
        "GET",
        "/v1/audit",
        "List what operators did, newest first",
        wire.AuditPage,
        query=("since", "who", "limit", "page"),
    ),
    Operation(
        "create_token",
        "POST",
        "/v1/users/{name}/tokens",
        "Make a token, shown once",
        wire.TokenView,
        wire.NewToken,
        201,
    ),
    Operation(
        "get_issuer",
        "GET",
        "/v1/oidc/.well-known/openid-configuration",
        "What signs identity tokens, for whoever checks them",
        wire.IssuerView,
        open=True,
    ),
    Operation(
        "get_issuer_keys",
        "GET",
        "/v1/oidc/.well-known/jwks.json",
        "The public keys that identity tokens are checked with",
        wire.KeySetView,
        open=True,
    ),
    Operation("get_openapi", "GET", "/v1/openapi.json", "This document", open=True),
)

AGENT_OPERATIONS = (
    Operation("agent_source", "GET", "/v1/agent/agent.pyz", "The agent's own program", open=True),
    Operation(
        "agent_hello", "POST", "/v1/agent/hello", "Say hello and get the job", body=wire_agent.AgentHello, open=True
    ),
    Operation("agent_events", "POST", "/v1/agent/jobs/{job}/events", "Send lines", body=wire_agent.AgentEvents),
    Operation("agent_resources", "POST", "/v1/agent/jobs/{job}/resources", "Ask anew what is known of the resources"),
    Operation(
        "agent_inputs",
        "POST",
        "/v1/agent/jobs/{job}/inputs",
        "Ask what to fetch before the script begins",
        body=wire_agent.AgentInputs,
    ),
    Operation(
        "agent_get_value",
        "POST",
        "/v1/agent/jobs/{job}/store/get",
        "Read a value of the job's store",
        body=wire_agent.AgentGetValue,
    ),
    Operation(
        "agent_put_value",
        "POST",
        "/v1/agent/jobs/{job}/store/put",
        "Put a value into the job's store",
        body=wire_agent.AgentPutValue,
    ),
    Operation(
        "agent_find_cache",
        "POST",
        "/v1/agent/jobs/{job}/caches/find",
        "Look for what a cache has",
        body=wire_agent.AgentFindCache,
    ),
    Operation(
        "agent_save_cache",
        "POST",
        "/v1/agent/jobs/{job}/caches/save",
        "Ask leave to send an archive for a cache",
        body=wire_agent.AgentSaveCache,
    ),
    Operation(
        "agent_commit_cache",
        "POST",
        "/v1/agent/jobs/{job}/caches/commit",
        "Say that an archive was sent",
        body=wire_agent.AgentCommitCache,
    ),
    Operation(
        "agent_identity",
        "POST",
        "/v1/agent/jobs/{job}/identity",
        "Ask for an identity token of the attempt",
        body=wire_agent.AgentIdentity,
    ),
    Operation("agent_heartbeat", "POST", "/v1/agent/jobs/{job}/heartbeat", "Renew the lease"),
    Operation(
        "agent_outputs", "POST", "/v1/agent/jobs/{job}/outputs", "Ask leave to send files", body=wire_agent.AgentOutputs
    ),
    Operation(
        "agent_parts",
        "POST",
        "/v1/agent/jobs/{job}/outputs/parts",
        "Ask leave to send parts of a file",
        body=wire_agent.AgentParts,
    ),
    Operation(
        "agent_commit",
        "POST",
        "/v1/agent/jobs/{job}/outputs/commit",
        "Say that files were sent",
        body=wire_agent.AgentCommit,
    ),
    Operation("agent_host", "POST", "/v1/agent/hosts/{host}", "Ask what a host is to do", body=wire_agent.AgentHost),
    Operation("agent_finish", "POST", "/v1/agent/jobs/{job}/finish", "Say how it ended", body=wire_agent.AgentFinish),
)
