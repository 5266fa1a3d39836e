"""The first operator, created with one's own AWS credentials by whoever may write the table."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.aws.clock import RealWorld
from penstock.aws.dynamodb import Table
from penstock.domain.users.users import ADMIN
from penstock.kernel.errors import Refused
from penstock.system import System
from penstock.usecases.users import users

NAME = "admin"

CREATED_BY = "(AWS credentials)"


def create_admin(environment: Mapping[str, str]) -> str:
    """Create the user `admin`, if there is none, and a new token of it. Needs TABLE and AWS_REGION."""
    store = Table(environment["TABLE"], environment["AWS_REGION"])
    nothing: object = None
    on = System(store, nothing, nothing, nothing, nothing, RealWorld(), nothing, "", str)  # type: ignore[arg-type]
    try:
        users.create(on, NAME, [ADMIN], CREATED_BY)
    except Refused as refused:
        if refused.code != "user-exists":
            raise
    secret, _ = users.issue_token(on, NAME, None, CREATED_BY)
    return secret
