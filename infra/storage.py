"""Where the bytes of artifacts are, and the keys and the secret of the stack."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

OBJECTS = "artifacts/"
"""The prefix below which the bytes of artifacts are."""


class Storage(Construct):
    """A private bucket. Penstock itself decides when an object dies: no expiry rule may do it."""

    def __init__(self, scope: Construct, name: str, *, keep: RemovalPolicy, identity_keys: Sequence[str]) -> None:
        super().__init__(scope, name)
        self.bucket = s3.Bucket(
            self,
            "Bucket",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            versioned=False,
            removal_policy=keep,
            lifecycle_rules=[
                # Later than any site gives up what is being sent: the sweep has aborted by then what it knows of.
                s3.LifecycleRule(id="abandoned-uploads", abort_incomplete_multipart_upload_after=Duration.days(8))
            ],
        )
        self.metadata = kms.Key(
            self,
            "Metadata",
            description="What wells say of a resource is encrypted with this, and only the job's worker is told it",
            enable_key_rotation=True,
            removal_policy=keep,
        )
        self.identity = [self._identity(each, keep) for each in identity_keys]
        self.signing = secretsmanager.Secret(
            self,
            "Signing",
            description="Worker bootstrap keys are HMACs made with this",
            generate_secret_string=secretsmanager.SecretStringGenerator(password_length=64, exclude_punctuation=True),
            removal_policy=keep,
        )

    def _identity(self, name: str, keep: RemovalPolicy) -> kms.Key:
        """A pair of keys whose private half never leaves KMS. It does not rotate by itself: who checks must know it."""
        return kms.Key(
            self,
            f"Identity{name}",
            description="Identity tokens of jobs are signed with this",
            key_spec=kms.KeySpec.RSA_2048,
            key_usage=kms.KeyUsage.SIGN_VERIFY,
            removal_policy=keep,
        )
