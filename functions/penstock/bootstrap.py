"""Plugs the adapters into the ports, for the functions, and wraps their handlers.

The only reader of a function's environment.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Callable, Mapping
from functools import cache, wraps
from typing import Any, Literal

import boto3
from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from botocore.config import Config
from botocore.session import get_session

from penstock.aws import dynamodb
from penstock.aws.clock import RealWorld
from penstock.aws.cloudwatch import EmfMetrics
from penstock.aws.dynamodb import Table
from penstock.aws.github import GitHub
from penstock.aws.kms import KmsAppKey, KmsAttestor, KmsSigner, KmsVault
from penstock.aws.reach import watched
from penstock.aws.s3 import S3Objects
from penstock.aws.sqs import SqsQueues
from penstock.aws.stepfunctions import StepFlows
from penstock.domain.metrics import Level
from penstock.drivers import Registry
from penstock.kernel.rows import check_form
from penstock.ports import AgentFile, Alarms, Attestor, DeadLetters, Signer
from penstock.system import NoSigner, System

Handler = Callable[[dict[str, Any], LambdaContext], dict[str, Any]]


class Lazy:
    """Stands for what `make` returns, and calls it on first use: a function pays only for clients that it needs."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        self.make()
        return self.__dict__[name]

    def make(self) -> None:
        """Call it now."""
        made = self._make()
        self.__dict__.update({key: getattr(made, key) for key in dir(made) if not key.startswith("_")})


def prepare(*ports: str) -> None:
    """Make the clients that most calls of a function need, while Lambda initialises it: not during the first call.

    It ends the initialisation: from here on garbage is collected (penstock/__init__.py), but not among what is there.
    """
    if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
        for port in ports:
            getattr(aws(), port).make()
        dynamodb.prepare()
        gc.freeze()
        gc.enable()


@cache
def aws() -> System:
    """The system on AWS, from a function's environment. Clients are made when they are first used.

    All share one session, because each session reads botocore's data anew.
    """
    env = os.environ
    session = get_session()
    boto3.setup_default_session(botocore_session=session)
    config = Config(retries={"mode": "standard", "max_attempts": 4}, signature_version="v4")
    s3 = cache(lambda: watched(boto3.client("s3", config=_s3_config(config))))
    agent = Lazy(lambda: S3Objects(s3(), env["AGENT_BUCKET"]))
    return System(
        store=Lazy(lambda: Table(env["TABLE"], env["AWS_REGION"], session)),
        queues=Lazy(
            lambda: SqsQueues(
                watched(boto3.client("sqs", config=config)),
                env["SCHEDULE_QUEUE"],
                env["SERVE_QUEUE"],
                env["FACTORY_QUEUE"],
                env["WELL_QUEUE"],
                env["SWEEP_QUEUE"],
            )
        ),
        flows=Lazy(lambda: StepFlows(watched(boto3.client("stepfunctions", config=config)), env["FLOW"])),
        objects=Lazy(lambda: S3Objects(s3(), env["BUCKET"])),
        drivers=Registry(env),
        world=RealWorld(),
        vault=Lazy(lambda: KmsVault(watched(boto3.client("kms", config=config)), env["METADATA_KEY"])),
        url=env.get("PUBLIC_URL", "").rstrip("/"),
        signing_key=_signing_key,
        metrics=metrics(),
        signer=Lazy(lambda: _signer(env.get("IDENTITY_KEYS", ""), config)),
        attestor=Lazy(lambda: _attestor(env["PROVENANCE_KEY"], config)) if env.get("PROVENANCE_KEY") else None,
        agent_file=AgentFile(agent, env["AGENT_FILE"]) if env.get("AGENT_FILE") else None,
        console_url=env.get("CONSOLE_URL", "").rstrip("/"),
        front_key=_front_key if env.get("FRONT_SECRET") else None,
        **(_watched(config) if env.get("DEAD_QUEUES") else {}),
        **(_github(config) if env.get("GITHUB_QUEUE") else {}),
    )


def _watched(config: Config) -> Mapping[str, Any]:
    """The alarms and dead letters, for the API alone. A page waits for them, so services are not waited for long."""
    env = os.environ
    soon = config.merge(
        Config(connect_timeout=2, read_timeout=3, retries={"mode": "standard", "total_max_attempts": 2})
    )
    urls = dict(each.split("=", 1) for each in env["DEAD_QUEUES"].split(","))
    return {
        "alarms": Lazy(lambda: _alarms(soon, env["POWERTOOLS_SERVICE_NAME"])),
        "dead_letters": Lazy(lambda: _dead_letters(soon, urls)),
    }


def _alarms(config: Config, deployment: str) -> Alarms:
    from penstock.aws.alarms import CloudWatchAlarms  # only the API has them, and other functions do not import it

    name: Any = "cloudwatch"  # the types of its client are not installed
    return CloudWatchAlarms(watched(boto3.client(name, config=config)), deployment)


def _dead_letters(config: Config, urls: Mapping[str, str]) -> DeadLetters:
    from penstock.aws.alarms import SqsDeadLetters

    return SqsDeadLetters(watched(boto3.client("sqs", config=config)), urls)


def _s3_config(config: Config) -> Config:
    """Path-style URLs for an endpoint of our own: a local one has no host names below it."""
    style: Literal["path", "virtual"] = "path" if os.environ.get("AWS_ENDPOINT_URL") else "virtual"
    return config.merge(Config(signature_version="s3v4", s3={"addressing_style": style}))


@cache
def _signing_key() -> str:
    return _secret("SIGNING_SECRET")


@cache
def _front_key() -> str:
    return _secret("FRONT_SECRET")


def _secret(name: str) -> str:
    client = watched(boto3.client("secretsmanager"))
    return client.get_secret_value(SecretId=os.environ[name])["SecretString"]


def _signer(keys: str, config: Config) -> Signer:
    """Signs identity tokens with the first key; the public halves of the others are published too."""
    named = [key for key in keys.split(",") if key]
    return KmsSigner(watched(boto3.client("kms", config=config)), named) if named else NoSigner()


def _attestor(key: str, config: Config) -> Attestor:
    return KmsAttestor(watched(boto3.client("kms", config=config)), key)


def _github(config: Config) -> Mapping[str, Any]:
    """What the front end for GitHub needs, if the deployment has one."""
    key = os.environ["GITHUB_TOKENS"]
    tokens = Lazy(lambda: KmsVault(watched(boto3.client("kms", config=config)), key))
    return {"forge": Lazy(lambda: _forge(config)), "minted": tokens}


def _forge(config: Config) -> GitHub:
    env = os.environ
    key = KmsAppKey(watched(boto3.client("kms", config=config)), env["GITHUB_KEY"])
    return GitHub(
        watched(boto3.client("sqs", config=config)), env["GITHUB_QUEUE"], key, _webhook_secret, RealWorld().now,
        _client_secret,
    )  # fmt: skip


@cache
def _webhook_secret() -> str:
    return _secret("GITHUB_SECRET")


@cache
def _client_secret() -> str:
    return _secret("GITHUB_CLIENT")


@cache
def metrics() -> EmfMetrics:
    """The metrics of this function's process."""
    env = os.environ
    return EmfMetrics(Level(env.get("PENSTOCK_METRICS", Level.SITE)), env.get("POWERTOOLS_SERVICE_NAME", "penstock"))


def metered(handler: Handler) -> Handler:
    """A handler that reports its metrics when it ends, however it ends."""

    @wraps(handler)
    def told(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
        reported = metrics()
        answer: dict[str, Any] = (reported.wrap(handler) if reported.is_on else handler)(event, context)
        return answer

    return told


log = Logger(child=True)


def each(event: dict[str, Any], step: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Take one step per message, and return to SQS which failed, as ReportBatchItemFailures asks.

    The same message twice is taken once. Not with Powertools' batch, whose import takes a sixth of all that a function
    imports.
    """
    records = event["Records"]
    done = {body: _is_done(body, step) for body in dict.fromkeys(record["body"] for record in records)}
    failed = [record["messageId"] for record in records if not done[record["body"]]]
    return {"batchItemFailures": [{"itemIdentifier": each} for each in failed]}


def _is_done(body: str, step: Callable[[dict[str, Any]], None]) -> bool:
    try:
        message = json.loads(body)
        if isinstance(message, dict):
            check_form(message.get("form", 1))
        step(message)
    except Exception:
        log.exception("a step failed; its message will be delivered again")
        return False
    return True
