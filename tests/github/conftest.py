from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_der_public_key
from moto import mock_aws
from mypy_boto3_kms import KMSClient

from penstock.aws.kms import KmsAppKey
from tests.github.fake import serving
from tests.github.rig import Rig


@pytest.fixture(scope="module")
def app_key() -> Iterator[tuple[KMSClient, str, rsa.RSAPublicKey]]:
    """The App's key in KMS, and what GitHub knows of it.

    Moto forgets what it holds only when its last user in the process ends: no test of another module may come before.
    """
    with mock_aws():
        client = boto3.client("kms", region_name="eu-west-1")
        key = client.create_key(KeySpec="RSA_2048", KeyUsage="SIGN_VERIFY")["KeyMetadata"]["KeyId"]
        public = load_der_public_key(client.get_public_key(KeyId=key)["PublicKey"])
        assert isinstance(public, rsa.RSAPublicKey)
        yield client, key, public


@pytest.fixture
def rig(app_key: tuple[KMSClient, str, rsa.RSAPublicKey]) -> Iterator[Rig]:
    client, key, public = app_key
    made = Rig(KmsAppKey(client, key), public)
    with serving(made.fake):
        made.set_up()
        yield made
