"""Deploys a synthesised stack as the CDK's own command would, without Node: assets to S3, the rest to CloudFormation.

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

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from penstock.bootstrap_admin import create_admin
from penstock.local.stack import Assembly

Report = Callable[[str], None]

BOOTSTRAP_VERSION = "30"
"""What a bootstrapped account has in /cdk-bootstrap/hnb659fds/version; the stack's rules ask for 6 or more."""


LENT = "penstock-lent"
"""The name of the role that wells lend in the local cloud, of its boundary, and of the bucket."""

LEND = ["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"]


class DeployError(Exception):
    """CloudFormation refused or rolled back."""


def main() -> None:
    """Deploy and print the result. Exits with 1 and CloudFormation's reasons on failure."""
    assembly, url = Assembly.read(Path(sys.argv[1])), sys.argv[2]
    cloud = Cloud(url)
    try:
        cloud.make_lent()
        outputs = cloud.deploy(assembly, {"PublicUrl": url}, _say)
    except (DeployError, ClientError) as error:
        sys.exit(str(error))
    token = create_admin({**os.environ, "TABLE": outputs["TableName"], "BUCKET": outputs["BucketName"]}, "never")
    print(json.dumps({"outputs": outputs, "token": token}))


def _say(line: str) -> None:
    print(f"> {line}", file=sys.stderr, flush=True)


class Cloud:
    """Deployments to the AWS account at an endpoint."""

    def __init__(self, endpoint: str) -> None:
        self._session = boto3.Session()
        self._endpoint = endpoint
        account = self.client("sts").get_caller_identity()["Account"]
        region = self._session.region_name
        self._names = {"${AWS::AccountId}": account, "${AWS::Region}": region, "${AWS::Partition}": "aws"}

    def client(self, service: str) -> Any:
        """A client of one service."""
        patient = Config(retries={"max_attempts": 3}, read_timeout=120)
        client: Any = self._session.client  # the stubs know services by literal names only
        return client(service, endpoint_url=self._endpoint, config=patient)

    def deploy(self, assembly: Assembly, parameters: Mapping[str, str], report: Report) -> dict[str, str]:
        """Create or update the stack and return its outputs. Raises DeployError with CloudFormation's reasons."""
        report(f"uploading {len(assembly.files)} assets")
        template_url = self._upload(assembly)
        report(f"deploying {assembly.resources} resources")
        self._apply(assembly.stack, template_url, parameters)
        return self.outputs(assembly.stack)

    def make_lent(self) -> None:
        """Make the role and the bucket that the wells `sts` and `s3` lend, if they are not there. Jobs that have
        credentials of the role reach this bucket, whatever a site's policies say, and nothing else.
        """
        s3, iam = self.client("s3"), self.client("iam")
        _ensure_bucket(s3, LENT)
        most = _policy(
            {"Effect": "Allow", "Action": "s3:*", "Resource": [f"arn:aws:s3:::{LENT}{end}" for end in ("", "/*")]}
        )
        trust = _policy({"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": LEND})
        with contextlib.suppress(iam.exceptions.EntityAlreadyExistsException):
            arn = iam.create_policy(PolicyName=LENT, PolicyDocument=most)["Policy"]["Arn"]
            iam.create_role(RoleName=LENT, AssumeRolePolicyDocument=trust, PermissionsBoundary=arn)
            iam.attach_role_policy(RoleName=LENT, PolicyArn=arn)

    def arn(self, service: str, resource: str) -> str:
        """The ARN of a resource of this account."""
        return self._named(f"arn:${{AWS::Partition}}:{service}:${{AWS::Region}}:${{AWS::AccountId}}:{resource}")

    def outputs(self, stack: str) -> dict[str, str]:
        """A stack's outputs by name."""
        (described,) = self.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
        return {each["OutputKey"]: each["OutputValue"] for each in described.get("Outputs", [])}

    def _upload(self, assembly: Assembly) -> str:
        """Upload every asset; the URL of the one that is the template."""
        s3 = self.client("s3")
        self.client("ssm").put_parameter(
            Name="/cdk-bootstrap/hnb659fds/version", Value=BOOTSTRAP_VERSION, Type="String", Overwrite=True
        )
        template = ""
        for file in assembly.files.values():
            for place in file["destinations"].values():
                bucket, key = self._named(place["bucketName"]), self._named(place["objectKey"])
                _ensure_bucket(s3, bucket)
                s3.put_object(Bucket=bucket, Key=key, Body=assembly.content(file["source"]))
                if key.endswith(".json"):
                    template = f"{self._endpoint}/{bucket}/{key}"
        return template

    def _apply(self, stack: str, template: str, parameters: Mapping[str, str]) -> None:
        formation = self.client("cloudformation")
        request = {
            "StackName": stack,
            "TemplateURL": template,
            "Capabilities": ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"],
            "Parameters": [{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()],
        }
        try:
            formation.create_stack(**request)
            kind = "stack_create_complete"
        except formation.exceptions.AlreadyExistsException:
            kind = "stack_update_complete"
            if not _update(formation, request):
                return
        try:
            formation.get_waiter(kind).wait(StackName=stack, WaiterConfig={"Delay": 1, "MaxAttempts": 600})
        except Exception as error:
            raise DeployError(_reasons(formation, stack)) from error

    def _named(self, text: str) -> str:
        for name, value in self._names.items():
            text = text.replace(name, value)
        return text


def _policy(statement: Mapping[str, Any]) -> str:
    """A policy document of one statement."""
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _ensure_bucket(s3: Any, bucket: str) -> None:
    try:
        s3.head_bucket(Bucket=bucket)
    except ClientError:
        s3.create_bucket(Bucket=bucket)


def _update(formation: Any, request: Mapping[str, Any]) -> bool:
    """Whether there was anything to update."""
    try:
        formation.update_stack(**request)
    except ClientError as error:
        if "No updates are to be performed" in str(error):
            return False
        raise
    return True


def _reasons(formation: Any, stack: str) -> str:
    events = formation.describe_stack_events(StackName=stack)["StackEvents"]
    failed = [
        f"{each['LogicalResourceId']} ({each['ResourceType']}): {each.get('ResourceStatusReason', 'no reason given')}"
        for each in events
        if each["ResourceStatus"].endswith("FAILED")
    ]
    return f"the stack {stack} could not be deployed:\n" + "\n".join(failed or ["CloudFormation gives no reason"])


if __name__ == "__main__":
    main()
