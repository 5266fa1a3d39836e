"""An account of AWS in this process: MiniStack, asked as over the network, and made to fail where a test wants it.

Its policy check is on where `AUTH` is: then sessions may do what their role, their own policy and no denial let them,
by the conditions on aws:userid and s3:prefix as well. What it does not know: the size of a role's inline policies, and
the condition keys iam:PermissionsBoundary and aws:SourceIdentity.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import boto3
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectTimeoutError
from ministack.services import iam, s3, sts

from tests.crash.emulator import Flows, Wire, _Content

ENDPOINT = "http://localhost:4566"
REGION = "eu-west-1"
ROOT = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
ACCOUNT = "000000000000"
BUCKET = "lent"
OWN = {"Statement": [{"Effect": "Allow", "Action": ["s3:*", "sqs:*"], "Resource": "*"}]}
CONFIG = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})
Keys = tuple[tuple[str, str], ...]


@cache
def session() -> boto3.Session:
    """One for all: reading what a service's calls are takes a tenth of a second."""
    return boto3.Session()


@cache
def connected(service: str, region: str, keys: Keys) -> Any:
    """A client, for whichever account there is: the emulator has one at a time."""
    made: Any = session().client(  # type: ignore[call-overload]
        service, region_name=region, endpoint_url=ENDPOINT, config=CONFIG, **dict(keys)
    )
    made.meta.events.register("provide-client-params", lambda **given: NOW_THERE[-1].note(**given))
    made.meta.events.register("before-send", lambda **given: NOW_THERE[-1].send(**given))
    return made


@dataclass
class Fault:
    """A call that fails: how often yet, and whether it is done all the same."""

    code: str
    times: int = 1
    is_done: bool = False
    status: int = 400


@dataclass
class Account:
    """Roles, buckets and sessions. `calls` were made, `asked` says with what at last; `faults` are to fail."""

    wire: Wire = field(default_factory=lambda: Wire(Flows()))
    calls: list[str] = field(default_factory=list)
    faults: dict[str, Fault] = field(default_factory=dict)
    asked: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for service in (iam, s3, sts):
            service.reset()
        NOW_THERE[:] = [self]

    def client(self, service: str, region: str = REGION, keys: Mapping[str, str] = ROOT) -> Any:
        """A client of ours, or of who has these keys."""
        return connected(service, region, tuple(sorted(keys.items())))

    def as_(self, keys: Mapping[str, str]) -> Any:
        """Clients of who has these keys."""
        return lambda service, region: self.client(service, region, keys)

    def role(self, name: str = "jobs", policy: Mapping[str, Any] = OWN) -> str:
        """Make a role that the account may assume, with a policy of its own; its ARN."""
        trust = {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"},
                    "Action": ["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"],
                }
            ],
        }
        made = self.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(trust))
        document = json.dumps({"Version": "2012-10-17", **policy})
        self.client("iam").put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=document)
        arn: str = made["Role"]["Arn"]
        return arn

    def bucket(self, name: str = BUCKET, *, versions: bool = False) -> str:
        """Make a bucket."""
        self.client("s3").create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
        if versions:
            self.client("s3").put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
        return name

    def policies(self, role: str = "jobs") -> dict[str, Any]:
        """A role's inline policies but for its own."""
        client = self.client("iam")
        names = client.list_role_policies(RoleName=role)["PolicyNames"]
        return {
            name: client.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
            for name in names
            if name != "own"
        }

    def left(self, bucket: str = BUCKET) -> list[str]:
        """All that is in a bucket: versions, delete markers, unfinished uploads."""
        client = self.client("s3")
        found = client.list_object_versions(Bucket=bucket)
        each = [*found.get("Versions", ()), *found.get("DeleteMarkers", ())]
        return [one["Key"] for one in [*each, *client.list_multipart_uploads(Bucket=bucket).get("Uploads", ())]]

    def fail(self, call: str, code: str, *, times: int = 1, is_done: bool = False, status: int = 400) -> None:
        """Let a call fail from here on, so many times. `is_done`: it is done, and the answer is lost."""
        self.faults[call] = Fault(code, times, is_done, status)

    def note(self, params: dict[str, Any], event_name: str, **_: Any) -> None:
        """What botocore tells of a call before it is made."""
        self.asked[event_name.rpartition(".")[2]] = dict(params)

    def send(self, request: AWSPreparedRequest, event_name: str, **_: Any) -> AWSResponse:
        """What botocore asks before it sends a request."""
        call = event_name.rpartition(".")[2]
        self.calls.append(call)
        fault = self.faults.get(call)
        if fault is None or not fault.times:
            return self.wire.answer(request)
        fault.times -= 1
        if fault.is_done:
            self.wire.answer(request)
            raise ConnectTimeoutError(endpoint_url=request.url)
        said = f"<Error><Code>{fault.code}</Code><Message>in words</Message></Error>"
        body = said if ".s3." in event_name else f"<ErrorResponse>{said}</ErrorResponse>"
        return AWSResponse(request.url, fault.status, {}, _Content(body.encode()))  # type: ignore[arg-type]


NOW_THERE: list[Account] = []
"""The account that clients reach."""


def keys_of(metadata: Mapping[str, Any]) -> dict[str, str]:
    """A job's credentials, as a client takes them."""
    return {
        "aws_access_key_id": metadata["access_key_id"],
        "aws_secret_access_key": metadata["secret_access_key"],
        "aws_session_token": metadata["session_token"],
    }


def said(call: Any, **given: Any) -> str:
    """What comes of a call: ok, or AWS's code."""
    try:
        call(**given)
    except ClientError as error:
        return error.response["Error"]["Code"]
    return "ok"
