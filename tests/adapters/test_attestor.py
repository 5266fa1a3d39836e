"""The key for statements over an emulated KMS: what it signs, its public half verifies."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import boto3
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from moto import mock_aws

from penstock.aws.kms import KmsAttestor
from penstock.domain.jobs import statement

MESSAGE = b"x" * 5000
"""Longer than KMS takes."""


@pytest.fixture
def arn(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with mock_aws():
        made = boto3.client("kms", region_name="eu-west-1").create_key(KeySpec="ECC_NIST_P256", KeyUsage="SIGN_VERIFY")
        yield made["KeyMetadata"]["Arn"]


def test_what_it_signs_its_public_key_verifies(arn: str) -> None:
    """moto takes a digest for a message, and hashes it once more; tests/e2e has one that does not."""
    attestor = KmsAttestor(boto3.client("kms", region_name="eu-west-1"), arn)
    public = load_pem_public_key(statement.pem(attestor.public_key()).encode())
    assert isinstance(public, ec.EllipticCurvePublicKey)
    public.verify(attestor.sign(MESSAGE), hashlib.sha256(MESSAGE).digest(), ec.ECDSA(hashes.SHA256()))
    assert attestor.kid() == arn.rpartition("/")[2]


def test_its_public_key_is_asked_for_once(arn: str) -> None:
    client = boto3.client("kms", region_name="eu-west-1")
    asked: list[str] = []
    client.meta.events.register("before-call.kms.GetPublicKey", lambda **_: asked.append("GetPublicKey"))
    attestor = KmsAttestor(client, arn)
    assert attestor.public_key() == attestor.public_key()
    assert asked == ["GetPublicKey"]
