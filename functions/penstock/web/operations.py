"""Every call that users make, as data. The OpenAPI document is made from it, routes are tested against it."""

from __future__ import annotations

from penstock import wire
from penstock.web.joboperations import JOB_OPERATIONS
from penstock.web.operation import Operation

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
        Operation(
            f"release_{kind}", "POST", f"{path}/release", f"Let a {kind} go", view, wire.ReleaseUnit, bare=True
        ),
        Operation(
            f"drain_{kind}", "POST", f"{path}/drain", f"Lend a {kind} to nobody any more", view, remove, bare=True
        ),
        Operation(f"recycle_{kind}", "POST", f"{path}/recycle", f"Destroy a {kind} now", view, remove, bare=True),
    )  # fmt: skip


FILE = "{owner}/{series}/{version}/{name}"
PUBLISHED = f"/v1/published/{FILE}"
PUBLIC_FILE = f"/v1/public/file/{FILE}"

UNCHANGED = (304, "it is what the digest in If-None-Match says", None)
"""How whoever has the bytes already is answered."""

SORTS = {"targets": "target", "resource-types": "resource type", "factories": "factory", "wells": "well"}
"""What a site is made of: as paths say it, and what one of them is called."""

SHOWN = {"factories": wire.MakerView, "wells": wire.MakerView, "resource-types": wire.ResourceTypeView}
"""How one of them is shown, if not as all are listed."""

OPERATIONS = (
    *JOB_OPERATIONS,
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
        bare=True,
    ),
    Operation("list_access", "GET", "/v1/series/{owner}", "Show who may read an owner's series", wire.AccessPage),
    Operation("set_access", "PUT", "/v1/series/{owner}", "Say who may read a series", wire.AccessPage, wire.SetAccess),
    Operation(
        "read_published", "GET", PUBLIC_FILE, "Be led to a published file", status=302, open=True, also=(UNCHANGED,)
    ),
    Operation(
        "look_at_published", "HEAD", PUBLIC_FILE, "Look whether a file is published", open=True, also=(UNCHANGED,)
    ),
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
        bare=True,
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
    Operation(
        "accept_repository",
        "POST",
        "/v1/github/repositories/{user}/accept",
        "Have a user be another repository that has its name now",
        wire.UserView,
        wire.AcceptRepository,
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
            f"get_{one.replace(' ', '_')}",
            "GET",
            f"/v1/{sort}/{{name}}",
            "Show one of them",
            SHOWN.get(sort, wire.Entry),
        )
        for sort, one in SORTS.items()
    ),
    Operation(
        "test_factory",
        "POST",
        "/v1/factories/{name}/test",
        "Submit a job that shows whether a factory works",
        wire.FactoryTestStarted,
        wire.NewFactoryTest,
        201,
        bare=True,
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
        bare=True,
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
