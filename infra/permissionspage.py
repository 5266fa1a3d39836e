"""Writes docs/operators/permissions.md from the routes' declarations: `python -m infra.permissionspage`."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.api import readers, routers, workers
from penstock.api.app import Operation
from penstock.domain.users.users import MEANINGS, Scope

HEAD = """# Who may do what

<!-- made by `PYTHONPATH=functions .venv/bin/python -m infra.permissionspage`; a test compares it with the code -->

A request needs two things: a user who may do it, and a token that is good for it. What a user may do follows from their
[privileges](privileges.md). What a token is good for is its **scopes**. A scope only narrows: a token with the scope
`operate` of a user who is no operator operates nothing.

| scope | a token with it may |
|---|---|
"""

MIDDLE = """
A scope with a colon is narrower than the one without: `submit:oxide:hubris` is for the jobs of this repository only,
`operate:target/lab` for this pool and what is in it, `host:target/lab/bench-7` for this host.

An answer 403 with the code `scope-missing` names the scope that the token lacks, one with `privilege-missing` the
privilege that the user lacks. What you may not see is answered with 404, as if it did not exist.

## Operations

**Whose** says which user may call: *any user* deals with what is theirs, and operators with everything; *operators* are
users with the privilege `admin`. **Scope** is what the token needs: any of those in the cell, or `all`. "any but a
host's" means that every token will do, except one that only has `host` scopes; to make or revoke a token of another
user, or one of your own that yours did not make, it needs `users`.
"""

OPEN = "without a token"


def whose(operation: Operation) -> str:
    """Which user may call an operation."""
    if operation.caller is None:
        return "anybody"
    if operation.caller.who == "For operators only.":
        return "operators"
    if not operation.caller.has_scopes:
        return "the job's worker" if operation.caller.must else "anybody"
    if operation.caller.who == readers.WORDS:
        return "any user; anybody, if public"
    return "anybody, if public" if operation.open else "any user"


def scope(operation: Operation) -> str:
    """What a token needs for an operation."""
    if operation.caller is None or not (operation.caller.must or operation.caller.has_scopes):
        return OPEN
    if not operation.caller.has_scopes:
        return "the worker's own token"
    if not operation.need.scope:
        return "any but a host's"
    parameter = {"submit": "OWNER", "operate": "POOL", "host": "POOL/NAME"}.get(operation.need.scope, "")
    narrow = f"`{Scope(operation.need.scope, parameter)}`"
    if operation.need.scope == "host":
        return narrow
    return f"`{operation.need.scope}`" + (f", {narrow}" if operation.need.narrows else "")


def page() -> str:
    """The whole page."""
    return "".join(_parts())


def _parts() -> Iterator[str]:
    yield HEAD
    for name, meaning in MEANINGS.items():
        yield f"| `{name}` | {meaning} |\n"
    yield MIDDLE
    nouns: dict[str, list[Operation]] = {}
    for router in (*routers.ROUTERS, workers.router):
        nouns.setdefault(router.noun, []).extend(router.operations)
    for noun, operations in nouns.items():
        yield f"\n### {noun[:1].upper()}{noun[1:]}\n\n| operation | what it does | whose | scope |\n|---|---|---|---|\n"
        for each in operations:
            yield f"| `{each.method} {each.path}` | {each.summary} | {whose(each)} | {scope(each)} |\n"


if __name__ == "__main__":
    print(page(), end="")
