"""Every function may do what infra/grants.py says, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from infra.grants import CONSOLE_GRANTS, FLOW_GRANTS, GRANTS
from infra.settings import Settings
from penstock.domain.github.accounts import account_key
from penstock.domain.github.checks import check_key
from penstock.domain.github.commits import set_key, tip_key
from penstock.domain.github.deliveries import LIST_CHECK_KEY, delivery_key, pause_key, payload_key
from penstock.domain.jobs.jobs import job_key
from penstock.domain.site.site import SITE_KEY
from penstock.domain.users.logins import login_key, pace_key
from penstock.domain.users.requests import request_key
from penstock.domain.users.users import token_key, user_key
from penstock.kernel.rows import Key
from tests.infra.template import Template, listed, may_write, resources, rows_named, text


def granted(stack: Template, role: Any) -> dict[str, set[str]]:
    """A role's actions by resource, its own log group left out."""
    found: dict[str, set[str]] = {}
    names = resources(stack)
    for statement in stack.statements(role):
        assert statement["Effect"] == "Allow"
        for resource in listed(statement["Resource"]):
            if listed(statement["Action"]) != ["logs:CreateLogStream", "logs:PutLogEvents"]:
                name = rows_named(statement) or names[text(resource)]
                found.setdefault(name, set()).update(listed(statement["Action"]))
    return found


@pytest.mark.parametrize("name", GRANTS)
def test_a_function_may_do_what_the_table_says(stack: Template, name: str) -> None:
    role = stack.functions()[name]["Role"]
    rows = {**GRANTS[name], **CONSOLE_GRANTS.get(name, {})}
    assert granted(stack, role) == {resource: set(actions) for resource, actions in rows.items()}


@pytest.mark.parametrize("name", ["schedule", "factory", "well", "settle"])
def test_who_only_does_jobs_work_writes_no_token_and_no_site(stack: Template, name: str) -> None:
    """SEC-2: whoever takes over such a function makes nobody an operator, and no trace of it is rewritten."""
    may = list(stack.statements(stack.functions()[name]["Role"]))
    others = [
        token_key("t"), SITE_KEY, Key("audit#01", "audit"), login_key("BCDF-GHJK"), account_key(7), user_key("ada"),
        user_key("oxide:hubris"), request_key("ada", "admin"), delivery_key("d-1"), payload_key("00"),
        set_key(7, "0" * 40), tip_key(7, "branch/main"), check_key(7, "0" * 40, 1), pause_key(7), LIST_CHECK_KEY,
    ]  # fmt: skip
    ours = [job_key("j").pk, "unit#w-1", "pool#target/linux", "site#x", "latest#ada/token#", pace_key("all").pk]
    assert not [key for key in others if may_write(may, key.pk)]
    assert not [key for key in ours if not may_write(may, key)]
    assert may_write(may, job_key("j").pk, user_key("ada").pk), "a grant checks its owner's row beside what it writes"
    assert not may_write(may, user_key("ada").pk, user_key("bob").pk)


def test_the_flow_may_do_what_the_table_says(stack: Template) -> None:
    role = stack.one("StepFunctions::StateMachine")[1]["RoleArn"]
    assert granted(stack, role) == {resource: set(actions) for resource, actions in FLOW_GRANTS.items()}


def test_a_function_logs_to_its_own_group_only(stack: Template) -> None:
    for name, function in stack.functions().items():
        logs = [each for each in stack.statements(function["Role"]) if listed(each["Action"])[0].startswith("logs:")]
        group = function["LoggingConfig"]["LogGroup"]["Ref"]
        assert [text(each["Resource"]) for each in logs] == [f"<{group}.Arn>"], name


def test_no_policy_has_a_wildcard_beyond_objects_bells_executions_and_alarms(stack: Template) -> None:
    statements = [
        statement
        for policy in stack.of("IAM::Policy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ]
    actions = [action for each in statements for action in listed(each["Action"])]
    wide = {text(each) for statement in statements for each in listed(statement["Resource"]) if "*" in text(each)}
    assert not [action for action in actions if "*" in action]
    console = f"<{stack.named('S3::Bucket', 'Console')[0]}.Arn>/*"  # written by what uploads the console's files
    assert {resources(stack)[each] for each in wide - {console}} == {"objects", "bells", "executions", "alarms"}


def test_roles_have_no_managed_policies_and_one_principal(stack: Template) -> None:
    for role in stack.of("IAM::Role").values():
        assert "ManagedPolicyArns" not in role["Properties"]
        (statement,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        assert statement["Principal"]["Service"] in ("lambda.amazonaws.com", "states.amazonaws.com")


def test_only_those_who_make_or_check_keys_read_the_secret() -> None:
    assert {name for name, rows in GRANTS.items() if "signing secret" in rows} == {"factory", "well", "agent_api"}


def test_only_the_agents_side_opens_what_is_sealed() -> None:
    """SEC-1: wells and whoever submits a job seal what drivers say, and users and jobs what they put into stores."""
    may = {name: rows["metadata key"] for name, rows in GRANTS.items() if "metadata key" in rows}
    seal, both = ("kms:Encrypt",), ("kms:Decrypt", "kms:Encrypt")
    assert may == {"well": seal, "api": seal, "sweep": seal, "agent_api": both}


def test_only_one_function_has_identity_tokens_signed() -> None:
    """SEC-2: who signs can be anybody."""
    may = {name: rows["identity key"] for name, rows in GRANTS.items() if "identity key" in rows}
    assert may == {"api": ("kms:GetPublicKey",), "agent_api": ("kms:Sign",)}


def test_the_identity_key_signs_and_cannot_be_read(stack: Template) -> None:
    (key,) = [each["Properties"] for name, each in stack.of("KMS::Key").items() if "Identity" in name]
    assert (key["KeySpec"], key["KeyUsage"]) == ("RSA_2048", "SIGN_VERIFY")
    told = stack.functions()["agent_api"]["Environment"]["Variables"]["IDENTITY_KEYS"]
    assert "Identity1" in str(told)


def test_only_the_api_has_statements_signed() -> None:
    """SEC-2: who signs can say of any file that a job made it."""
    may = {name: rows["provenance key"] for name, rows in GRANTS.items() if "provenance key" in rows}
    assert may == {"api": ("kms:GetPublicKey", "kms:Sign")}


def test_the_provenance_key_signs_and_cannot_be_read(stack: Template) -> None:
    (key,) = [each["Properties"] for name, each in stack.of("KMS::Key").items() if "Provenance" in name]
    assert (key["KeySpec"], key["KeyUsage"]) == ("ECC_NIST_P256", "SIGN_VERIFY")
    assert "Provenance" in str(stack.functions()["api"]["Environment"]["Variables"]["PROVENANCE_KEY"])


def test_of_two_identity_keys_the_first_signs_and_both_are_published(stacks_with_settings: Mapping[str, Path]) -> None:
    stack = Template.read(stacks_with_settings["keys"] / "Penstock.template.json")
    old, new = sorted(name for name in stack.of("KMS::Key") if "Identity" in name)
    may = {
        name: {
            text(resource): action
            for statement in stack.statements(function["Role"])
            for resource in listed(statement["Resource"])
            for action in listed(statement["Action"])
            if action in ("kms:Sign", "kms:GetPublicKey") and "Identity" in text(resource)
        }
        for name, function in stack.functions().items()
    }
    assert {name: found for name, found in may.items() if found} == {
        "api": {f"<{old}.Arn>": "kms:GetPublicKey", f"<{new}.Arn>": "kms:GetPublicKey"},
        "agent_api": {f"<{new}.Arn>": "kms:Sign"},
    }
    told = str(stack.functions()["api"]["Environment"]["Variables"]["IDENTITY_KEYS"])
    assert told.index(new) < told.index(old)


@pytest.mark.parametrize("names", [("",), ("1", "1"), ("a-b",), tuple("123456"), ()])
def test_names_of_identity_keys(names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="identity_keys must be"):
        Settings(identity_keys=names)
    assert Settings.of({"identity_keys": "2, 1"}).identity_keys == ("2", "1")
