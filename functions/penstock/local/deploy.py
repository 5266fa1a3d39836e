"""Deploys an assembly to the local cloud, as `penstock deploy` does to an account, after it has prepared that account.

    python -m penstock.local.deploy ASSEMBLY URL

deploys to the local cloud at URL, makes the first operator, and prints {"outputs", "token"}; progress goes to standard
error. It is a process of its own so that it sees the local cloud's credentials and none of this machine's.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from penstock.bootstrap_admin import create_admin
from penstock.deploy.account import Account
from penstock.deploy.assembly import Assembly, DeployError
from penstock.deploy.changes import ChangeSet

Report = Callable[[str], None]

BOOTSTRAP_VERSION = "30"
"""What a bootstrapped account has in /cdk-bootstrap/hnb659fds/version; the stack's rules ask for 6 or more."""


LENT = "penstock-lent"
"""The name of the role that wells lend in the local cloud, of its boundary, and of the bucket."""

LEND = ["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"]


def main() -> None:
    """Deploy and print the result. Exits with 1 and CloudFormation's reasons on failure."""
    assembly, url = Assembly.read(Path(sys.argv[1])), sys.argv[2]
    try:
        account = Account()
        make_lent(account)
        addresses = {name: url for name in assembly.parameters if name in ("PublicUrl", "ConsoleUrl")}
        outputs = deploy(account, assembly, addresses, _say)
    except (DeployError, ClientError) as error:
        sys.exit(str(error))
    token = create_admin({**os.environ, "TABLE": outputs["TableName"], "BUCKET": outputs["BucketName"]}, "never")
    print(json.dumps({"outputs": outputs, "token": token}))


def _say(line: str) -> None:
    print(f"> {line}", file=sys.stderr, flush=True)


def deploy(account: Account, assembly: Assembly, parameters: Mapping[str, str], report: Report) -> Mapping[str, str]:
    """Create or update the stack and return its outputs. Raises DeployError with CloudFormation's reasons."""
    report(f"uploading {len(assembly.files)} assets")
    bootstrap(account, assembly)
    template = account.publish(assembly)
    report(f"deploying {assembly.resources} resources")
    proposed = ChangeSet(account, assembly, template, parameters, look_each=1)
    if proposed.changes:
        return proposed.execute()
    proposed.drop()
    return proposed.outputs()


def bootstrap(account: Account, assembly: Assembly) -> None:
    """Prepare the account for deployments, as `cdk bootstrap` does: the buckets of assets, and the version's number."""
    s3 = account.client("s3")
    account.client("ssm").put_parameter(
        Name="/cdk-bootstrap/hnb659fds/version", Value=BOOTSTRAP_VERSION, Type="String", Overwrite=True
    )
    places = [place for file in assembly.files.values() for place in file["destinations"].values()]
    for bucket in sorted({account.named(place["bucketName"]) for place in places}):
        _ensure_bucket(s3, bucket)


def make_lent(account: Account) -> None:
    """Make the role and the bucket that the wells `sts` and `s3` lend, if they are not there. Jobs that have
    credentials of the role reach this bucket, whatever a site's policies say, and nothing else.
    """
    s3, iam = account.client("s3"), account.client("iam")
    _ensure_bucket(s3, LENT)
    most = _policy(
        {"Effect": "Allow", "Action": "s3:*", "Resource": [f"arn:aws:s3:::{LENT}{end}" for end in ("", "/*")]}
    )
    trust = _policy({"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": LEND})
    with contextlib.suppress(iam.exceptions.EntityAlreadyExistsException):
        arn = iam.create_policy(PolicyName=LENT, PolicyDocument=most)["Policy"]["Arn"]
        iam.create_role(RoleName=LENT, AssumeRolePolicyDocument=trust, PermissionsBoundary=arn)
        iam.attach_role_policy(RoleName=LENT, PolicyArn=arn)


def _policy(statement: Mapping[str, Any]) -> str:
    """A policy document of one statement."""
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _ensure_bucket(s3: Any, bucket: str) -> None:
    try:
        s3.head_bucket(Bucket=bucket)
    except ClientError:
        s3.create_bucket(Bucket=bucket)


if __name__ == "__main__":
    main()
