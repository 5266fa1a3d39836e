"""The front end for GitHub, which is optional: `cdk deploy -c github=true`. See docs/users/github.md.

It has two functions. `github_webhook`, which is reachable from the Internet, only verifies and stores deliveries.
`github_work` calls GitHub. Only it may sign with the App's key, and decrypt the tokens that it must revoke.
"""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import CfnOutput, Duration, RemovalPolicy, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_kms as kms
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.api import Api
from infra.functions import Functions
from infra.grants import GITHUB_GRANTS, KEYS, statements
from infra.queues import Queues
from infra.sizes import GITHUB_SIZES

QUEUE = "github"
BATCH = 5
AT_ONCE = 50
"""How many calls of github_work for messages run at a time at most."""

EVERY = Duration.minutes(5)
"""How often missed deliveries are fetched from GitHub."""

REASONS: Mapping[str, str] = {
    "AwsSolutions-KMS5": "an asymmetric key, whose material is GitHub's own, cannot be rotated by KMS",
}


class GitHubFront(Construct):
    """Its queue, the webhook's secret, the App's key, and the key that encrypts tokens until they are revoked."""

    def __init__(self, scope: Construct, name: str, *, queues: Queues, keep: RemovalPolicy) -> None:
        super().__init__(scope, name)
        self.queue: sqs.Queue = queues.add(QUEUE, GITHUB_SIZES["github_work"].timeout)
        self.key = kms.Key(
            self,
            "Key",
            description="The private key of the GitHub App: brought in once, it signs and never leaves",
            key_spec=kms.KeySpec.RSA_2048,
            key_usage=kms.KeyUsage.SIGN_VERIFY,
            removal_policy=keep,
        )
        shape = self.key.node.default_child
        assert isinstance(shape, kms.CfnKey)
        shape.origin = "EXTERNAL"
        self.tokens = kms.Key(
            self,
            "Tokens",
            description="Tokens of jobs are encrypted with this until they are revoked, by whoever revokes them",
            enable_key_rotation=True,
            removal_policy=keep,
        )
        self.secret = secretsmanager.Secret(
            self,
            "Webhook",
            description="GitHub signs its webhooks with this",
            generate_secret_string=secretsmanager.SecretStringGenerator(password_length=64, exclude_punctuation=True),
            removal_policy=keep,
        )

        self.client = secretsmanager.Secret(
            self,
            "Client",
            description="The client secret of the GitHub App, which an operator puts here: people sign in with it",
            generate_secret_string=secretsmanager.SecretStringGenerator(password_length=40, exclude_punctuation=True),
            removal_policy=keep,
        )

    @property
    def environment(self) -> dict[str, str]:
        """Its part of the functions' environment."""
        return {
            "GITHUB_QUEUE": self.queue.queue_url,
            "GITHUB_KEY": self.key.key_arn,
            "GITHUB_TOKENS": self.tokens.key_arn,
            "GITHUB_SECRET": self.secret.secret_arn,
            "GITHUB_CLIENT": self.client.secret_arn,
        }

    def join(self, functions: Functions, api: Api, environment: Mapping[str, str], arns: Mapping[str, str]) -> None:
        """Add its functions, their permissions and triggers."""
        for each, size in GITHUB_SIZES.items():
            functions.add(each, size, environment)
        own = {
            "github queue": self.queue.queue_arn,
            "github key": self.key.key_arn,
            "github tokens": self.tokens.key_arn,
            "github secret": self.secret.secret_arn,
            "github client": self.client.secret_arn,
        }
        for each, rows in GITHUB_GRANTS.items():
            functions.allow(each, statements(rows, {**arns, **own}, KEYS.get(each, ())))
        api.hook("/v1/github/webhook", functions.of["github_webhook"])
        work = functions.of["github_work"]
        work.add_event_source_mapping(
            "Queue",
            event_source_arn=self.queue.queue_arn,
            batch_size=BATCH,
            report_batch_item_failures=True,
            max_concurrency=AT_ONCE,
        )
        events.Rule(self, "Missed", schedule=events.Schedule.rate(EVERY), targets=[targets.LambdaFunction(work)])
        stack = Stack.of(self)  # an output of the stack has its plain name
        CfnOutput(stack, "AppKey", value=self.key.key_arn)
        CfnOutput(stack, "WebhookSecret", value=self.secret.secret_arn)
        CfnOutput(stack, "ClientSecret", value=self.client.secret_arn)
