"""A request for each operation of the API, on a deployed stack, where each has something to work on.

Functions there may do what infra/grants.py lets their roles do. Every URL in an answer is used too: it is signed with
these roles.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from penstock.aws.dynamodb import Table
from penstock.domain.artifacts.volumes import composite
from penstock.domain.github import commits
from penstock.domain.users.users import Standing, Status, User, Withdrawal
from penstock.kernel.rows import Create, Row
from penstock.local.cloud import REGION
from penstock.testing.site import site_toml
from penstock.testing.twin import START
from tests.e2e.conftest import SITE, Local
from tests.functions.stage import BODIES, BYTES, DELIVERY, DIGEST, EVENT, EVERY, HEADERS

OPERATIONS = {each.name: each for each in EVERY}
BENCHES = site_toml(factories={"floor": "hosts"}, targets={"benches": {"factory": "floor", "names": ["bench-7"]}})
MORE = """
[targets.lab.canary]
every = "1d"
script = "true"
[targets.warmed]
factory = "here"
limit = 1
warm = { max = 1, idle = "1h" }
[environments.production]
owners = ["ada"]
reviewers = ["admin"]
"""
CHANGES = {
    "amount = 6": "amount = 16",
    "limit = 4": "limit = 8",
    'heartbeat = "1s"': 'heartbeat = "10s"',
    'lease = "8s"': 'lease = "60s"',
}
"""What differs from the site of the other tests: room for all jobs at once, and heartbeats that meet no other call."""

WAITS = "#!/bin/bash\nuntil [ -e go ]; do sleep 0.1; done\n"
REVIEWED = '#!/bin/bash\n#: name = "deploy"\n#: variety = "basic"\n#: environment = "production"\ntrue\n'
PARTS = {"size": len(BYTES), "sha256": DIGEST, "composite": composite([DIGEST])}
"""A file that is sent in one part."""

LAB = {"sort": "target", "name": "lab"}
NAME = {"owner": "ada", "series": "nightly", "version": "v1", "name": "x.bin"}


class Everything:
    """The requests, in an order in which each finds what it needs. They leave nothing that runs."""

    def __init__(self, local: Local) -> None:
        self.local = local
        self.asked: set[str] = set()

    def ask(self, name: str, body: Any = None, /, *, shown: str = "", query: str = "", **values: str) -> Any:
        """Take an operation, with the body that it has in tests/functions/stage.py unless another is given."""
        operation = OPERATIONS[name]
        self.asked.add(name)
        headers = {**HEADERS.get(name, {}), **({"authorization": f"Bearer {shown}"} if shown else {})}
        sent = {"json": body if body is not None else BODIES.get(name)} if operation.body else {}
        answer = self.local.call(operation.method, operation.path.format(**values) + query, headers=headers, **sent)
        assert answer.status_code == operation.status, f"{name}: {answer.status_code} {answer.text}"
        if answer.is_redirect:
            return download(answer.headers["location"])
        return answer.json() if "json" in answer.headers.get("content-type", "") else answer.content

    def take(self) -> None:
        """Take every operation."""
        self.have_rows()
        self.users()
        self.login()
        self.session()
        self.site()
        self.github()
        self.logs_by_key()
        self.jobs()
        self.inputs()
        self.units()
        self.warm_unit()
        self.agents()
        self.published()
        self.pools()
        self.leases()
        self.stops()

    def rest(self) -> None:
        """Wait until nothing runs any more, and nothing is left of it."""
        left = {"workers", "resources"}
        self.local.until(lambda: not any(self.local.call("GET", f"/v1/{each}").json()["items"] for each in left))

    def have_rows(self) -> None:
        """What takes too long to come about here, or GitHub says: a user who may be removed, a commit, a delivery.

        Needs the deployer's AWS settings in the environment.
        """
        table = Table(self.local.output("TableName"), REGION)
        gone = Status(Standing.DISABLED, "admin", START)
        over = Withdrawal((), ends_live=True, is_last=True)
        rows: Sequence[Row] = (
            DELIVERY, commits.new_set(EVENT, START),
            User(name="gone", privileges=(), created=START, status=gone, withdrawal=over),
        )  # fmt: skip
        assert table.commit([Create(row) for row in rows])

    def users(self) -> None:
        self.ask("who_am_i")
        for name in ("ada", "bench-7", "oxide:hubris"):
            self.ask("create_user", {"name": name, "privileges": ["target.lab"] if name == "ada" else []})
        self.ask("create_user")
        self.ada = self.ask("create_token", {}, name="ada")["token"]
        spare = self.ask("create_token", name="ada")["id"]
        assert spare in [each["id"] for each in self.ask("list_tokens", name="ada")["items"]]
        self.ask("revoke_token", token=spare)
        self.ask("grant", name="bench-7", privilege="host.bench-7")
        self.ask("grant", name="eve", privilege="resource.x")
        self.ask("revoke", name="eve", privilege="resource.x")
        asked = {"privilege": "priority", "shown": self.ada}
        self.ask("ask_privilege", {"reason": "releases"}, **asked)
        assert len(self.ask("list_privilege_requests", query="?all=true")["items"]) == 1
        assert self.ask("refuse_privilege", name="ada", privilege="priority")["decided_by"] == "admin"
        self.ask("disable_user", name="eve")
        self.ask("enable_user", name="eve")
        self.ask("rename_user", name="eve")
        self.ask("remove_user", name="gone")
        self.ask("list_users")
        self.ask("list_audit")

    def login(self) -> None:
        """A machine gets a token by a code."""
        begun = self.ask("begin_login")
        self.ask("get_login", code=begun["code"])
        self.ask("approve_login", code=begun["code"])
        assert self.ask("take_login", {"secret": begun["secret"]}, code=begun["code"])["token"]

    def session(self) -> None:
        """Ada signs in to the console, and out again."""
        self.ask("get_console")
        assert self.ask("begin_session", {"token": self.ada})["user"] == "ada"
        assert self.ask("end_session") == {"ended": False}

    def site(self) -> None:
        text = SITE.read_text() + BENCHES + MORE
        for was, now in CHANGES.items():
            text = text.replace(was, now)
        self.ask("apply_site", {"toml": text})
        for kind in ("site", "openapi", "issuer", "issuer_keys", "provenance_key"):
            self.ask(f"get_{kind}")
        for kind in ("targets", "resource_types", "factories", "wells", "canaries"):
            self.ask(f"list_{kind}")
        for kind, name in {"target": "lab", "resource_type": "bench", "factory": "here", "well": "locks"}.items():
            self.ask(f"get_{kind}", name=name)

    def submit(self, **ask: Any) -> str:
        """A job of Ada's, whose script waits."""
        body = {"script": WAITS, **ask}
        return str(self.ask("submit_job", body, shown=self.ada)["id"])

    def jobs(self) -> None:
        self.job = self.submit(resources=["bench", "licence"], tags={"a": "b", "set": "s-1"})
        self.worker, self.resource = self.units_of(self.job)
        self.give_up()
        self.ask("hold_job", job=self.job)
        self.ask("release_job", job=self.job)
        self.ask("get_job", job=self.job)
        assert self.ask("extend_job", job=self.job)["timeout"] >= 6 * 3600
        self.ask("list_jobs", query="?owner=ada&tag=a=b&state=running")
        for name in ("get_timings", "get_script", "get_cost", "read_events"):
            self.ask(name, job=self.job)
        assert [each["id"] for each in self.ask("get_set", set="s-1", shown=self.ada)["items"]] == [self.job]
        self.ask("put_value", job=self.job, name="answer")
        self.ask("put_value", {"value": "secret", "secret": True}, job=self.job, name="key")
        self.ask("list_values", job=self.job)
        self.ask("get_value", job=self.job, name="answer")
        self.review()

    def blocked_on(self, job: str) -> str | None:
        """The pool that a job waits for, if it waits for one."""
        found = self.ask("explain_job", job=job)["blocked_on"]
        return str(found["pool"]) if found else None

    def give_up(self) -> None:
        """A job that has one thing, and is cancelled while it waits for another."""
        self.ask("pause_pool", **LAB)
        waits = self.submit(resources=["licence"], target="lab")
        self.local.until(lambda: self.blocked_on(waits) == "target/lab")
        self.ask("get_graph")
        self.ask("cancel_job", job=waits)
        self.local.settled(waits)
        again = self.ask("retry_job", job=waits)["id"]
        self.ask("cancel_job", job=again)
        self.ask("resume_pool", **LAB)

    def review(self) -> None:
        """A job that runs once it was approved; then it is discarded."""
        asks = self.submit(script=REVIEWED)
        self.local.until(lambda: asks in json.dumps(self.ask("list_reviews")))
        self.ask("get_review", job=asks)
        self.ask("review_job", job=asks)
        assert self.local.settled(asks)["outcome"] == "succeeded", self.local.log(asks)
        self.ask("discard_job", job=asks)

    def inputs(self) -> None:
        """Files that a job gets: one that is sent whole, and one in parts."""
        given = self.submit(script="#!/bin/bash\ncat /input/*\n", inputs=["data", "big"])
        self.ask("list_inputs", job=given)
        upload(self.ask("send_input", job=given))
        self.ask("commit_input", job=given)
        self.ask("send_input", {"name": "big", **PARTS}, job=given)
        for part in self.ask("send_parts", {**BODIES["send_parts"], "name": "big"}, job=given)["parts"]:
            upload(part)
        self.ask("commit_input", {"name": "big"}, job=given)
        self.local.settled(given)

    def units_of(self, job: str) -> tuple[str, str]:
        """The worker of a job, and a resource."""
        worker = str(self.local.until(lambda: self.local.job(job)["worker"]))
        found = self.ask("list_resources")["items"]
        return worker, next(str(each["id"]) for each in found if each["job"] == job)

    def units(self) -> None:
        self.ask("list_workers")
        ids = {"worker": self.worker, "resource": self.resource}
        for kind, id in ids.items():
            self.ask(f"get_{kind}", **{kind: id})
            self.ask(f"read_{kind}_events", **{kind: id})
            self.ask(f"hold_{kind}", **{kind: id})
            self.ask(f"release_{kind}", **{kind: id})
            self.ask(f"drain_{kind}", **{kind: id})
        self.ask("ask_worker_console", worker=self.worker)
        said = "console output, asked for by"
        log = {"worker": self.worker}
        self.local.until(
            lambda: any(said in each["payload"] for each in self.ask("read_worker_events", **log)["items"])
        )
        for kind in ids:
            other = self.submit(resources=["licence"])
            worker, resource = self.units_of(other)
            self.ask(f"recycle_{kind}", worker=worker, resource=resource)
            self.ask("cancel_job", job=other)

    def warm_unit(self) -> None:
        """Two jobs, one after the other, on one worker, which is cleaned and waits for the next."""
        workers = set()
        for _ in range(2):
            job = self.submit(script="#!/bin/bash\ntrue\n", target="warmed", resources=["licence"])
            workers.add(self.local.settled(job)["worker"])
            self.local.until(lambda: "idle" in [each["state"] for each in self.ask("list_workers")["items"]])
        (worker,) = workers
        self.ask("drain_worker", worker=worker)

    def agents(self) -> None:
        """What the agent of the job asks, with its token. Its script, which waits, ends with that."""
        folder = Path(self.local.running.home) / "workers" / self.worker
        token = (folder / "token").read_text().strip()
        greeting = {
            "worker": self.worker,
            "token": token,
            "key": json.loads((folder / "agent.json").read_text())["key"],
        }
        assert self.ask("agent_source")
        self.ask("agent_hello", greeting)

        def ask(name: str, body: Any = None) -> Any:
            return self.ask(f"agent_{name}", body, shown=token, job=self.job)

        for first in (1000, 1500):
            ask("events", {"first": first, "events": BODIES["agent_events"]["events"] * 500})
        assert len(self.ask("read_segment", job=self.job, segment="0")["items"]) == 1000
        for name in ("resources", "inputs", "heartbeat", "put_value", "get_value", "identity"):
            ask(name)
        self.outputs(ask)
        self.caches(ask)
        ask("finish")
        session = {"session": "s" * 43}
        scope = {"scopes": ["host:target/benches/bench-7"]}
        host = self.ask("create_token", scope, name="bench-7")["token"]
        self.ask("agent_host", session, shown=host, host="bench-7")

    def outputs(self, ask: Any) -> None:
        """Files that a job made: one that is sent whole, and one in parts."""
        (whole,) = ask("outputs")["uploads"]
        upload(whole)
        (big,) = ask("outputs", {"files": [{"path": "/work/big", **PARTS}]})["uploads"]
        for part in ask("parts", {"id": big["id"], "first": 1, "sha256": [DIGEST]})["parts"]:
            upload(part)
        ask("commit", {"ids": [whole["id"], big["id"]]})
        self.output = whole["id"]

    def caches(self, ask: Any) -> None:
        """A cache's entry, and one that is sent in parts."""
        saved = {key: value for key, value in BODIES["agent_save_cache"].items() if key in ("name", "paths")}
        for key, more in {"old": {}, "big": {"composite": PARTS["composite"]}}.items():
            begun = ask("save_cache", {**BODIES["agent_save_cache"], "key": key, **more})
            if more:
                begun = ask("cache_parts", {"id": begun["id"], "first": 1, "sha256": [DIGEST]})["parts"][0] | {
                    "id": begun["id"]
                }
            upload(begun)
            assert ask("commit_cache", {**saved, "key": key, "id": begun["id"]})["kept"]
            assert download(ask("find_cache", {**saved, "key": key, "restore_keys": []})["url"]) == BYTES
        cache = self.ask("list_caches", query="?owner=ada")["items"][0]["id"]
        self.ask("get_cache", cache=cache)
        self.ask("delete_cache", cache=cache)

    def published(self) -> None:
        """What the job left, once it is over."""
        assert self.local.settled(self.job)["outcome"] == "succeeded"
        job, output = self.job, self.output
        self.ask("list_outputs", job=job)
        assert download(self.ask("sign_output", job=job, output=output)["url"]) == BYTES
        self.ask("get_provenance", job=job)
        self.ask("list_artifacts")
        self.ask("list_artifacts_to_go")
        for name in ("get_artifact", "explain_artifact", "pin_artifact", "unpin_artifact"):
            self.ask(name, artifact=output)
        assert download(self.ask("sign_artifact", artifact=output)["url"]) == BYTES
        self.ask("publish_output", job=job, output=output, shown=self.ada)
        self.ask("list_published")
        self.ask("get_published", **NAME)
        assert download(self.ask("sign_published", **NAME)["url"]) == BYTES
        self.ask("list_access", owner="ada")
        self.ask("set_access", {"series": "nightly", "access": "public"}, owner="ada")
        assert self.ask("read_published", **NAME) == BYTES
        self.ask("look_at_published", **NAME)
        self.ask("unpublish", **NAME)

    def leases(self) -> None:
        """A lease without a job: somebody has a thing, renews that, and gives it back."""
        lease = self.ask("acquire_lease", shown=self.ada)["id"]
        self.local.until(lambda: self.ask("get_lease", lease=lease)["state"] == "held")
        assert self.ask("lease_resources", lease=lease, shown=self.ada)["resources"]["licence"]["metadata"]["name"]
        assert self.ask("renew_lease", lease=lease)["until"]
        assert [each["id"] for each in self.ask("list_leases", query="?owner=ada")["items"]] == [lease]
        assert self.ask("release_lease", lease=lease)["outcome"] == "succeeded"

    def stops(self) -> None:
        """Nothing is granted for a while: on the whole site, of a factory, of a well."""
        self.ask("pause_site")
        assert [each["scope"] for each in self.ask("list_stops")["items"]] == ["site"]
        assert self.ask("get_pool", **LAB)["paused"]
        self.ask("resume_site")
        for kind, name in {"factory": "floor", "well": "locks"}.items():
            self.ask(f"disable_{kind}", name=name)
            self.ask(f"drain_{kind}", name=name)
            self.ask(f"enable_{kind}", name=name)
        assert not self.ask("get_pool", **LAB)["paused"]

    def account(self) -> None:
        diff = self.ask("begin_account_diff")["id"]
        self.local.sweep()  # which begins it
        self.local.until(lambda: self.ask("get_account_diff", query=f"?id={diff}")["finished"])
        assert [each["id"] for each in self.ask("list_account_diffs")["items"]] == [diff]

    def pools(self) -> None:
        self.ask("list_pools")
        self.ask("list_shares")
        self.ask("get_attention")
        self.ask("get_alarms")
        self.account()
        self.ask("list_costs")
        self.ask("get_pool", **LAB)
        self.ask("get_series", **LAB)
        self.ask("resize_pool", **LAB)
        sent = [each["job"] for each in self.ask("list_canaries")["items"] if each["job"]]
        self.local.until(lambda: all(self.local.job(each)["state"] == "settled" for each in sent))
        self.ask("send_canary", **LAB)
        test = self.ask("begin_factory_test", {"target": "ubuntu-24.04"}, name="here")["id"]
        self.ask("get_factory_test", name="here", job=test)
        self.local.settled(test)

    def logs_by_key(self) -> None:
        """There is no distribution here, so that no key opens a log."""
        for name in ("read_shared_events", "read_shared_segment"):
            self.asked.add(name)
            path = OPERATIONS[name].path.format(job="any", segment="0")
            answer = self.local.call("GET", f"{path}?key=0.{'0' * 64}")
            assert (answer.status_code, answer.json()["code"]) == (403, "log-key")

    def github(self) -> None:
        self.ask("list_commits")
        self.ask("list_deliveries")
        self.ask("redeliver", delivery=DELIVERY.id)
        self.ask("accept_repository", user="oxide:hubris")
        self.ask("link_account", name="ada")
        self.asked |= {"begin_github", "finish_github"}  # this site has no App; test_github.py has one
        assert self.local.call("GET", OPERATIONS["begin_github"].path).status_code == 404
        refused = self.local.call("GET", OPERATIONS["finish_github"].path)
        assert refused.headers["location"].startswith("/sign-in?refused=")


def upload(begun: Mapping[str, Any]) -> None:
    """Send the file, or its only part, where an answer says."""
    answer = httpx.request(begun["method"], begun["url"], content=BYTES, headers=begun["headers"], trust_env=False)
    assert answer.is_success, answer.text


def download(url: str) -> bytes:
    """The file that an answer leads to."""
    answer = httpx.get(url, trust_env=False)
    assert answer.is_success, answer.text
    return answer.content
