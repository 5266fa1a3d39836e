"""The bucket for artifacts, and the stack's keys and secret."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from penstock.usecases.units import bells

OBJECTS = "artifacts/"
"""The prefix of the objects of artifacts."""


class Storage(Construct):
    """A private bucket. Only bells expire there: Penstock decides when all other objects are deleted."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        keep: RemovalPolicy,
        identity_keys: Sequence[str],
        console: Sequence[str] = (),
    ) -> None:
        """`console` are the origins whose pages may read objects of which they have a presigned URL."""
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
            cors=[_readable_from(console)] if console else None,
            lifecycle_rules=[
                # Longer than any site allows for an upload: by then the sweep has aborted those that it knows.
                s3.LifecycleRule(id="abandoned-uploads", abort_incomplete_multipart_upload_after=Duration.days(8)),
                s3.LifecycleRule(id="bells", prefix=bells.PREFIX, expiration=Duration.days(1)),
            ],
        )
        self.metadata = kms.Key(
            self,
            "Metadata",
            description="What wells say of a resource is encrypted with this, and only the job's worker is told it",
            enable_key_rotation=True,
            removal_policy=keep,
        )
        tokens, statements = "Identity tokens of jobs", "Statements about what jobs made"
        self.identity = [self._pair(f"Identity{each}", tokens, kms.KeySpec.RSA_2048, keep) for each in identity_keys]
        self.provenance = self._pair("Provenance", statements, kms.KeySpec.ECC_NIST_P256, keep)
        self.signing = secretsmanager.Secret(
            self,
            "Signing",
            description="Worker bootstrap keys are HMACs made with this",
            generate_secret_string=secretsmanager.SecretStringGenerator(password_length=64, exclude_punctuation=True),
            removal_policy=keep,
        )

    def _pair(self, name: str, signs: str, spec: kms.KeySpec, keep: RemovalPolicy) -> kms.Key:
        """A key pair for signing. It does not rotate, because verifiers must know each public key in advance."""
        return kms.Key(
            self,
            name,
            description=f"{signs} are signed with this",
            key_spec=spec,
            key_usage=kms.KeyUsage.SIGN_VERIFY,
            removal_policy=keep,
        )


def _readable_from(origins: Sequence[str]) -> s3.CorsRule:
    """Whoever has a presigned URL can read the object anyway: this says whose pages may show it."""
    return s3.CorsRule(
        allowed_methods=[s3.HttpMethods.GET, s3.HttpMethods.HEAD],
        allowed_origins=list(origins),
        allowed_headers=["range"],
        exposed_headers=["content-length", "content-range", "etag"],
        max_age=3600,
    )
