"""An AWS account and region, as the credentials of whoever deploys see them: its assets and its stacks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from penstock.deploy.assembly import Assembly, DeployError

BOOTSTRAP = "npx aws-cdk@2.1148.1 bootstrap aws://{account}/{region}"


class Account:
    """One account and region."""

    def __init__(self, profile: str | None = None, region: str | None = None) -> None:
        """The region is the given one, or AWS_REGION, which boto3 does not read, or else what boto3 finds.

        Raises DeployError without credentials or a region.
        """
        try:
            self._session = boto3.Session(profile_name=profile, region_name=region or os.environ.get("AWS_REGION"))
            self.region = str(self._session.region_name or "")
            if not self.region:
                raise DeployError("no AWS region is configured; give --region, or set AWS_REGION")
            identity = self.client("sts").get_caller_identity()
        except (BotoCoreError, ClientError) as error:
            raise DeployError(f"AWS does not accept your credentials: {error}; give --profile, or log in") from error
        self.number, partition = str(identity["Account"]), str(identity["Arn"]).split(":")[1]
        self._names = {
            "${AWS::AccountId}": self.number,
            "${AWS::Region}": self.region,
            "${AWS::Partition}": partition,
        }

    def client(self, service: str) -> Any:
        """A client of one service."""
        client: Any = self._session.client  # the stubs know services by literal names only
        return client(service, config=Config(read_timeout=120))  # seconds: a local cloud on a busy machine is slow

    def named(self, text: str) -> str:
        """A text of the assembly, with this account, region and partition in it."""
        for name, value in self._names.items():
            text = text.replace(name, value)
        return text

    def publish(self, assembly: Assembly) -> str:
        """Upload the assets that are not there yet. Returns the URL of the template among them.

        A bucket of another account is refused, whatever its name: AWS compares `ExpectedBucketOwner`.
        Raises DeployError if the account was not bootstrapped.
        """
        s3, template = self.client("s3"), ""
        for file in assembly.files.values():
            for place in file["destinations"].values():
                where = {"Bucket": self.named(place["bucketName"]), "Key": self.named(place["objectKey"])}
                self._put(s3, where, assembly, file["source"])
                if where["Key"].endswith(".json"):
                    template = f"{s3.meta.endpoint_url}/{where['Bucket']}/{where['Key']}"
        return template

    def _put(self, s3: Any, where: Mapping[str, str], assembly: Assembly, source: Mapping[str, str]) -> None:
        owner = {"ExpectedBucketOwner": self.number}
        try:
            s3.head_object(**where, **owner)
            return
        except ClientError as error:
            if error.response["Error"]["Code"] not in ("404", "NoSuchKey", "NoSuchBucket"):
                raise
        try:
            s3.put_object(**where, **owner, Body=assembly.content(source))
        except s3.exceptions.NoSuchBucket as error:
            raise DeployError(
                f"account {self.number} has no bucket {where['Bucket']}: it was not prepared for deployments in "
                f"{self.region}; run `{BOOTSTRAP.format(account=self.number, region=self.region)}` once"
            ) from error
