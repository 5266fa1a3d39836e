"""Who may read a job: who may see it, and everybody if its repository is public. [SEC-2]

docs/decisions/0087-public-repositories.md
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2 as Event

from penstock.api.app import Authenticated, anybody
from penstock.domain.users.users import Bearer, Need
from penstock.system import System
from penstock.usecases.jobs import readers


def _reader(on: System, event: Event, path: Mapping[str, str], need: Need) -> Bearer | None:
    """Who reads a job; None for a stranger, who reads those of public repositories only. Raises Refused 401. [SEC-2]"""
    shown = anybody(on, event, path, need)
    if shown is None:
        readers.find(on, None, path["job"])
    return shown


def _lister(on: System, event: Event, path: Mapping[str, str], need: Need) -> Bearer | None:
    """Who lists jobs; None for a stranger, who lists those of one public repository. Raises Refused 401. [SEC-2]"""
    shown = anybody(on, event, path, need)
    if shown is None:
        readers.require_public(on, str(event.get_query_string_value("owner", "")))
    return shown


WORDS = "Jobs of public repositories are read without a token."

Reader = Annotated[Bearer | None, Authenticated(_reader, WORDS)]
"""Whoever reads a job, which the path names: any user who may see it, or anybody if it is public."""

Lister = Annotated[Bearer | None, Authenticated(_lister, WORDS)]
"""Whoever lists jobs: any user, or anybody for those of a public repository."""
