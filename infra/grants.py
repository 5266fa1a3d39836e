"""Who may do what: the whole of Penstock's permissions, function by function.

A row reads "this function may, on this resource, do these actions". `tests/infra` compares the table with the
synthesised policies, both ways. Every function may also write to its own log group, and nothing else.

EC2_GRANTS come on top of that where the deployment is to make machines: `cdk deploy -c ec2=true`. What they allow is
bound to the tag `penstock:site`, which no other deployment's machines carry. CLOUD_GRANTS come on top with `-c
libcloud=true`: leave to read the credentials for other clouds, which are all below one name. `-c factory_secrets=…` and
`-c well_secrets=…` name the secrets that factories and that wells may read, and `-c accounts_lambdas=…` the functions
that the accounts well may call. What wells in AWS may do is in infra/wells.py, and comes on top where the deployment
names roles to lend.

`-c well_subnets=…` names the network that wells work in (infra/network.py).

Besides, EventBridge's own rules may do what they are there for: start a function, and with `-c ec2=true` send to the
factory's queue (infra/schedule.py, infra/tidings.py). Nobody else outside may send to a queue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from aws_cdk import Aws
from aws_cdk import aws_iam as iam

from infra import names

Actions = tuple[str, ...]
Conditions = Mapping[str, Mapping[str, Sequence[str] | str]]

READ: Actions = ("dynamodb:BatchGetItem", "dynamodb:ConditionCheckItem", "dynamodb:GetItem", "dynamodb:Query")
WRITE: Actions = ("dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem")
ROWS: Actions = (*READ, *WRITE)
INDEX: Actions = ("dynamodb:Query",)
ENQUEUE: Actions = ("sqs:SendMessage",)
CONSUME: Actions = ("sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage")
TRANSFER: Actions = ("s3:GetObject", "s3:ListMultipartUploadParts", "s3:PutObject", "s3:AbortMultipartUpload")
"""Presigned URLs for uploads, and the assembly of uploaded parts."""
FIND_OBJECTS: Actions = ("s3:ListBucket", "s3:ListBucketMultipartUploads")
"""Without ListBucket, S3 answers 403 instead of 404 for an object that does not exist."""
ANSWER_STEP: Actions = ("states:SendTaskFailure", "states:SendTaskSuccess")
START_FLOW: Actions = ("states:StartExecution",)

LISTEN: Actions = ("s3:GetObject",)
"""Presigned URLs with which idle workers look whether they have a job."""
RING: Actions = ("s3:PutObject",)

HAND_OUT: Actions = ("s3:GetObject",)
"""Presigned URLs with which machines fetch the agent."""

LOOK_AT_ALARMS: Actions = ("cloudwatch:DescribeAlarms",)
"""Alarms are asked for by a prefix of their names: docs/decisions/0093-operators-see-alarms.md."""
COUNT: Actions = ("sqs:GetQueueAttributes",)

PUBLISHED: Mapping[str, Actions] = {"identity key": ("kms:GetPublicKey",)}
"""The API publishes the public keys with which others verify identity tokens."""

GRANTS: Mapping[str, Mapping[str, Actions]] = {
    "api": {
        "table": ROWS,
        "due index": INDEX,  # workers are found by that; and what is to be deleted, by a dry run
        "listing index": INDEX,
        "schedule queue": ENQUEUE,
        "serve queue": ENQUEUE,
        "factory queue": ENQUEUE,
        "well queue": ENQUEUE,
        "flow": (*ANSWER_STEP, *START_FLOW),
        "objects": TRANSFER,  # users send inputs
        "bucket": FIND_OBJECTS,
        **PUBLISHED,
        "provenance key": ("kms:GetPublicKey", "kms:Sign"),  # only here, where rows say all that is stated
        # users write secrets into a job's store; what a lock says of itself is sealed in its unit's row
        "metadata key": ("kms:Encrypt",),
        "alarms": LOOK_AT_ALARMS,  # operators see which are raised
        "schedule dead letters": COUNT,
        "serve dead letters": COUNT,
        "factory dead letters": COUNT,
        "well dead letters": COUNT,
        "sweep dead letters": COUNT,
    },
    "agent_api": {
        "table": ROWS,
        "schedule queue": ENQUEUE,
        "serve queue": ENQUEUE,
        "factory queue": ENQUEUE,  # a worker that reports that it is clean may be leased again or destroyed at once
        "well queue": ENQUEUE,
        "flow": ANSWER_STEP,
        "objects": TRANSFER,
        "bells": LISTEN,
        "agent file": HAND_OUT,
        "bucket": FIND_OBJECTS,
        "signing secret": ("secretsmanager:GetSecretValue",),
        "metadata key": ("kms:Decrypt", "kms:Encrypt"),
        "identity key": ("kms:Sign",),  # only here: whoever can sign can issue any identity
    },
    "schedule": {
        "table": READ,
        "rows of jobs": WRITE,
        "schedule queue": (*CONSUME, *ENQUEUE),
        "serve queue": (*CONSUME, *ENQUEUE),
        "factory queue": ENQUEUE,
        "well queue": ENQUEUE,
        "flow": (*ANSWER_STEP, *START_FLOW),
    },
    "factory": {
        "table": READ,
        "rows of jobs": WRITE,
        "schedule queue": ENQUEUE,
        "serve queue": ENQUEUE,
        "factory queue": (*CONSUME, *ENQUEUE),
        "well queue": ENQUEUE,
        "flow": ANSWER_STEP,
        "bells": RING,
        "signing secret": ("secretsmanager:GetSecretValue",),
    },
    "well": {
        "table": READ,
        "rows of jobs": WRITE,
        "schedule queue": ENQUEUE,
        "serve queue": ENQUEUE,
        "factory queue": ENQUEUE,
        "well queue": (*CONSUME, *ENQUEUE),
        "flow": ANSWER_STEP,
        "signing secret": ("secretsmanager:GetSecretValue",),
        "metadata key": ("kms:Encrypt",),
    },
    "settle": {
        "table": READ,
        "rows of jobs": WRITE,
        "schedule queue": ENQUEUE,
        "serve queue": ENQUEUE,
        "factory queue": ENQUEUE,
        "well queue": ENQUEUE,
    },
    "sweep": {
        "table": ROWS,
        "due index": INDEX,
        "listing index": INDEX,
        "schedule queue": ENQUEUE,
        "serve queue": ENQUEUE,
        "factory queue": ENQUEUE,
        "well queue": ENQUEUE,
        "sweep queue": (*CONSUME, *ENQUEUE),
        "metadata key": ("kms:Encrypt",),  # it submits canaries, and so seals what a lock says of itself
        "flow": (*ANSWER_STEP, *START_FLOW, "states:ListExecutions"),
        "executions": ("states:StopExecution",),
        # it verifies deletions, and writes and reads back logs
        "objects": ("s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject"),
        "bucket": FIND_OBJECTS,
    },
}

GITHUB_GRANTS: Mapping[str, Mapping[str, Actions]] = {
    "github_webhook": {
        "table": ("dynamodb:PutItem",),  # it stores verified deliveries, and reads nothing
        "github queue": ENQUEUE,
        "github secret": ("secretsmanager:GetSecretValue",),
    },
    "github_work": {
        "table": READ,
        "rows of GitHub's jobs": WRITE,
        "rows of repositories": ("dynamodb:PutItem",),  # a repository's first commit binds it to its id at GitHub
        "schedule queue": ENQUEUE,
        "serve queue": ENQUEUE,
        "factory queue": ENQUEUE,
        "well queue": ENQUEUE,
        "flow": (*ANSWER_STEP, *START_FLOW),
        "github queue": (*CONSUME, *ENQUEUE),
        "github key": ("kms:Sign",),
        # it writes GITHUB_TOKEN into a job's store, and what a lock says of itself; it reads neither
        "metadata key": ("kms:Encrypt",),
        "github tokens": ("kms:Decrypt", "kms:Encrypt"),  # its own copy, to revoke it; this key opens no other secret
    },
    "schedule": {"github queue": ENQUEUE},
    "api": {
        "github client": ("secretsmanager:GetSecretValue",),  # people sign in; it makes their sessions anyway
        "github dead letters": COUNT,
    },
}
"""What comes on top with `-c github=true`."""

CONSOLE_GRANTS: Mapping[str, Mapping[str, Actions]] = {
    "api": {"front secret": ("secretsmanager:GetSecretValue",)},  # with it, CloudFront proves what addresses it saw
}
"""What comes on top unless with `-c console=false`."""

NOT_WRITTEN: Mapping[str, tuple[str, ...]] = {
    "rows of jobs": (
        "audit#*",
        "delivery#*",
        "github",
        "github#*",
        "github-account#*",
        "login#*",
        "privilegerequest#*",
        "site",
        "token#*",
    ),
    # a cancellation by another name than the owner's is recorded
    "rows of GitHub's jobs": ("github-account#*", "login#*", "privilegerequest#*", "site", "token#*"),
}
"""The partition keys that functions which only do jobs' work may read, and not write. The factory's and the well's run
drivers that others wrote, and GitHub's reads what strangers write: whoever took one over could else make an operator's
token, or change the site. A login says which token approved it, and a GitHub account which is its link: the API makes
tokens from these. A delivery says who pressed a button, and a commit's set who approved it and whether its people are
trusted: GitHub's function believes both.

The API and the sweep call drivers too, and may write all rows: they make tokens, and end them.
"""

NOT_ALONE = "user#*"
"""The partition keys that none of them may write, and yet check: a grant checks the owner's row in the transaction that
writes others. AWS does not say whether a condition on keys then sees the key of each item by itself, or those of all.
So the condition asks for one key that is not such: a grant has one by both readings, and a write of a user has none. By
the second reading alone, a transaction of a user and another row would be let through.
"""

KEYS: Mapping[str, tuple[str, ...]] = {"github_webhook": ("delivery#*",)}
"""The partition keys that a function may touch in the table, where these are not all. The Internet reaches the webhook:
whoever took it over could else make users and tokens.
"""

WRITTEN: Mapping[str, tuple[str, ...]] = {"rows of repositories": ("user#*:*",)}
"""The partition keys of rows that are named by what they are: of users, those that are repositories."""

FLOW_GRANTS: Mapping[str, Actions] = {"schedule queue": ENQUEUE, "settle function": ("lambda:InvokeFunction",)}
"""What the state machine may do."""


def statements(
    rows: Mapping[str, Actions], arns: Mapping[str, str], keys: Sequence[str] = ()
) -> Sequence[iam.PolicyStatement]:
    """One statement per row of a table, that of the DynamoDB table only for some `keys`, if any are named.

    Raises KeyError for a resource that `arns` does not name.
    """
    conditions: dict[str, Conditions | None] = {name: _all_but(others) for name, others in NOT_WRITTEN.items()}
    conditions |= {name: _keys("StringLike", some) for name, some in {**WRITTEN, "table": keys}.items()}
    return [
        iam.PolicyStatement(actions=list(actions), resources=[arns[resource]], conditions=conditions.get(resource))
        for resource, actions in rows.items()
    ]


def _keys(test: str, keys: Sequence[str]) -> Conditions | None:
    """The condition that all partition keys of a request pass a test, and that it has some; None without `keys`.

    Without the second part, "for all values" is true of none. Source: AWS IAM User Guide, "Set operators for
    multivalued context keys".
    """
    if not keys:
        return None
    return {
        f"ForAllValues:{test}": {"dynamodb:LeadingKeys": list(keys)},
        "Null": {"dynamodb:LeadingKeys": "false"},
    }


def _all_but(keys: Sequence[str]) -> Conditions:
    """The condition that no partition key of a request is one of some, nor all of them NOT_ALONE."""
    return {**(_keys("StringNotLike", keys) or {}), "ForAnyValue:StringNotLike": {"dynamodb:LeadingKeys": [NOT_ALONE]}}


@dataclass(frozen=True)
class Permission:
    """Actions on resources, with conditions. SITE in a condition stands for the deployment's value of the tag."""

    actions: Actions
    resources: tuple[str, ...]
    conditions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


SITE = "{site}"
REQUEST_TAG = {"aws:RequestTag/penstock:site": SITE}
RESOURCE_TAG = {"StringEquals": {"aws:ResourceTag/penstock:site": SITE}}
LAUNCHED = ("volume", "network-interface", "spot-instances-request")

DESCRIBE = Permission(
    ("ec2:DescribeInstances", "ec2:DescribeVolumes"), ("*",)
)  # EC2 has no narrower permission to list
FIND_LEFTOVERS = Permission(
    ("ec2:DescribeNetworkInterfaces", "ec2:DescribeSpotInstanceRequests"), ("*",)
)  # the rest of what a launch makes, for the account diff
REMOVE = (
    Permission(("ec2:TerminateInstances",), ("instance",), RESOURCE_TAG),
    Permission(("ec2:DeleteVolume",), ("volume",), RESOURCE_TAG),
)
EC2_GRANTS: Mapping[str, tuple[Permission, ...]] = {
    "factory": (
        DESCRIBE,
        *REMOVE,
        Permission(("ec2:GetConsoleOutput",), ("instance",), RESOURCE_TAG),
        Permission(("ec2:DescribeSpotPriceHistory",), ("*",)),  # EC2 has no narrower permission for it
        Permission(
            ("ec2:RunInstances",),
            ("instance",),
            {"StringEquals": {**REQUEST_TAG, "ec2:MetadataHttpTokens": "required"}},
        ),
        Permission(("ec2:RunInstances",), LAUNCHED, {"StringEquals": REQUEST_TAG}),
        Permission(
            ("ec2:RunInstances",),
            ("image", "snapshot", "subnet", "security-group", "key-pair", "launch-template"),
        ),
        Permission(
            ("ec2:CreateTags",),
            ("instance", *LAUNCHED),
            {"StringEquals": {**REQUEST_TAG, "ec2:CreateAction": "RunInstances"}},
        ),
        Permission(("ssm:GetParameters",), ("our images", "public images")),
    ),
    "sweep": (DESCRIBE, FIND_LEFTOVERS, *REMOVE),
}


CLOUD_GRANTS: Mapping[str, Mapping[str, Actions]] = {
    each: {"cloud secrets": ("secretsmanager:GetSecretValue",), "cloud parameters": ("ssm:GetParameter",)}
    for each in ("factory", "sweep")
}


def alarms_arn() -> str:
    """The ARN of all alarms of the account and region."""
    return f"arn:{Aws.PARTITION}:cloudwatch:{Aws.REGION}:{Aws.ACCOUNT_ID}:alarm:*"


def cloud_arns() -> Mapping[str, str]:
    """The ARNs of the resources in CLOUD_GRANTS. drivers/secrets.py reads no others."""
    here = f"{Aws.REGION}:{Aws.ACCOUNT_ID}"
    return {
        "cloud secrets": f"arn:{Aws.PARTITION}:secretsmanager:{here}:secret:penstock/*",
        "cloud parameters": f"arn:{Aws.PARTITION}:ssm:{here}:parameter/penstock/*",
    }


def secret_statements(option: str, wanted: Sequence[str]) -> Sequence[iam.PolicyStatement]:
    """Permission to read an option's secrets: `penstock/rack`, or `/penstock/rack` for an SSM parameter."""
    return [_readable(name) for name in names.secrets(option, wanted)]


def _readable(name: str) -> iam.PolicyStatement:
    here = f"{Aws.REGION}:{Aws.ACCOUNT_ID}"
    if name.startswith("/"):
        arn = f"arn:{Aws.PARTITION}:ssm:{here}:parameter{name}"
        return iam.PolicyStatement(actions=["ssm:GetParameter"], resources=[arn])
    arn = f"arn:{Aws.PARTITION}:secretsmanager:{here}:secret:{name}-??????"  # Secrets Manager appends six characters
    return iam.PolicyStatement(actions=["secretsmanager:GetSecretValue"], resources=[arn])


def accounts_statements(arns: Sequence[str]) -> Sequence[iam.PolicyStatement]:
    """Permission to call a site's cleaning functions, and to read their timeouts."""
    actions = ["lambda:GetFunctionConfiguration", "lambda:InvokeFunction"]
    return [iam.PolicyStatement(actions=actions, resources=[arn]) for arn in names.functions(arns)]


def ec2_arn(name: str) -> str:
    """The ARN of a resource in EC2_GRANTS. It covers all regions, because each factory's settings name one."""
    start = f"arn:{Aws.PARTITION}"
    special = {
        "*": "*",
        "image": f"{start}:ec2:*::image/*",
        "snapshot": f"{start}:ec2:*::snapshot/*",
        "our images": f"{start}:ssm:*:{Aws.ACCOUNT_ID}:parameter/penstock/*",
        "public images": f"{start}:ssm:*::parameter/aws/service/*",
    }
    return special.get(name, f"{start}:ec2:*:{Aws.ACCOUNT_ID}:{name}/*")


def ec2_statements(permissions: Sequence[Permission], site: str) -> Sequence[iam.PolicyStatement]:
    """One statement for each permission."""
    return [
        iam.PolicyStatement(
            actions=list(permission.actions),
            resources=[ec2_arn(name) for name in permission.resources],
            conditions={
                test: {key: site if value == SITE else value for key, value in keys.items()}
                for test, keys in permission.conditions.items()
            },
        )
        for permission in permissions
    ]


def pass_role(role: str) -> iam.PolicyStatement:
    """Permission to pass one role to machines. Passing any role would amount to having all their rights."""
    to_ec2 = {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}
    return iam.PolicyStatement(actions=["iam:PassRole"], resources=[role], conditions=to_ec2)
