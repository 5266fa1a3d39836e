"""The first operator, created with one's own AWS credentials by whoever may write the table."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.aws.clock import RealWorld
from penstock.aws.dynamodb import Table
from penstock.domain.users.users import ADMIN
from penstock.kernel.errors import Refused
from penstock.system import System
from penstock.usecases.users import lifecycle, tokens, users
from penstock.usecases.users.tokens import Lasting

NAME = "admin"

CREATED_BY = "(AWS credentials)"


def create_admin(environment: Mapping[str, str], lasts: Lasting = None, name: str = NAME) -> str:
    """Create an operator, if there is none of this name, and a new token of it. Needs TABLE and AWS_REGION.

    The token lasts 90 days unless `lasts` says otherwise. Raises Refused.
    """
    store = Table(environment["TABLE"], environment["AWS_REGION"])
    nothing: object = None
    on = System(store, nothing, nothing, nothing, nothing, RealWorld(), nothing, "", str)  # type: ignore[arg-type]
    return make_operator(on, name, lasts)


def make_operator(on: System, name: str, lasts: Lasting) -> str:
    """An operator who may act, and a new token; whoever has taken the operators' tokens cannot keep them out."""
    try:
        users.create(on, name, [ADMIN], CREATED_BY)
    except Refused as refused:
        if refused.code != "user-exists":
            raise
        lifecycle.enable(on, CREATED_BY, name)
        users.change_privilege(on, name, ADMIN, grant=True, by=CREATED_BY)
    return tokens.mint_first(on, name, lasts, CREATED_BY)[0]
