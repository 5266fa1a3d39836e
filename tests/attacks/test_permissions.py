"""Random users, tokens and operations, whose answers are compared with docs/operators/permissions.md. [SEC-2]"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infra.permissionspage import page
from penstock.api import openapi
from penstock.api.app import Operation
from penstock.domain.users import users
from penstock.domain.users.users import TokenKind, User, digest, token_secret
from penstock.kernel.rows import Create, ulid
from penstock.testing.twin import START
from tests.functions.service import SITE, Service
from tests.functions.stage import LAB, Stage

PAGE = Path(__file__).parents[2] / "docs/operators/permissions.md"
NAME = "probe"
SECRET = token_secret(TokenKind.USER, ulid(START, b"probeprobe"), digest(NAME))

ROW = re.compile(r"\| `(?P<method>\w+) (?P<path>[^`]+)` \| [^|]+ \| (?P<whose>[^|]+) \| (?P<scope>[^|]+) \|")
TABLE = {(found["method"], found["path"]): found for found in ROW.finditer(PAGE.read_text(encoding="utf-8"))}

DOCUMENT = openapi.document()

EVERY = [*openapi.users(), *openapi.agents()]
OF_USERS = [each for each in EVERY if each.caller and each.caller.has_scopes and not each.open]

POOLS = {"worker": "target/linux", "resource": "resource/bench"}
NARROW = ["submit:probe", "submit:ada", "operate:target/linux", "operate:resource/bench",
          "host:target/benches/bench-7", "host:target/benches/bench-8"]  # fmt: skip
SCOPES = st.lists(st.sampled_from(["all", "read", "submit", "operate", "site", "users", *NARROW]), max_size=4)
PRIVILEGES = st.lists(st.sampled_from(["admin", "as", "host.bench-7", "target.lab", "identity.vouch"]), unique=True)


def test_the_page_is_what_the_routes_declare() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "run `PYTHONPATH=functions python -m infra.permissionspage > docs/operators/permissions.md`"
    )


def test_every_operation_is_in_the_table() -> None:
    assert {(each.method, each.path) for each in EVERY} == set(TABLE)


@pytest.mark.parametrize("operation", OF_USERS, ids=lambda operation: operation.name)
def test_every_operation_declares_its_scope(operation: Operation) -> None:
    """One that declares none would take only tokens for everything."""
    assert operation.need != users.WHOLE
    described = DOCUMENT["paths"][operation.path][operation.method.lower()]
    if operation.scope:
        assert described["security"] == [{"bearer": [operation.scope]}]
        assert f"`{operation.scope}`" in described["description"]


def is_good(operation: Operation, has: list[str], privileges: list[str]) -> bool:
    """Whether the page says that a token with some scopes is good for the request that the stage makes."""
    cell = TABLE[operation.method, operation.path]["scope"]
    if "all" in has:
        return True
    if operation.name == "create_token" and "admin" in privileges:
        return "users" in has  # the stage makes one of another user
    if cell == "any but a host's":
        return any(not scope.startswith("host:") for scope in has)
    allowed = set(re.findall(r"`([^`]+)`", cell))
    if allowed & set(has):
        return True
    if "submit:OWNER" in allowed:
        # on others' jobs, what a narrow token may not see does not exist: that is 404, and not this answer
        mine = [scope for scope in has if scope.startswith("submit:")]
        return bool(mine) if operation.name != "submit_job" else "submit:probe" in has
    if "operate:POOL" in allowed:
        sort = operation.path.split("/")[2].removesuffix("s")
        return f"operate:{POOLS.get(sort, 'target/linux')}" in has
    return "host:POOL/NAME" in allowed and "host:target/benches/bench-7" in has


@pytest.fixture
def stage(service: Service) -> Stage:
    made = Stage(service)
    service.ask("PUT", "/v1/config", {"toml": SITE + LAB}, as_="root")
    return made


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_answer_is_as_the_table_says(stage: Stage, data: st.DataObject) -> None:
    """SEC-2: a token without the scope, and a user without the privilege, get nothing and change nothing."""
    operation = data.draw(st.sampled_from(OF_USERS), "operation")
    has, privileges = data.draw(SCOPES, "scopes"), data.draw(PRIVILEGES, "privileges")
    store = stage.service.twin.store
    before = dict(store.rows)
    try:
        store.commit([Create(User(name=NAME, privileges=tuple(privileges), created=START))])
        stage.service.give(NAME, SECRET, *has)
        path = operation.path.format(**stage.values(operation) | {"token": ulid(START, b"0123456789")})
        body = {} if operation.name in ("create_token", "approve_login") else stage.body(operation)
        rows = dict(store.rows)
        answer = stage.service.ask(operation.method, path, body, token=SECRET)
        code = answer.json["code"] if answer.status == 403 else ""
        if is_good(operation, has, privileges):
            assert code != "scope-missing", answer
        elif any(scope.partition(":")[0] == operation.scope for scope in has):
            assert code in ("scope-missing", "privilege-missing"), answer  # it is narrowed to something else
        else:
            assert code == "scope-missing", answer
        is_for_operators = TABLE[operation.method, operation.path]["whose"] == "operators"
        if is_for_operators and "admin" not in privileges:
            assert answer.status == 403, answer
        if answer.status == 403:
            assert dict(store.rows) == rows
    finally:
        store.rows.clear()
        store.rows.update(before)
        stage.service.twin.queues.messages.clear()
