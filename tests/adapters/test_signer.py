"""The signer over an emulated KMS: what it signs, the published key proves."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from moto import mock_aws
from mypy_boto3_kms import KMSClient

from penstock.aws.kms import KmsSigner
from penstock.domain.users.oidc import PublicKey

MESSAGE = b"x" * 5000
"""Longer than KMS takes."""


@pytest.fixture
def arns(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with mock_aws():
        made = [client().create_key(KeySpec="RSA_2048", KeyUsage="SIGN_VERIFY") for _ in range(2)]
        yield [each["KeyMetadata"]["Arn"] for each in made]


def client() -> KMSClient:
    return boto3.client("kms", region_name="eu-west-1")


def check(key: PublicKey, signature: bytes) -> None:
    """moto takes a digest for a message, and hashes it once more; tests/e2e has one that does not."""
    public = rsa.RSAPublicNumbers(key.exponent, key.modulus).public_key()
    public.verify(signature, hashlib.sha256(MESSAGE).digest(), padding.PKCS1v15(), hashes.SHA256())


def test_the_first_key_signs_and_all_are_published(arns: list[str]) -> None:
    signer = KmsSigner(client(), arns)
    keys = signer.keys()
    assert [key.kid for key in keys] == [arn.rpartition("/")[2] for arn in arns]
    assert signer.kid() == keys[0].kid
    check(keys[0], signer.sign(MESSAGE))
    assert all(key.modulus.bit_length() == 2048 for key in keys)


def test_when_keys_change_tokens_of_both_can_be_checked(arns: list[str]) -> None:
    one, other = arns
    old, new = KmsSigner(client(), [one, other]), KmsSigner(client(), [other, one])
    keys = new.keys()
    published = {key.kid: key for key in keys}
    for signer in (old, new):
        check(published[signer.kid()], signer.sign(MESSAGE))
    assert old.kid() != new.kid()


def test_keys_are_read_once(arns: list[str]) -> None:
    kms, asked = client(), list[str]()
    kms.meta.events.register("before-call.kms.*", lambda model, **_: asked.append(model.name))
    signer = KmsSigner(kms, arns)
    assert signer.keys() == signer.keys()
    assert asked == ["GetPublicKey"] * 2


def test_kms_is_told_that_it_is_shown_a_digest(arns: list[str]) -> None:
    kms, asked = client(), list[dict[str, Any]]()
    kms.meta.events.register("provide-client-params.kms.Sign", lambda params, **_: asked.append(params))
    KmsSigner(kms, arns).sign(MESSAGE)
    digest = hashlib.sha256(MESSAGE).digest()
    algorithm = {"MessageType": "DIGEST", "SigningAlgorithm": "RSASSA_PKCS1_V1_5_SHA_256"}
    assert asked == [{"KeyId": arns[0], "Message": digest, **algorithm}]
