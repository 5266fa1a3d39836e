"""The clients of a function: one session, made while Lambda initialises the function."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator

import boto3
import pytest
from botocore.session import Session

from penstock import bootstrap
from penstock.aws import codec, dynamodb

ENVIRONMENT = {
    "AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret", "TABLE": "prepared", "BUCKET": "outputs", "FLOW": "flow",
    "SCHEDULE_QUEUE": "https://sqs/schedule", "FACTORY_QUEUE": "https://sqs/factory", "WELL_QUEUE": "https://sqs/well",
    "SWEEP_QUEUE": "https://sqs/sweep", "SERVE_QUEUE": "https://sqs/serve.fifo",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    bootstrap.aws.cache_clear()
    yield
    bootstrap.aws.cache_clear()


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> list[Session]:
    """The sessions that are made."""
    made: list[Session] = []
    init = Session.__init__

    def counted(self: Session, *args: object, **kwargs: object) -> None:
        made.append(self)
        init(self, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(Session, "__init__", counted)
    return made


def test_all_clients_come_from_one_session(sessions: list[Session]) -> None:
    on = bootstrap.aws()
    for port in ("store", "queues", "flows", "objects"):
        getattr(on, port).make()
    boto3.client("ec2")  # as drivers do
    assert len(sessions) == 1


def test_reads_and_transactions_share_a_client() -> None:
    table = dynamodb.Table("shared", "eu-west-1")
    model = dynamodb.model("shared", "eu-west-1")
    assert model._get_connection().connection is table._connection
    assert table._connection.client is table._connection.client
    assert table._connection.get_meta_table("shared").hash_keyname == "pk"


def test_clients_are_made_while_lambda_initialises_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "Penstock-schedule")
    bootstrap.prepare("queues", "flows")
    gc.unfreeze()
    ports = ("store", "queues", "flows", "objects")
    there = {port for port in ports if len(vars(getattr(bootstrap.aws(), port))) > 1}  # more than what would make it
    assert there == {"queues", "flows"}


def test_elsewhere_an_import_makes_no_client(monkeypatch: pytest.MonkeyPatch, sessions: list[Session]) -> None:
    monkeypatch.delenv("AWS_LAMBDA_FUNCTION_NAME", raising=False)
    bootstrap.prepare("store", "queues", "flows")
    assert sessions == []


def test_how_the_busiest_rows_are_converted_is_worked_out_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "Penstock-schedule")
    codec.codec_of.cache_clear()
    bootstrap.prepare()
    gc.unfreeze()
    made = codec.codec_of.cache_info().misses
    for kind in dynamodb.BUSIEST:
        codec.codec_of(kind)
    assert made
    assert codec.codec_of.cache_info().misses == made


@pytest.mark.parametrize(
    ("name", "before", "after"), [("Penstock-schedule", "False 0", "True some"), (None, "True 0", "True 0")]
)
def test_garbage_is_not_looked_for_while_lambda_initialises(name: str | None, before: str, after: str) -> None:
    script = """if True:
        import gc
        def show(): print(gc.isenabled(), "some" if gc.get_freeze_count() else 0)
        import penstock; show()
        from penstock import bootstrap
        bootstrap.prepare("queues"); show()
    """
    given = {key: value for key, value in os.environ.items() if key != "AWS_LAMBDA_FUNCTION_NAME"}
    more = {"AWS_LAMBDA_FUNCTION_NAME": name} if name else {}
    done = subprocess.run([sys.executable, "-c", script], env={**given, **more}, capture_output=True, text=True)
    assert done.stdout.splitlines() == [before, after], done.stderr
