"""What the deployed functions' roles may write: who only does jobs' work makes nobody an operator. [SEC-2]"""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from penstock.domain.jobs.jobs import job_key
from penstock.domain.site.site import SITE_KEY
from penstock.domain.users.users import token_key, user_key
from penstock.kernel.rows import Key
from penstock.local.cloud import REGION
from tests.e2e.conftest import Local

pytestmark = pytest.mark.xdist_group("e2e")

NEVER = "attribute_exists(pk) AND attribute_not_exists(pk)"
"""A condition that no row meets: what may write is told so, and nothing is written."""


def table_of(local: Local, function: str) -> Any:
    """The table, as somebody who took over a function sees it."""
    found = local.aws("lambda").get_function_configuration(FunctionName=f"Penstock-{function}")
    given = local.aws("sts").assume_role(RoleArn=found["Role"], RoleSessionName="taken-over")["Credentials"]
    session = boto3.Session(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"], REGION)
    return session.resource("dynamodb", endpoint_url=local.running.url).Table(
        found["Environment"]["Variables"]["TABLE"]
    )


def answer(table: Any, key: Key) -> str:
    """What AWS answers to whoever writes a row."""
    with pytest.raises(ClientError) as refused:
        table.put_item(Item={"pk": key.pk, "sk": key.sk}, ConditionExpression=NEVER)
    return str(refused.value.response["Error"]["Code"])


@pytest.mark.parametrize("function", ["schedule", "factory", "well", "settle"])
@pytest.mark.parametrize(
    "key", [token_key("t"), user_key("ada"), SITE_KEY, Key("audit#01", "audit")], ids=lambda key: key.pk
)
def test_who_only_does_jobs_work_writes_no_token_and_no_site(local: Local, function: str, key: Key) -> None:
    table = table_of(local, function)
    assert answer(table, job_key("01")) == "ConditionalCheckFailedException"
    assert answer(table, key) == "AccessDeniedException"


def test_the_api_makes_tokens_and_users(local: Local) -> None:
    table = table_of(local, "api")
    assert {answer(table, key) for key in (token_key("t"), user_key("ada"))} == {"ConditionalCheckFailedException"}
