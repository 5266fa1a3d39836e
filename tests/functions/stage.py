"""A service on which every operation has something to work on, and a request for each."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from penstock.api import openapi
from penstock.api.app import Operation
from penstock.domain.github import commits
from penstock.domain.github.deliveries import Delivery, Event
from penstock.domain.site.site import GitHubApp
from penstock.domain.units.units import Unit
from penstock.domain.users.users import WHOLE, user_key
from penstock.kernel.rows import Create
from penstock.ports import GitHubRequest, GitHubResponse
from penstock.system import NoForge
from penstock.testing.site import site_toml
from penstock.testing.twin import START
from penstock.usecases.units import drivers
from penstock.usecases.users import lifecycle
from tests.functions.service import SITE, WORKER_TOKEN, Answer, Service, token_of

BYTES = b"what the job made"


DIGEST = hashlib.sha256(BYTES).hexdigest()


BODIES: dict[str, Any] = {
    "submit_job": {"script": "#!/bin/sh\n", "resources": ["licence"], "tags": {"a": "b"}},
    "resize_pool": {"limit": 3, "reason": "one more came"},
    "pause_pool": {"reason": "it is rewired"},
    "resume_pool": {"reason": "it works"},
    "pause_site": {"reason": "the network is rebuilt"},
    "resume_site": {"reason": "it works"},
    **{f"{verb}_{kind}": {"reason": "a new image"} for verb in ("disable", "drain") for kind in ("factory", "well")},
    **{f"enable_{kind}": {"reason": "it works"} for kind in ("factory", "well")},
    "apply_site": {"toml": SITE + "\n[limits]\nboot = 60\n"},
    "begin_factory_test": {"target": "linux", "keep_on_failure": 60},
    "create_user": {"name": "eve", "privileges": ["target.lab"]},
    "accept_repository": {"id": 77},
    "link_account": {"id": 4242, "login": "ada-l"},
    "create_token": {"name": "ci", "scopes": ["read", "submit:oxide:hubris"], "expires_in": 60},
    "begin_login": {"host": "bench"},
    "approve_login": {"scopes": ["read"], "expires_in": 60},
    "disable_user": {"leases": "end"},
    "rename_user": {"name": "adele"},
    "sign_output": {"expires_in": 60},
    "hold_job": {"reason": "looking"},
    "retry_job": {"dependencies": {}},
    "acquire_lease": {"resources": ["licence"], "for": "10m", "tags": {"a": "b"}},
    "renew_lease": {"for": "1h"},
    "extend_job": {"for": "6h"},
    "ask_privilege": {"reason": "the new boards", "owner": "oxide:hubris"},
    "refuse_privilege": {"reason": "ask again in May"},
    "pin_artifact": {"reason": "looking", "for": 60},
    "sign_artifact": {"expires_in": 60},
    **{f"hold_{kind}": {"reason": "looking", "for": 60} for kind in ("worker", "resource")},
    **{f"{verb}_{kind}": {"reason": "it is old"} for verb in ("drain", "recycle") for kind in ("worker", "resource")},
    "agent_events": {"first": 1, "events": [{"time": "2026-01-01T00:00:00Z", "stream": "stdout", "payload": "hi"}]},
    "agent_outputs": {"files": [{"path": "/work/x", "size": len(BYTES), "sha256": DIGEST}]},
    "send_input": {"name": "data", "size": len(BYTES), "sha256": DIGEST},
    "send_parts": {"name": "data", "first": 1, "sha256": [DIGEST]},
    "commit_input": {"name": "data"},
    "agent_inputs": {"after": ""},
    "publish_output": {"series": "nightly", "version": "v1", "name": "x.bin"},
    "sign_published": {"expires_in": 60},
    "set_access": {"series": "nightly", "access": "private"},
    "put_value": {"value": "42"},
    "review_job": {"refuse": False},
    "agent_get_value": {"name": "answer"},
    "agent_put_value": {"name": "answer", "value": "42"},
    "agent_find_cache": {"name": "deps", "paths": ["/work/deps"], "key": "k", "restore_keys": [""]},
    "agent_save_cache": {"name": "deps", "paths": ["/work/deps"], "size": len(BYTES), "sha256": DIGEST, "key": "new"},
    "agent_identity": {"audience": "sts.amazonaws.com"},
    "agent_finish": {"result": "succeeded", "exit_code": 0},
    "agent_host": {"session": "s" * 43},
}


CONSOLE = {"penstock-console": "1"}

HEADERS = {
    "begin_session": CONSOLE,
    "end_session": CONSOLE,
    "finish_github": {"cookie": "__Host-penstock-github=begun.kept"},
}

BEFORE = {
    "unpin_artifact": ("PUT", "/v1/artifacts/{artifact}/pin", "pin_artifact"),
    "get_account_diff": ("POST", "/v1/account/diff", ""),
}
"""The request before that of an operation: its method, its path, and whose body it has."""

QUERIES = {"finish_github": {"code": "good", "state": "begun"}}

APP = """
[github]
app = 1
repositories = []
client_id = "Iv1.a"
"""


class Forge(NoForge):
    """A GitHub where whoever comes back is ada-l."""

    def exchange(self, app: GitHubApp, code: str, verifier: str, redirect: str) -> str:
        return "ghu_1" if (code, verifier) == ("good", "kept") else ""

    def call(self, app: GitHubApp, ask: GitHubRequest) -> GitHubResponse:
        return GitHubResponse(200, {"id": 4242, "login": "ada-l"})


NAMES = {
    "published": "x.bin",
    "public": "x.bin",
    "jobs": "answer",
    "targets": "linux",
    "resource-types": "bench",
    "factories": "hand",
    "wells": "locks",
}


ENVIRONMENT = """
[environments.production]
owners = ["ada"]
reviewers = ["root"]
"""
ASKS = """#!/bin/sh
#: name = "deploy"
#: variety = "basic"
#: environment = "production"
"""


LAB = site_toml(
    factories={"lab": "hosts"},
    targets={"benches": {"factory": "lab", "names": ["bench-7"]}},
)


EVENT = Event("push", "", 0, 9, "oxide/hubris", 55, "ada", "a" * 40, "heads/main", "main", people=("ada",))


DELIVERY = Delivery(id="d-1", name="push", action="", event=EVENT, received=START, outcome="jobs")


OPERATIONS, AGENT_OPERATIONS = openapi.users(), openapi.agents()


EVERY = [*OPERATIONS, *AGENT_OPERATIONS]


def greet(service: Service, job: str) -> None:
    """The worker of a job says hello."""
    units = [row for row in service.twin.store.rows.values() if isinstance(row, Unit)]
    worker = next(row.id for row in units if (row.lease.job, row.lease.order) == (job, 0))
    key = drivers.bootstrap_key(service.twin.on.signing_key(), worker)
    hello = {"worker": worker, "key": key, "token": WORKER_TOKEN}
    assert service.ask("POST", "/v1/agent/hello", hello, as_=None).status == 200
    service.twin.run()


class Stage:
    """A service in which something of every kind exists: jobs that run and wait, a worker, a resource, an output."""

    def __init__(self, service: Service) -> None:
        self.service = service
        service.twin.store.commit([Create(DELIVERY), Create(commits.new_set(EVENT, START))])
        service.ask("POST", "/v1/users", {"name": "oxide:hubris"}, as_="root")
        self.job = service.submit(resources=["bench"], tags={"a": "b"})
        self.waiting = service.submit(resources=["bench"])
        self.given = service.submit(inputs=["data"])
        self.hello()
        path = f"/v1/agent/jobs/{self.job}"
        self.agent(f"{path}/events", BODIES["agent_events"])
        self.tested = ""
        self.login: dict[str, Any] = {}
        self.left_out: bool | str = False
        self.archive = self.save("old")
        assert self.agent(f"{path}/caches/commit", self.archived("old")).json["kept"]
        self.output = self.agent(f"{path}/outputs", BODIES["agent_outputs"]).json["uploads"][0]["id"]
        service.twin.objects.objects[f"artifacts/{self.output}"] = BYTES
        assert self.agent(f"{path}/outputs/commit", {"ids": [self.output]}).status == 200

    def agent(self, path: str, body: Any) -> Answer:
        return self.service.ask("POST", path, body, token=WORKER_TOKEN)

    def save(self, key: str, **more: Any) -> str:
        """Send an archive for a cache, and say its id."""
        body = {**BODIES["agent_save_cache"], "key": key, **more}
        self.archive = str(self.agent(f"/v1/agent/jobs/{self.job}/caches/save", body).json["id"])
        self.service.twin.objects.objects[f"artifacts/{self.archive}"] = BYTES
        return self.archive

    def print_lines(self, count: int) -> None:
        """The job that runs prints lines, after the one that it has printed."""
        for first in range(2, 2 + count, 500):
            lines = [BODIES["agent_events"]["events"][0] | {"payload": f"line {first + at}"} for at in range(500)]
            body = {"first": first, "events": lines}
            assert self.agent(f"/v1/agent/jobs/{self.job}/events", body).status == 200

    def begin_parts(self) -> str:
        """Begin to send an output in parts, and say its id."""
        (file,) = BODIES["agent_outputs"]["files"]
        asked = {"files": [{**file, "path": "/work/big", "composite": DIGEST}]}
        return str(self.agent(f"/v1/agent/jobs/{self.job}/outputs", asked).json["uploads"][0]["id"])

    def archived(self, key: str) -> dict[str, Any]:
        return {"id": self.archive, "name": "deps", "paths": ["/work/deps"], "key": key}

    def hello(self) -> None:
        self.greeting = {"worker": self.unit(0), "key": self.key(), "token": WORKER_TOKEN, "host": "here"}
        assert self.agent("/v1/agent/hello", self.greeting).status == 200
        self.service.twin.run()

    @property
    def is_over(self) -> bool:
        return bool(self.service.ask("GET", f"/v1/jobs/{self.job}").json["state"] == "settled")

    def end(self) -> None:
        """The job that runs ends well, if it has not ended."""
        if self.is_over:
            return
        assert self.agent(f"/v1/agent/jobs/{self.job}/finish", BODIES["agent_finish"]).status == 200
        self.service.twin.run()

    def publish(self, operation: str) -> None:
        """What operations on published files need, and those on a job that has ended."""
        if "publish" in operation or operation in ("get_provenance", "discard_job"):
            self.end()
        if "published" in operation or operation == "unpublish":
            self.service.ask("POST", f"/v1/jobs/{self.job}/outputs/{self.output}/publish", BODIES["publish_output"])

    def begun(self) -> dict[str, Any]:
        """A login that waits: its code and its secret."""
        self.login = self.login or self.service.ask("POST", "/v1/logins", BODIES["begin_login"], as_=None).json
        return self.login

    def lease(self) -> str:
        """A lease that is held without a job."""
        return str(self.service.ask("POST", "/v1/leases", BODIES["acquire_lease"], as_="root").json["id"])

    def unit(self, order: int) -> str:
        rows = self.service.twin.store.rows.values()
        return next(
            row.id for row in rows if isinstance(row, Unit) and (row.lease.job, row.lease.order) == (self.job, order)
        )

    def key(self) -> str:
        return drivers.bootstrap_key(self.service.twin.on.signing_key(), self.unit(0))

    def prepare(self, operation: Operation, values: dict[str, str]) -> None:
        """Have happen what must have happened before."""
        if operation.name == "get_factory_test":
            begun = self.service.ask("POST", f"/v1/factories/{values['name']}/test", as_="root")
            values["job"] = begun.json["id"]
        if operation.name in ("list_inputs", "send_input", "send_parts", "commit_input"):
            values["job"] = self.given
        if operation.name == "send_parts":
            self.service.ask("POST", f"/v1/jobs/{self.given}/inputs", BODIES["send_input"] | {"composite": DIGEST})
        if operation.name == "commit_input":
            sent = self.service.ask("POST", f"/v1/jobs/{self.given}/inputs", BODIES["send_input"]).json
            self.service.twin.objects.objects[sent["url"].removeprefix("memory://")] = BYTES
        self.publish(operation.name)
        if operation.name == "get_value":
            self.service.ask("PUT", f"/v1/jobs/{self.job}/store/answer", BODIES["put_value"])
        self.submit_more(operation.name, values)
        if operation.name == "send_canary":
            canary = 'canary = { every = "1h", script = "true" }'
            self.service.ask(
                "PUT", "/v1/config", {"toml": SITE.replace("limit = 2", f"limit = 2\n{canary}", 1)}, as_="root"
            )
        if operation.name in BEFORE:
            method, path, body = BEFORE[operation.name]
            self.service.ask(method, path.format(**values), BODIES.get(body), as_="root")
        if operation.name.startswith("release_"):
            self.service.ask(
                "POST", operation.path.format(**values).replace("release", "hold"), {"reason": "x"}, as_="root"
            )
        self.prepare_users(operation.name, values)
        if operation.name == "agent_host":
            self.service.ask("PUT", "/v1/config", {"toml": SITE + LAB}, as_="root")

    def submit_more(self, operation: str, values: dict[str, str]) -> None:
        """A job of a set, one that waits for a review, or so many lines that a segment of the log is full."""
        if operation in ("read_segment", "read_shared_segment") and not self.is_over:
            self.print_lines(1000)
        if operation == "get_set":
            self.service.ask("POST", "/v1/jobs", BODIES["submit_job"] | {"tags": {"set": values["set"]}}, as_="root")
        if operation in ("get_review", "review_job", "list_reviews"):
            self.service.ask("PUT", "/v1/config", {"toml": SITE + ENVIRONMENT}, as_="root")
            values["job"] = self.service.ask("POST", "/v1/jobs", {"script": ASKS}).json["id"]

    def prepare_users(self, operation: str, values: dict[str, str]) -> None:
        """What operations on users and tokens need."""
        if operation == "take_login":
            self.service.ask("POST", f"/v1/logins/{values['code']}/approve", BODIES["approve_login"], as_="root")
        if operation in ("begin_github", "finish_github"):
            self.service.twin.on = replace(self.service.twin.on, forge=Forge())
            self.service.ask("PUT", "/v1/config", {"toml": SITE + APP}, as_="root")
            self.service.ask("PUT", "/v1/users/ada/github", BODIES["link_account"], as_="root")
        if operation == "refuse_privilege":
            self.service.ask("PUT", "/v1/privileges/target.lab/request", {"reason": "the new boards"})
        if operation == "revoke_token":
            values["token"] = self.service.ask("POST", "/v1/users/ada/tokens", as_="root").json["id"]
        if operation in ("enable_user", "remove_user"):
            values["name"] = "bob"
            self.service.ask("POST", "/v1/users/bob/disable", as_="root")
            self.service.twin.pass_time(180)
            lifecycle.advance(self.service.twin.on, user_key("bob"))

    def take(self, operation: Operation, *, as_nobody: bool = False) -> Answer:
        """Take an operation as the one who may, with everything that it needs; or with what is `left_out` of it."""
        values = self.values(operation)
        body = self.body(operation)
        self.prepare(operation, values)
        by_user = operation not in AGENT_OPERATIONS or operation.need != WHOLE
        token = token_of("root") if by_user else WORKER_TOKEN
        token = None if operation.open or as_nobody else token
        body = body if self.left_out is False else None if self.left_out is True else self.left_out
        path, headers = operation.path.format(**values), HEADERS.get(operation.name)
        query = self.query(operation.name)
        return self.service.ask(operation.method, path, body, token=token, as_=None, headers=headers, query=query)

    def query(self, operation: str) -> dict[str, str]:
        """What an operation's request asks for."""
        if operation in ("read_shared_events", "read_shared_segment"):
            return {"key": self.service.ask("GET", f"/v1/jobs/{self.job}/events", as_="root").json["key"]}
        return QUERIES.get(operation, {})

    def values(self, operation: Operation) -> dict[str, str]:
        """What stands in the path of an operation's request."""
        sort = operation.path.split("/")[2]
        return {
            "job": self.job, "output": self.output, "worker": self.unit(0), "resource": self.unit(1), "sort": "target",
            "name": {"pools": "linux", "canaries": "linux", "users": "ada", **NAMES}.get(sort, ""),
            "privilege": "target.lab",
            "host": "bench-7",
            "artifact": self.output, "owner": "ada", "series": "nightly", "version": "v1", "cache": self.archive,
            "set": "s-1", "segment": "0", "delivery": "d-1", "user": "oxide:hubris", "token": "",
            "code": self.begun()["code"] if "{code}" in operation.path else "",
            "lease": self.lease() if "{lease}" in operation.path else "",
        }  # fmt: skip

    def body(self, operation: Operation) -> Any:
        """The body of an operation's request."""
        parts = {"id": self.output, "first": 1, "sha256": [DIGEST]}
        said = {
            "agent_hello": self.greeting,
            "agent_commit": {"ids": [self.output]},
            "begin_session": {"token": token_of("ada")},
        }
        if operation.name == "take_login":
            said["take_login"] = {"secret": self.begun()["secret"]}
        body = {**said, **BODIES}.get(operation.name)
        if operation.name == "agent_parts":
            body = {**parts, "id": self.begin_parts()}
        if operation.name == "agent_commit_cache":
            self.save("newer")
            body = self.archived("newer")
        if operation.name == "agent_cache_parts":
            body = {**parts, "id": self.save("big", composite=DIGEST)}
        return body
