"""The front end for GitHub is a choice of the deployment; whom the Internet reaches may do next to nothing. [SEC-2]"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from infra.grants import GITHUB_GRANTS, GRANTS
from penstock.domain.github.accounts import account_key
from penstock.domain.github.commits import set_key
from penstock.domain.github.deliveries import delivery_key
from penstock.domain.site.site import SITE_KEY
from penstock.domain.users.logins import login_key
from penstock.domain.users.requests import request_key
from penstock.domain.users.users import token_key, user_key
from tests.infra.template import Template, listed, may_write, resources, rows_named, text

OURS = ("github_webhook", "github_work")


@pytest.fixture(scope="module")
def out(stacks_with_settings: Mapping[str, Path]) -> Template:
    """What `cdk deploy -c github=true` would deploy."""
    return Template.of_assembly(stacks_with_settings["github"])


def named(stack: Template, kind: str, part: str) -> str:
    return next(name for name in stack.of(kind) if part in name)


def granted(out: Template, name: str) -> dict[str, set[str]]:
    """A function's actions by resource, its own log group left out."""
    names: dict[str, str] = {
        f"<{named(out, 'KMS::Key', 'GitHubKey')}.Arn>": "github key",
        f"<{named(out, 'KMS::Key', 'GitHubTokens')}.Arn>": "github tokens",
        f"<{named(out, 'SecretsManager::Secret', 'GitHubWebhook')}>": "github secret",
        f"<{named(out, 'SecretsManager::Secret', 'GitHubClient')}>": "github client",
        f"<{out.queue('github')[0]}.Arn>": "github queue",
    }
    table = out.one("DynamoDB::GlobalTable")[0]
    names[f"<{table}.Arn>"] = "table"
    metadata = named(out, "KMS::Key", "Metadata")
    names[f"<{metadata}.Arn>"] = "metadata key"
    for queue in ("schedule", "serve", "factory", "well"):
        names[f"<{out.queue(queue)[0]}.Arn>"] = f"{queue} queue"
    found: dict[str, set[str]] = {}
    for statement in out.statements(out.functions()[name]["Role"]):
        for resource in listed(statement["Resource"]):
            if not listed(statement["Action"])[0].startswith("logs:"):
                arn = text(resource)
                where = "flow" if ":stateMachine:" in arn else rows_named(statement) or names[arn]
                found.setdefault(where, set()).update(listed(statement["Action"]))
    return found


@pytest.mark.parametrize("name", [*OURS, "schedule"])
def test_a_function_may_do_what_the_tables_say(out: Template, name: str) -> None:
    wanted = {**GRANTS.get(name, {}), **GITHUB_GRANTS[name]}
    assert granted(out, name) == {resource: set(actions) for resource, actions in wanted.items()}


def test_the_webhook_puts_deliveries_and_no_users_or_tokens(out: Template) -> None:
    """SEC-2: whoever takes over what the Internet reaches makes nobody an operator."""
    (statement,) = [
        each
        for each in out.statements(out.functions()["github_webhook"]["Role"])
        if listed(each["Action"])[0].startswith("dynamodb:")
    ]
    assert listed(statement["Action"]) == ["dynamodb:PutItem"]
    assert statement["Condition"] == {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["delivery#*"]},
        "Null": {"dynamodb:LeadingKeys": "false"},
    }
    tried = [delivery_key("d-1").pk, user_key("root").pk, token_key("t").pk]
    assert [may_write([statement], key) for key in tried] == [True, False, False]


def test_who_reads_what_strangers_push_writes_no_user_and_nothing_that_becomes_a_token(out: Template) -> None:
    """SEC-2: neither a token, nor a login that an operator seems to have approved, nor a link to an account."""
    may = list(out.statements(out.functions()["github_work"]["Role"]))
    others = [
        token_key("t"), login_key("BCDF-GHJK"), account_key(7), SITE_KEY, user_key("ada"), request_key("ada", "admin"),
    ]  # fmt: skip
    ours = [delivery_key("d-1").pk, set_key(7, "0" * 40).pk, "github", "job#j", "audit#01", "minted#j"]
    assert not [key for key in others if may_write(may, key.pk)]
    assert not [key for key in ours if not may_write(may, key)]
    assert may_write(may, "job#j", user_key("ada").pk), "a grant checks its owner's row beside what it writes"
    assert may_write(may, user_key("oxide:hubris").pk), "a repository's first commit binds it to its id at GitHub"


def test_only_one_signs_and_only_one_reads_the_secret(out: Template) -> None:
    """Who signs as the App signs no identity tokens, and the other way round: each has a key of its own."""
    for name, function in out.functions().items():
        actions = {each for said in out.statements(function["Role"]) for each in listed(said["Action"])}
        assert ("kms:Sign" in actions) == (name in ("github_work", "agent_api", "api"))
    signing = {name: {row for row, actions in rows.items() if "kms:Sign" in actions} for name, rows in GRANTS.items()}
    assert {name: rows for name, rows in signing.items() if rows} == {
        "agent_api": {"identity key"},
        "api": {"provenance key"},
    }
    assert "identity key" not in GITHUB_GRANTS["github_work"]
    assert {name for name, rows in GITHUB_GRANTS.items() if "github secret" in rows} == {"github_webhook"}
    assert {name for name, rows in GITHUB_GRANTS.items() if "github client" in rows} == {"api"}


def test_who_makes_tokens_opens_those_and_nothing_else_that_is_sealed(out: Template) -> None:
    """SEC-1: what wells, users and jobs have sealed is opened by whoever faces the workers, and by nobody else."""
    may = {name: rows["github tokens"] for name, rows in GITHUB_GRANTS.items() if "github tokens" in rows}
    assert may == {"github_work": ("kms:Decrypt", "kms:Encrypt")}
    assert GITHUB_GRANTS["github_work"]["metadata key"] == ("kms:Encrypt",)
    assert "github tokens" not in {row for rows in GRANTS.values() for row in rows}


def test_the_apps_key_is_brought_in_and_only_signs(out: Template) -> None:
    key = out.of("KMS::Key")[named(out, "KMS::Key", "GitHubKey")]["Properties"]
    assert (key["KeySpec"], key["KeyUsage"], key["Origin"]) == ("RSA_2048", "SIGN_VERIFY", "EXTERNAL")


def test_its_outputs_have_the_names_that_operators_are_told(out: Template) -> None:
    assert {"AppKey", "WebhookSecret"} <= set(out.content["Outputs"])


def test_without_it_there_is_none_of_it(stack: Template) -> None:
    assert not set(OURS) & set(stack.functions())
    assert not [name for name in stack.content["Resources"] if "GitHub" in name]
    assert "GITHUB_QUEUE" not in stack.functions()["schedule"]["Environment"]["Variables"]
    assert resources(stack)


def test_every_function_is_told_where_it_is(out: Template) -> None:
    for function in out.functions().values():
        assert {"GITHUB_QUEUE", "GITHUB_KEY", "GITHUB_TOKENS", "GITHUB_SECRET"} <= set(
            function["Environment"]["Variables"]
        )


def test_its_path_leads_to_it_and_it_is_woken_every_few_minutes(out: Template) -> None:
    routes = {each["Properties"]["RouteKey"] for each in out.of("ApiGatewayV2::Route").values()}
    assert "POST /v1/github/webhook" in routes
    rates = [each["Properties"].get("ScheduleExpression") for each in out.of("Events::Rule").values()]
    assert "rate(5 minutes)" in rates
    alarms = [each["Properties"]["AlarmName"] for each in out.of("CloudWatch::Alarm").values()]
    assert {f"Penstock-FunctionErrors-{name}" for name in OURS} <= set(alarms)
    assert {"Penstock-DeadLetters-github", "Penstock-QueueAge-github"} <= set(alarms)
