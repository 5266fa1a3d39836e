"""Resolves references to secrets in a site file, when the secret is needed.

    env:NAME                          a variable of the function's environment
    secretsmanager:penstock/cloud     a secret of Secrets Manager, below penstock/
    ssm:/penstock/cloud/password      a parameter of SSM, below /penstock/

With `#key` at the end: one entry of a secret that is a JSON object.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from penstock.kernel.errors import Misconfigured, Unknown

REFERENCE = r"(env:[A-Za-z_][A-Za-z0-9_]*|secretsmanager:penstock/[\w/+=.@-]+|ssm:/penstock/[\w./-]+)(#[\w.-]+)?"
"""The form of a reference. Names begin with penstock, so that a site file cannot read any other secret."""

Resolve = Callable[[str], str]


def resolver(environment: Mapping[str, str], stores: Mapping[str, Resolve] | None = None) -> Resolve:
    """A function from reference to value. It raises Misconfigured, or Unknown if the store does not answer."""
    known = {"secretsmanager": _secret, "ssm": _parameter, **(stores or {})}

    def resolve(reference: str) -> str:
        store, _, rest = reference.partition(":")
        name, _, key = rest.partition("#")
        if store == "env":
            found = environment.get(name, "")
            if not found:
                raise Misconfigured(
                    f"the function has no environment variable {name}, which the site file names as {reference}"
                )
        else:
            found = known[store](name)
        return _entry(found, key, reference) if key else found

    return resolve


def _entry(secret: str, key: str, reference: str) -> str:
    """One entry of a secret that is a JSON object. Errors never contain the secret."""
    try:
        table = json.loads(secret)
    except ValueError:
        table = None
    if not isinstance(table, dict) or not isinstance(table.get(key), str):
        raise Misconfigured(f"the secret {reference} is not a JSON object with a string under {key}")
    return str(table[key])


def _secret(name: str) -> str:
    def call() -> str:
        import boto3

        return boto3.client("secretsmanager").get_secret_value(SecretId=name)["SecretString"]

    return _read(name, call)


def _parameter(name: str) -> str:
    def call() -> str:
        import boto3

        answer = boto3.client("ssm").get_parameter(Name=name, WithDecryption=True)
        return str(answer["Parameter"]["Value"])

    return _read(name, call)


UNREADABLE = ("AccessDeniedException", "ParameterNotFound", "ResourceNotFoundException", "ValidationException")


def _read(name: str, call: Callable[[], str]) -> str:
    """Call a store, and translate its errors."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return call()
    except KeyError as error:
        raise Misconfigured(f"the secret {name} is binary; store it as text") from error
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        if code in UNREADABLE:
            raise Misconfigured(
                f"the secret {name} cannot be read ({code}): check its name and the function's permission"
            ) from error
        raise Unknown(f"the secret {name} cannot be read now: {code}", code) from error
    except BotoCoreError as error:
        raise Unknown(f"the secret {name} cannot be read now: {type(error).__name__}") from error
