"""Permissions of the wells in AWS: lending roles, and prefixes of one bucket.

`cdk deploy -c sts_roles=arn:…,arn:… -c sts_boundary=arn:… -c s3_well=bucket`. The tables are like those of grants.py.
The sweep lists, revokes and deletes strays; it lends nothing.

Whoever may put policies on a role could give it any right, and then assume it. So a lent role must have the permissions
boundary that the deployment names, which limits it whatever its policies say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import Aws
from aws_cdk import aws_iam as iam

from infra.grants import Permission
from infra.settings import Settings

BOUNDARY = "{boundary}"
PREFIX = "{prefix}"

BOUND = {"StringEquals": {"iam:PermissionsBoundary": BOUNDARY}}
BELOW = {"StringLike": {"s3:prefix": PREFIX}}

LEND = Permission(("sts:AssumeRole", "sts:SetSourceIdentity", "sts:TagSession"), ("lent roles",))
READ_DENIALS = Permission(("iam:GetRolePolicy", "iam:ListRolePolicies"), ("lent roles",))
WRITE_DENIALS = Permission(("iam:DeleteRolePolicy", "iam:PutRolePolicy"), ("lent roles",), BOUND)
STS_GRANTS: Mapping[str, tuple[Permission, ...]] = {
    "well": (LEND, READ_DENIALS, WRITE_DENIALS),
    "sweep": (READ_DENIALS, WRITE_DENIALS),
}

PREFIX_ACCESS = (
    Permission(("s3:ListBucket", "s3:ListBucketVersions"), ("lent bucket",), BELOW),
    Permission(("s3:ListBucketMultipartUploads",), ("lent bucket",)),  # S3 has no narrower permission to list them
    Permission(
        ("s3:AbortMultipartUpload", "s3:DeleteObject", "s3:DeleteObjectVersion", "s3:GetObject", "s3:PutObject"),
        ("lent prefixes",),
    ),
)
S3_GRANTS: Mapping[str, tuple[Permission, ...]] = {each: PREFIX_ACCESS for each in ("well", "sweep")}


@dataclass(frozen=True)
class LentResources:
    """The roles and the bucket that a deployment's wells may lend."""

    roles: tuple[str, ...]
    boundary: str
    bucket: str = ""
    prefix: str = ""

    @staticmethod
    def of(settings: Settings, site: str) -> LentResources:
        """From settings. A bucket may have a prefix: `bucket/prefix`."""
        bucket, _, prefix = settings.s3_well.partition("/")
        below = f"{prefix.strip('/')}/{site}/*" if prefix.strip("/") else f"{site}/*"
        return LentResources(settings.sts_roles, settings.sts_boundary, bucket, below)

    def statements(self, permissions: Sequence[Permission]) -> Sequence[iam.PolicyStatement]:
        """One statement for each permission."""
        arns, names = self._arns(), {BOUNDARY: self.boundary, PREFIX: self.prefix}
        return [
            iam.PolicyStatement(
                actions=list(permission.actions),
                resources=[arn for name in permission.resources for arn in arns[name]],
                conditions={
                    test: {key: names.get(value, value) for key, value in keys.items()}
                    for test, keys in permission.conditions.items()
                },
            )
            for permission in permissions
        ]

    @property
    def objects(self) -> str:
        """The ARN of all objects below this deployment's prefix."""
        return f"arn:{Aws.PARTITION}:s3:::{self.bucket}/{self.prefix}"

    def _arns(self) -> Mapping[str, tuple[str, ...]]:
        bucket = f"arn:{Aws.PARTITION}:s3:::{self.bucket}"
        return {"lent roles": self.roles, "lent bucket": (bucket,), "lent prefixes": (self.objects,)}
