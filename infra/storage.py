"""Where the bytes of artifacts are, the key that metadata is sealed with, and the secret that keys are made of."""

from __future__ import annotations

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

OBJECTS = "artifacts/"
"""The prefix below which the bytes of artifacts are."""


class Storage(Construct):
    """A private bucket. Penstock itself decides when an object dies: no expiry rule may do it."""

    def __init__(self, scope: Construct, name: str, *, keep: RemovalPolicy) -> None:
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
        self.signing = secretsmanager.Secret(
            self,
            "Signing",
            description="Worker bootstrap keys are HMACs made with this",
            generate_secret_string=secretsmanager.SecretStringGenerator(password_length=64, exclude_punctuation=True),
            removal_policy=keep,
        )
