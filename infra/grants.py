"""Who may do what: the whole of Penstock's permissions, function by function.

A row reads "this function may, on this resource, do these actions". `tests/infra` compares the table with the
synthesised policies, both ways. Every function may also write to its own log group, and nothing else.

EC2_GRANTS come on top of that where the deployment is to make machines: `cdk deploy -c ec2=true`. What they allow is
bound to the tag `penstock:site`, which no other deployment's machines carry. CLOUD_GRANTS come on top with `-c
libcloud=true`: leave to read the credentials for other clouds, which are all below one name. `-c well_secrets=…` and
`-c accounts_lambdas=…` name the secrets that wells may read, and the functions that the accounts well may call. What
wells in AWS may do is in infra/wells.py, and comes on top where the deployment names roles to lend.

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

ROWS: Actions = (
    "dynamodb:BatchGetItem",
    "dynamodb:ConditionCheckItem",
    "dynamodb:DeleteItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:Query",
    "dynamodb:UpdateItem",
)
INDEX: Actions = ("dynamodb:Query",)
TELL: Actions = ("sqs:SendMessage",)
TAKE: Actions = ("sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage")
SEND: Actions = ("s3:GetObject", "s3:ListMultipartUploadParts", "s3:PutObject", "s3:AbortMultipartUpload")
"""What URLs are good for that somebody sends to, and what puts together the parts that were sent."""
FIND: Actions = ("s3:ListBucket", "s3:ListBucketMultipartUploads")
"""Without ListBucket S3 answers 403, not 404, for an object that is not there."""
ANSWER: Actions = ("states:SendTaskFailure", "states:SendTaskSuccess")
START: Actions = ("states:StartExecution",)

PUBLISHED: Mapping[str, Actions] = {"identity key": ("kms:GetPublicKey",)}
"""What may be done with a key whose tokens are to be checked. Whoever checks them asks the API for it."""

GRANTS: Mapping[str, Mapping[str, Actions]] = {
    "api": {
        "table": ROWS,
        "listing index": INDEX,
        "schedule queue": TELL,
        "factory queue": TELL,
        "well queue": TELL,
        "flow": (*ANSWER, *START),
        "objects": SEND,  # users send inputs
        "bucket": FIND,
        **PUBLISHED,
        "metadata key": ("kms:Encrypt",),  # users put secrets into a job's store, and never read them
    },
    "agent_api": {
        "table": ROWS,
        "schedule queue": TELL,
        "factory queue": TELL,  # a worker that says that it is clean may be handed over, or sent home, at once
        "well queue": TELL,
        "flow": ANSWER,
        "objects": SEND,
        "bucket": FIND,
        "signing secret": ("secretsmanager:GetSecretValue",),
        "metadata key": ("kms:Decrypt", "kms:Encrypt"),
        "identity key": ("kms:Sign",),  # nobody else: who signs is anybody
    },
    "schedule": {
        "table": ROWS,
        "schedule queue": (*TAKE, *TELL),
        "factory queue": TELL,
        "well queue": TELL,
        "flow": (*ANSWER, *START),
    },
    "factory": {
        "table": ROWS,
        "schedule queue": TELL,
        "factory queue": (*TAKE, *TELL),
        "well queue": TELL,
        "flow": ANSWER,
        "signing secret": ("secretsmanager:GetSecretValue",),
    },
    "well": {
        "table": ROWS,
        "schedule queue": TELL,
        "factory queue": TELL,
        "well queue": (*TAKE, *TELL),
        "flow": ANSWER,
        "signing secret": ("secretsmanager:GetSecretValue",),
        "metadata key": ("kms:Encrypt",),
    },
    "settle": {
        "table": ROWS,
        "schedule queue": TELL,
        "factory queue": TELL,
        "well queue": TELL,
    },
    "sweep": {
        "table": ROWS,
        "due index": INDEX,
        "listing index": INDEX,
        "schedule queue": TELL,
        "factory queue": TELL,
        "well queue": TELL,
        "flow": (*ANSWER, *START, "states:ListExecutions"),
        "executions": ("states:StopExecution",),
        # what was deleted is looked for; logs are written, and read back
        "objects": ("s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject"),
        "bucket": FIND,
    },
}

GITHUB_GRANTS: Mapping[str, Mapping[str, Actions]] = {
    "github_webhook": {
        "table": ("dynamodb:PutItem",),  # it stores what was signed, and reads nothing
        "github queue": TELL,
        "github secret": ("secretsmanager:GetSecretValue",),
    },
    "github_work": {
        "table": ROWS,
        "schedule queue": TELL,
        "factory queue": TELL,
        "well queue": TELL,
        "flow": (*ANSWER, *START),
        "github queue": (*TAKE, *TELL),
        "github key": ("kms:Sign",),
        "metadata key": ("kms:Encrypt",),  # it puts GITHUB_TOKEN into a job's store, and reads nothing there
        "github tokens": ("kms:Decrypt", "kms:Encrypt"),  # a copy for itself, to revoke it: no other secret opens so
    },
    "schedule": {"github queue": TELL},
}
"""What comes on top with `-c github=true`."""

FLOW_GRANTS: Mapping[str, Actions] = {"schedule queue": TELL, "settle function": ("lambda:InvokeFunction",)}
"""What the state machine may do."""


def statements(rows: Mapping[str, Actions], arns: Mapping[str, str]) -> Sequence[iam.PolicyStatement]:
    """One statement per row of a table. Raises KeyError for a resource that `arns` does not name."""
    return [
        iam.PolicyStatement(actions=list(actions), resources=[arns[resource]]) for resource, actions in rows.items()
    ]


@dataclass(frozen=True)
class Leave:
    """Leave to do some actions on some resources, on conditions. SITE in a condition is the deployment's own tag."""

    actions: Actions
    resources: tuple[str, ...]
    on: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


SITE = "{site}"
ASKED = {"aws:RequestTag/penstock:site": SITE}
TAGGED = {"StringEquals": {"aws:ResourceTag/penstock:site": SITE}}
MADE = ("volume", "network-interface", "spot-instances-request")

SEE = Leave(("ec2:DescribeInstances", "ec2:DescribeVolumes"), ("*",))  # EC2 knows no narrower leave to list
END = (
    Leave(("ec2:TerminateInstances",), ("instance",), TAGGED),
    Leave(("ec2:DeleteVolume",), ("volume",), TAGGED),
)
EC2_GRANTS: Mapping[str, tuple[Leave, ...]] = {
    "factory": (
        SEE,
        *END,
        Leave(("ec2:GetConsoleOutput",), ("instance",), TAGGED),
        Leave(("ec2:RunInstances",), ("instance",), {"StringEquals": {**ASKED, "ec2:MetadataHttpTokens": "required"}}),
        Leave(("ec2:RunInstances",), MADE, {"StringEquals": ASKED}),
        Leave(
            ("ec2:RunInstances",),
            ("image", "snapshot", "subnet", "security-group", "key-pair", "launch-template"),
        ),
        Leave(
            ("ec2:CreateTags",), ("instance", *MADE), {"StringEquals": {**ASKED, "ec2:CreateAction": "RunInstances"}}
        ),
        Leave(("ssm:GetParameters",), ("our images", "public images")),
    ),
    "sweep": (SEE, *END),
}


CLOUD_GRANTS: Mapping[str, Mapping[str, Actions]] = {
    each: {"cloud secrets": ("secretsmanager:GetSecretValue",), "cloud parameters": ("ssm:GetParameter",)}
    for each in ("factory", "sweep")
}


def cloud_arns() -> Mapping[str, str]:
    """What the rows of CLOUD_GRANTS call a resource: credentials.py of the libcloud factory asks for no others."""
    here = f"{Aws.REGION}:{Aws.ACCOUNT_ID}"
    return {
        "cloud secrets": f"arn:{Aws.PARTITION}:secretsmanager:{here}:secret:penstock/*",
        "cloud parameters": f"arn:{Aws.PARTITION}:ssm:{here}:parameter/penstock/*",
    }


def secret_statements(wanted: Sequence[str]) -> Sequence[iam.PolicyStatement]:
    """Leave to read the secrets of wells: `penstock/rack`, or `/penstock/rack` for a parameter of SSM."""
    return [_readable(name) for name in names.secrets(wanted)]


def _readable(name: str) -> iam.PolicyStatement:
    here = f"{Aws.REGION}:{Aws.ACCOUNT_ID}"
    if name.startswith("/"):
        arn = f"arn:{Aws.PARTITION}:ssm:{here}:parameter{name}"
        return iam.PolicyStatement(actions=["ssm:GetParameter"], resources=[arn])
    arn = f"arn:{Aws.PARTITION}:secretsmanager:{here}:secret:{name}-??????"  # six characters of Secrets Manager's own
    return iam.PolicyStatement(actions=["secretsmanager:GetSecretValue"], resources=[arn])


def accounts_statements(arns: Sequence[str]) -> Sequence[iam.PolicyStatement]:
    """Leave to have a site's functions clean, and to see how long they may run."""
    actions = ["lambda:GetFunctionConfiguration", "lambda:InvokeFunction"]
    return [iam.PolicyStatement(actions=actions, resources=[arn]) for arn in names.functions(arns)]


def ec2_arn(name: str) -> str:
    """What the rows of EC2_GRANTS call a resource. Machines may be in any region: a factory's settings say in which."""
    start = f"arn:{Aws.PARTITION}"
    special = {
        "*": "*",
        "image": f"{start}:ec2:*::image/*",
        "snapshot": f"{start}:ec2:*::snapshot/*",
        "our images": f"{start}:ssm:*:{Aws.ACCOUNT_ID}:parameter/penstock/*",
        "public images": f"{start}:ssm:*::parameter/aws/service/*",
    }
    return special.get(name, f"{start}:ec2:*:{Aws.ACCOUNT_ID}:{name}/*")


def ec2_statements(leaves: Sequence[Leave], site: str) -> Sequence[iam.PolicyStatement]:
    """One statement per leave."""
    return [
        iam.PolicyStatement(
            actions=list(leave.actions),
            resources=[ec2_arn(name) for name in leave.resources],
            conditions={
                test: {key: site if value == SITE else value for key, value in keys.items()}
                for test, keys in leave.on.items()
            },
        )
        for leave in leaves
    ]


def pass_role(role: str) -> iam.PolicyStatement:
    """Leave to give machines one role: whoever may give any could give itself everything."""
    to_ec2 = {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}
    return iam.PolicyStatement(actions=["iam:PassRole"], resources=[role], conditions=to_ec2)
