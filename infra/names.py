"""Checks of names in a deployment's settings: secrets of drivers, and cleaning functions. Does not import the CDK."""

from __future__ import annotations

import re
from collections.abc import Sequence

SECRET = re.compile(r"/?penstock/[\w/+=.@-]+")
"""A secret of Secrets Manager, or, with a slash, an SSM parameter. Both must be below penstock/."""

FUNCTION = re.compile(r"arn:aws[a-z-]*:lambda:[a-z0-9-]+:\d{12}:function:[A-Za-z0-9_-]{1,64}")


def secrets(option: str, names: Sequence[str]) -> Sequence[str]:
    """Names of secrets that factories or wells read, as an option has them. Raises ValueError."""
    for name in names:
        if not SECRET.fullmatch(name):
            raise ValueError(f"{option}: {name!r} must begin with penstock/ or /penstock/")
    return names


def functions(arns: Sequence[str]) -> Sequence[str]:
    """ARNs of cleaning functions. Raises ValueError."""
    for arn in arns:
        if not FUNCTION.fullmatch(arn):
            raise ValueError(f"accounts_lambdas: {arn!r} is not the ARN of a function")
    return arns
