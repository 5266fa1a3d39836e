"""From the references in a site file to the credentials that they stand for, at the moment of use.

    env:NAME                          a variable of the function's environment
    secretsmanager:penstock/cloud     a secret of Secrets Manager, below penstock/
    ssm:/penstock/cloud/password      a parameter of SSM, below /penstock/

With `#key` at the end, one entry of a secret that is a JSON table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from penstock.kernel.errors import Misconfigured, Unknown

REFERENCE = r"(env:[A-Za-z_][A-Za-z0-9_]*|secretsmanager:penstock/[\w/+=.@-]+|ssm:/penstock/[\w./-]+)(#[\w.-]+)?"
"""What a reference looks like. Only what is below our own name: a site file cannot ask for any other secret."""

Resolve = Callable[[str], str]


def resolver(surroundings: Mapping[str, str], stores: Mapping[str, Resolve] | None = None) -> Resolve:
    """What finds the value behind a reference. It raises Misconfigured, or Unknown when a store does not answer."""
    known = {"secretsmanager": _secret, "ssm": _parameter, **(stores or {})}

    def resolve(reference: str) -> str:
        store, _, rest = reference.partition(":")
        name, _, key = rest.partition("#")
        if store == "env":
            found = surroundings.get(name, "")
            if not found:
                raise Misconfigured(f"there is no environment variable {name}, which {reference} asks for")
        else:
            found = known[store](name)
        return _entry(found, key, reference) if key else found

    return resolve


def _entry(secret: str, key: str, reference: str) -> str:
    """One entry of a secret. What is wrong is told without a word of the secret."""
    try:
        table = json.loads(secret)
    except ValueError:
        table = None
    if not isinstance(table, dict) or not isinstance(table.get(key), str):
        raise Misconfigured(f"what {reference} names is not a JSON table with a text under {key}")
    return str(table[key])


def _secret(name: str) -> str:
    def ask() -> str:
        import boto3

        return boto3.client("secretsmanager").get_secret_value(SecretId=name)["SecretString"]

    return _asked(name, ask)


def _parameter(name: str) -> str:
    def ask() -> str:
        import boto3

        answer = boto3.client("ssm").get_parameter(Name=name, WithDecryption=True)
        return str(answer["Parameter"]["Value"])

    return _asked(name, ask)


NONE_THERE = ("AccessDeniedException", "ParameterNotFound", "ResourceNotFoundException", "ValidationException")


def _asked(name: str, ask: Callable[[], str]) -> str:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return ask()
    except KeyError as error:
        raise Misconfigured(f"the secret {name} is not a text") from error
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        if code in NONE_THERE:
            raise Misconfigured(f"the secret {name} cannot be read: {code}") from error
        raise Unknown(f"the secret {name} cannot be read now: {code}", code) from error
    except BotoCoreError as error:
        raise Unknown(f"the secret {name} cannot be read now: {type(error).__name__}") from error
