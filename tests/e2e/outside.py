"""What is outside of the local cloud, for its jobs: a controller, a service, a folder, a bucket, a role, a server."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import ClientError

from penstock.local import cloud
from tests import raw
from tests.controllers.lab import Lab
from tests.e2e.conftest import SITE, Local
from tests.postgres.cluster import ADMIN, PASSWORDS, Cluster
from tests.wells.rack import Asked, Rack
from tests.wells.service import SECRET

ROOT = Path(__file__).parents[2]
BUCKET, ROLE = "lent", "jobs"
TEXT = """
[targets.mill]
factory = "here"
limit = 1
[resources.axle]
well = "locks"
names = ["axle-1"]
[resources.belt]
well = "locks"
limit = 1
[resources.rig]
well = "locks"
leases = 2
[resources.rig.things.rig-1]
labels = {{ board = "gimlet", rack = "3" }}
[resources.rig.things.rig-2]
labels = {{ board = "gimlet", rack = "4" }}
address = "10.0.4.2"

[factories.lab]
driver = "http"
url = "{lab}"
secret = "file:{folder}/rack.secret"
settings = {{ image = "helios-2.0" }}
[targets.helios]
factory = "lab"
limit = 1

[wells.rack]
driver = "http"
url = "{rack}"
secret = "file:{folder}/rack.secret"
[resources.project]
well = "rack"
limit = 2
[wells.sandboxes]
driver = "accounts"
command = ["{python}", "-S", "{root}/examples/clean_sandbox.py", "{folder}/sandboxes"]
check = true
[resources.sandbox]
well = "sandboxes"
names = ["red"]
[wells.keys]
driver = "sts"
role = "{role}"
region = "{region}"
policy = [{{ Effect = "Allow", Action = "s3:*Object", Resource = "arn:aws:s3:::{bucket}/free/${{job}}/*" }}]
[resources.aws]
well = "keys"
limit = 2
[wells.scratches]
driver = "s3"
role = "{role}"
region = "{region}"
bucket = "{bucket}"
settle = 0
[resources.scratch]
well = "scratches"
limit = 2
"""
SERVER = """
[wells.databases]
driver = "postgres"
host = "127.0.0.1"
port = {port}
user = "{user}"
password = "file:{folder}/postgres.secret"
[resources.database]
well = "databases"
limit = 2
"""
LEAVE = {
    "sts:*": f"arn:aws:iam::000000000000:role/{ROLE}",
    "iam:*": f"arn:aws:iam::000000000000:role/{ROLE}",
    "s3:*": "*",
}
"""What `well` and `sweep` may do besides. In AWS the stack gives less, as tests/infra/test_lent.py shows."""


@dataclass
class Outside:
    """All of it. `place` is where jobs write down what they see; `server` is None where no PostgreSQL can be run."""

    local: Local
    folder: Path
    rack: Rack
    lab: Lab
    server: Cluster | None

    @property
    def place(self) -> Path:
        return self.folder / "place"

    @property
    def sandbox(self) -> Path:
        return self.folder / "sandboxes" / "red"

    def make(self) -> None:
        """Make what jobs are lent of, and have the site know it."""
        for name in ("place", "sandboxes"):
            (self.folder / name).mkdir()
        (self.folder / "rack.secret").write_text(SECRET)
        (self.folder / "postgres.secret").write_text(PASSWORDS[ADMIN])
        self.rack.on("POST", self.a_job_calls)
        self.local.aws("s3").create_bucket(Bucket=BUCKET)
        role = self._role()
        site = self.folder / "site.toml"
        named = {
            "rack": self.rack.url, "lab": self.lab.url, "folder": self.folder, "python": sys.executable, "root": ROOT,
            "role": role, "region": cloud.REGION, "bucket": BUCKET,
        }  # fmt: skip
        text = SITE.read_text() + TEXT.format(**named)
        if self.server:
            text += SERVER.format(port=self.server.port, user=ADMIN, folder=self.folder)
        site.write_text(text)
        self.local.apply(site)

    def a_job_calls(self, asked: Asked) -> bool:
        """The service as its users know it: who has a project's token puts a disk into the project."""
        if asked.path != "/disks":
            return False
        token = asked.handler.headers["Authorization"].removeprefix("Bearer ")
        mine = [each for each in self.rack.units.values() if (each["metadata"] or {}).get("token") == token]
        for each in mine:
            each["inside"].append("a disk")
        return asked.raw(200 if mine else 401)

    def objects(self) -> list[str]:
        """Whatever is in the bucket."""
        found = self.local.aws("s3").list_object_versions(Bucket=BUCKET)
        return [each["Key"] for each in [*found.get("Versions", ()), *found.get("DeleteMarkers", ())]]

    def denials(self) -> int:
        """How many sessions of the role are denied everything."""
        names = self.local.aws("iam").list_role_policies(RoleName=ROLE)["PolicyNames"]
        return len([name for name in names if name != "own"])

    def put(self, keys: Mapping[str, str], key: str) -> str:
        """What comes of writing an object with what a job was told: ok, or AWS's code."""
        session = boto3.Session(keys["access_key_id"], keys["secret_access_key"], keys["session_token"])
        client = session.client("s3", endpoint_url=self.local.running.url, region_name=keys["region"])
        try:
            client.put_object(Bucket=BUCKET, Key=key, Body=b"x")
        except ClientError as error:
            return error.response["Error"]["Code"]
        return "ok"

    def made(self) -> dict[str, Any]:
        """What there is of it all, by where."""
        return {
            "service": list(self.rack.units),
            "sandbox": [each.name for each in self.sandbox.iterdir()],
            "bucket": self.objects(),
            "server": sorted(set().union(*self.server.names())) if self.server else [],
        }

    def _role(self) -> str:
        """A role to be lent, and leave for the functions to lend it."""
        iam = self.local.aws("iam")
        trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": ["sts:AssumeRole", "sts:TagSession"]}
        made = iam.create_role(RoleName=ROLE, AssumeRolePolicyDocument=_policy(trust))["Role"]["Arn"]
        iam.put_role_policy(
            RoleName=ROLE,
            PolicyName="own",
            PolicyDocument=_policy({"Effect": "Allow", "Action": "s3:*", "Resource": "*"}),
        )
        leave = [{"Effect": "Allow", "Action": action, "Resource": where} for action, where in LEAVE.items()]
        for each in self.local.aws("lambda").list_functions()["Functions"]:
            if each["Handler"] in ("well.handler", "sweep.handler"):
                name = each["Role"].rpartition("/")[2]
                iam.put_role_policy(RoleName=name, PolicyName="lending", PolicyDocument=_policy(*leave))
        return str(made)


def _policy(*statements: Any) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def said(local: Local) -> Iterator[tuple[str, str]]:
    """All that the cloud keeps and has said, by where: rows, flows, logs, outputs, and what people are shown."""
    yield from (("row", text) for text in rows(local))
    yield from (("history", json.dumps(each, default=str)) for each in _histories(local.aws("stepfunctions")))
    logs = local.aws("logs")
    for group in logs.describe_log_groups()["logGroups"]:
        for page in logs.get_paginator("filter_log_events").paginate(logGroupName=group["logGroupName"]):
            yield from (("log", each["message"]) for each in page["events"])
    yield "log of the host", local.place.log.read_text(errors="replace")
    for job in local.call("GET", "/v1/jobs?limit=100").json()["items"]:
        for path in ("", "/events?limit=1000", "/why"):
            yield "page", local.call("GET", f"/v1/jobs/{job['id']}{path}").text
    for lease in local.call("GET", "/v1/leases?ended=true").json()["items"]:
        yield "page", local.call("GET", f"/v1/leases/{lease['id']}").text
    s3, bucket = local.aws("s3"), local.output("BucketName")
    for each in s3.list_objects_v2(Bucket=bucket).get("Contents", ()):
        yield "object", s3.get_object(Bucket=bucket, Key=each["Key"])["Body"].read().decode("latin-1")


def rows(local: Local) -> Iterator[str]:
    """The body of every row."""
    for page in local.aws("dynamodb").get_paginator("scan").paginate(TableName=local.output("TableName")):
        yield from map(raw.body_of, page["Items"])


def _histories(flows: Any) -> Iterator[Any]:
    for machine in flows.list_state_machines()["stateMachines"]:
        for each in flows.list_executions(stateMachineArn=machine["stateMachineArn"])["executions"]:
            yield flows.describe_execution(executionArn=each["executionArn"])
            pages = flows.get_paginator("get_execution_history").paginate(executionArn=each["executionArn"])
            yield from (event for page in pages for event in page["events"])
