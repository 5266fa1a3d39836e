"""Credentials come by reference, and nothing says what they are. [SEC-1]"""

from __future__ import annotations

import json
import re

import boto3
import pytest
from moto import mock_aws

from penstock.drivers.factories.libcloud.errors import classify
from penstock.drivers.secrets import REFERENCE, resolver
from penstock.kernel.errors import DriverError, Misconfigured, Unknown
from tests.clouds.fake import Books
from tests.clouds.helpers import factory, order

SECRET = "hunter2hunter2"


def test_from_the_environment() -> None:
    resolve = resolver({"CLOUD_KEY": SECRET})
    assert resolve("env:CLOUD_KEY") == SECRET
    with pytest.raises(Misconfigured, match="no environment variable NO_KEY"):
        resolve("env:NO_KEY")


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")


@pytest.mark.usefixtures("aws")
@mock_aws
def test_from_the_stores() -> None:
    table = json.dumps({"key": SECRET, "number": 1})
    boto3.client("secretsmanager").create_secret(Name="penstock/cloud", SecretString=table)
    boto3.client("secretsmanager").create_secret(Name="penstock/bytes", SecretBinary=b"x")
    boto3.client("ssm").put_parameter(Name="/penstock/cloud/key", Value=SECRET, Type="SecureString")
    resolve = resolver({})
    assert resolve("secretsmanager:penstock/cloud") == table
    assert resolve("secretsmanager:penstock/cloud#key") == SECRET
    assert resolve("ssm:/penstock/cloud/key") == SECRET
    for wrong in (
        "secretsmanager:penstock/none",
        "secretsmanager:penstock/bytes",
        "secretsmanager:penstock/cloud#number",
        "secretsmanager:penstock/cloud#none",
        "ssm:/penstock/none",
        "ssm:/penstock/cloud/key#entry",
    ):
        with pytest.raises(Misconfigured) as caught:
            resolve(wrong)
        assert SECRET not in str(caught.value)


def test_a_store_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, aws: None) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(Unknown, match="cannot be read now"):
        resolver({})("ssm:/penstock/cloud/key")


@pytest.mark.parametrize(
    "text", [SECRET, "env:", "secretsmanager:other/secret", "ssm:/aws/x", "secretsmanager:penstock", "http://x"]
)
def test_what_is_no_reference(text: str) -> None:
    assert not re.fullmatch(REFERENCE, text)


def test_what_a_cloud_repeats_is_told_without_the_secret() -> None:
    books = Books()
    books.failing["list_nodes"] = [Exception(f"Invalid API key {SECRET}")]
    with pytest.raises(DriverError) as caught:
        factory(books, credentials={"key": "env:CLOUD_KEY"}).create(order())
    assert "Invalid API key …" in str(caught.value)


def test_what_a_cloud_repeats_is_told_without_user_data() -> None:
    failure = classify("create_node", Exception("Invalid input for user_data. Value: " + "QUJD" * 40))
    assert failure.message == "Invalid input for user_data. Value: …"
