"""What wells in AWS may do, where a deployment lets them: to lend roles, and prefixes of one bucket.

`cdk deploy -c sts_roles=arn:…,arn:… -c sts_boundary=arn:… -c s3_well=bucket`. The tables read as those of grants.py do.
The sweep lists, and ends what nobody knows; it lends nothing.

Whoever may put policies on a role may give it everything, and then assume it. So only roles are lent that have the one
permissions boundary that is named: what that does not allow, no policy gives them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import Aws
from aws_cdk import aws_iam as iam

from infra.grants import Leave
from infra.settings import Settings

BOUNDARY = "{boundary}"
PREFIX = "{prefix}"

BOUND = {"StringEquals": {"iam:PermissionsBoundary": BOUNDARY}}
BELOW = {"StringLike": {"s3:prefix": PREFIX}}

LEND = Leave(("sts:AssumeRole", "sts:SetSourceIdentity", "sts:TagSession"), ("lent roles",))
SEE = Leave(("iam:GetRolePolicy", "iam:ListRolePolicies"), ("lent roles",))
DENY = Leave(("iam:DeleteRolePolicy", "iam:PutRolePolicy"), ("lent roles",), BOUND)
STS_GRANTS: Mapping[str, tuple[Leave, ...]] = {"well": (LEND, SEE, DENY), "sweep": (SEE, DENY)}

SPACE = (
    Leave(("s3:ListBucket", "s3:ListBucketVersions"), ("lent bucket",), BELOW),
    Leave(("s3:ListBucketMultipartUploads",), ("lent bucket",)),  # S3 knows no narrower leave to list them
    Leave(
        ("s3:AbortMultipartUpload", "s3:DeleteObject", "s3:DeleteObjectVersion", "s3:GetObject", "s3:PutObject"),
        ("lent prefixes",),
    ),
)
S3_GRANTS: Mapping[str, tuple[Leave, ...]] = {each: SPACE for each in ("well", "sweep")}


@dataclass(frozen=True)
class Lent:
    """What a deployment's wells may lend."""

    roles: tuple[str, ...]
    boundary: str
    bucket: str = ""
    prefix: str = ""

    @staticmethod
    def of(settings: Settings, site: str) -> Lent:
        """What the settings name. A bucket may come with a prefix: `bucket/prefix`."""
        bucket, _, prefix = settings.s3_well.partition("/")
        below = f"{prefix.strip('/')}/{site}/*" if prefix.strip("/") else f"{site}/*"
        return Lent(settings.sts_roles, settings.sts_boundary, bucket, below)

    def statements(self, leaves: Sequence[Leave]) -> Sequence[iam.PolicyStatement]:
        """One statement per leave."""
        arns, names = self._arns(), {BOUNDARY: self.boundary, PREFIX: self.prefix}
        return [
            iam.PolicyStatement(
                actions=list(leave.actions),
                resources=[arn for name in leave.resources for arn in arns[name]],
                conditions={
                    test: {key: names.get(value, value) for key, value in keys.items()}
                    for test, keys in leave.on.items()
                },
            )
            for leave in leaves
        ]

    @property
    def objects(self) -> str:
        """Everything below the prefix that is this deployment's own."""
        return f"arn:{Aws.PARTITION}:s3:::{self.bucket}/{self.prefix}"

    def _arns(self) -> Mapping[str, tuple[str, ...]]:
        bucket = f"arn:{Aws.PARTITION}:s3:::{self.bucket}"
        return {"lent roles": self.roles, "lent bucket": (bucket,), "lent prefixes": (self.objects,)}
