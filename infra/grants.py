"""Who may do what: the whole of Penstock's permissions, function by function.

A row reads "this function may, on this resource, do these actions". `tests/infra` compares the table with the
synthesised policies, both ways. Every function may also write to its own log group, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import aws_iam as iam

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
ANSWER: Actions = ("states:SendTaskFailure", "states:SendTaskSuccess")
START: Actions = ("states:StartExecution",)

GRANTS: Mapping[str, Mapping[str, Actions]] = {
    "api": {
        "table": ROWS,
        "listing index": INDEX,
        "schedule queue": TELL,
        "flow": (*ANSWER, *START),
        "outputs": ("s3:GetObject",),
    },
    "agent_api": {
        "table": ROWS,
        "schedule queue": TELL,
        "flow": ANSWER,
        "outputs": ("s3:GetObject", "s3:PutObject"),
        "bucket": ("s3:ListBucket",),  # without it S3 answers 403, not 404, for an object that is not there
        "signing secret": ("secretsmanager:GetSecretValue",),
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
        "outputs": ("s3:DeleteObject",),
    },
}

FLOW_GRANTS: Mapping[str, Actions] = {"schedule queue": TELL, "settle function": ("lambda:InvokeFunction",)}
"""What the state machine may do."""


def statements(rows: Mapping[str, Actions], arns: Mapping[str, str]) -> Sequence[iam.PolicyStatement]:
    """One statement per row of a table. Raises KeyError for a resource that `arns` does not name."""
    return [
        iam.PolicyStatement(actions=list(actions), resources=[arns[resource]]) for resource, actions in rows.items()
    ]
