"""Who may talk to the local cloud: this machine's owner, and the functions within what they are granted."""

from __future__ import annotations

import httpx
import pytest
from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from penstock.drivers.factories.container.spec import CLOUD_SOCKET
from tests.local.conftest import CONSOLE, Host

BROWSER = {"Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}
NO_CREDENTIALS = {"x-amz-target": "DynamoDB_20120810.ListTables", "content-type": "application/x-amz-json-1.0"}


FOREIGN = [
    {"Origin": "http://evil.example"}, {"Host": "evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:1"},
    {"Host": "evil.example", "Origin": "http://evil.example"}, {"Origin": "http://localhost"}, {"Origin": ""},
]  # fmt: skip


@pytest.mark.parametrize("path", ["/_ministack/health", "/", "/v1/whoami"])
@pytest.mark.parametrize("headers", FOREIGN)
def test_web_pages_of_others_are_refused(host: Host, headers: dict[str, str], path: str) -> None:
    """SEC-2: the console's own are not, which send their origin with all that changes something."""
    for method in ("GET", "POST"):
        assert host.ask(method, path, headers=headers).status_code == 403
    assert host.ask("GET", "/", headers={"Origin": host.url}).status_code == 200


def test_containers_reach_it_by_a_socket_with_the_same_rules(host: Host) -> None:
    """SEC-2: who is not let in at the port is not let in there."""
    path = host.place.home / CLOUD_SOCKET
    assert path.stat().st_mode & 0o777 == 0o666
    with httpx.Client(base_url=host.url, transport=httpx.HTTPTransport(uds=str(path))) as client:
        assert client.get("/_ministack/health").status_code == 200
        assert client.get("/", headers={"Host": "evil.example"}).status_code == 403
        assert client.post("/", headers=NO_CREDENTIALS).status_code == 403


def test_only_answers_to_cloudformation_need_no_key(host: Host) -> None:
    """An unknown secret changes nothing."""
    assert host.ask("PUT", "/_ministack/cfn-response/unknown", content="{}").status_code != 403
    for method, path in (("GET", "cfn-response/x"), ("POST", "cfn-response/x"), ("PUT", "cfn-responses"), ("PUT", "x")):
        assert host.ask(method, f"/_ministack/{path}").status_code == 403, path


def test_the_console_is_at_the_root_beside_aws(host: Host) -> None:
    page = host.ask("GET", "/")
    assert (page.status_code, page.text) == (200, CONSOLE["index.html"])
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
    assert host.ask("GET", "/jobs/01ABC/log", headers=BROWSER).text == CONSOLE["index.html"]
    assert host.ask("GET", "/assets/index-0a1B.js").text == CONSOLE["assets/index-0a1B.js"]
    assert "Owner" in host.client("s3").list_buckets()  # GET /, signed
    assert host.client("sqs").list_queues()["ResponseMetadata"]["HTTPStatusCode"] == 200  # POST /, signed
    assert host.ask("GET", "/?Action=ListUsers&Version=2010-05-08").status_code == 403
    assert host.ask("GET", "/", headers=NO_CREDENTIALS).status_code == 403


def presigned(host: Host, bucket: str, key: str) -> str:
    """A URL to download an object, signed as the functions sign it."""
    credentials = Credentials(host.place.key(), "local")
    request = AWSRequest("GET", f"{host.url}/{bucket}/{key}")
    S3SigV4QueryAuth(credentials, "s3", "us-east-1", expires=60).add_auth(request)
    return str(request.url)


@pytest.mark.parametrize("headers", [{}, {"Origin": "here"}])
def test_what_a_job_left_runs_nothing_in_a_browser(host: Host, headers: dict[str, str]) -> None:
    """SEC-2: it has the console's origin here, where whoever is signed in would be acted for."""
    s3 = host.client("s3")
    s3.create_bucket(Bucket="left")
    s3.put_object(Bucket="left", Key="x.html", Body=b"<script>steal()</script>", ContentType="text/html")
    url = presigned(host, "left", "x.html")
    sent = {name: host.url for name in headers}
    answer = host.ask("GET", url.removeprefix(host.url), headers={**BROWSER, **sent})
    assert (answer.status_code, answer.text) == (200, "<script>steal()</script>")
    assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'; sandbox"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert host.ask("GET", "/left/x.html", headers=BROWSER).text == CONSOLE["index.html"]  # unsigned: a page's path


def test_a_page_of_another_port_is_refused_and_one_of_its_own_is_not(host: Host) -> None:
    port = int(host.url.rpartition(":")[2])
    assert host.ask("GET", "/_ministack/health", headers={"Origin": host.url}).status_code == 200
    for other in (f"http://127.0.0.1:{port + 1}", f"https://127.0.0.1:{port}", f"http://localhost:{port}"):
        assert host.ask("GET", "/_ministack/health", headers={"Origin": other}).status_code == 403
    both = [("Origin", host.url), ("Origin", "http://evil.example")]
    assert host.ask("GET", "/_ministack/health", headers=both).status_code == 403


def test_aws_services_want_the_owners_key(host: Host) -> None:
    assert host.ask("POST", "/", headers=NO_CREDENTIALS, content="{}").status_code == 403
    forged = {**NO_CREDENTIALS, "Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/dynamodb/aws4"}
    assert host.ask("POST", "/", headers=forged, content="{}").status_code == 403
    assert host.client("dynamodb").list_tables()["TableNames"] == []


def test_the_emulators_administration_is_refused(host: Host) -> None:
    assert host.ask("POST", "/_ministack/reset").status_code == 403


def test_a_role_may_do_what_it_is_granted_and_no_more(host: Host) -> None:
    client = host.acting_as("reader", {"Effect": "Allow", "Action": "sqs:ListQueues", "Resource": "*"}, "sqs")
    client.list_queues()
    with pytest.raises(ClientError, match="AccessDenied"):
        client.create_queue(QueueName="no")


def test_the_meter_counts_and_starts_anew(host: Host) -> None:
    assert host.ask("POST", "/_penstock/meter/reset").status_code == 200
    dynamodb = host.client("dynamodb")
    dynamodb.create_table(
        TableName="metered",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    dynamodb.put_item(TableName="metered", Item={"pk": {"S": "a"}, "filler": {"S": "x" * 1500}})
    answer = dynamodb.get_item(TableName="metered", Key={"pk": {"S": "a"}}, ConsistentRead=True)
    host.function("metered", "def handler(event, context): pass")({})
    reading = host.ask("GET", "/_penstock/meter").json()
    assert answer["Item"]["pk"] == {"S": "a"}
    assert reading["operations"]["dynamodb:PutItem"] == 1
    assert reading["dynamodb units"] == {"read": 1, "write": 2}
    assert reading["calls"] == {"metered": 1}
    assert reading["by"]["outside dynamodb:PutItem"] == 1
    host.ask("POST", "/_penstock/meter/reset")
    assert host.ask("GET", "/_penstock/meter").json() == {}
