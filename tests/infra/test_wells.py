"""What wells need beyond the stack is a choice of the deployment, by name and for no other function. [SEC-2]"""

from __future__ import annotations

import pytest

from infra import names
from tests.infra.template import Template, listed, text

HERE = "<AWS::Region>:<AWS::AccountId>"
CLEANER = "arn:aws:lambda:eu-west-1:123456789012:function:clean-sandboxes"
OTHER = "arn:aws:lambda:eu-west-1:123456789012:function:clean-racks"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Template:
    """With both, checked by the security rules, or it would not come out."""
    folder = tmp_path_factory.mktemp("wells")
    secrets = "penstock/rack, /penstock/boards/key"
    return Template.synthesised(folder, well_secrets=secrets, accounts_lambdas=f"{CLEANER},{OTHER}")


def more(made: Template, stack: Template, name: str) -> dict[str, set[str]]:
    """What a function may do that it may not without."""

    def granted(template: Template) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for statement in template.statements(template.functions()[name]["Role"]):
            for resource in listed(statement["Resource"]):
                found.setdefault(text(resource), set()).update(listed(statement["Action"]))
        return found

    before = granted(stack)
    return {resource: actions for resource, actions in granted(made).items() if before.get(resource) != actions}


SECRETS = {
    f"arn:<AWS::Partition>:secretsmanager:{HERE}:secret:penstock/rack-??????": {"secretsmanager:GetSecretValue"},
    f"arn:<AWS::Partition>:ssm:{HERE}:parameter/penstock/boards/key": {"ssm:GetParameter"},
}
CALLS = {"lambda:GetFunctionConfiguration", "lambda:InvokeFunction"}


def test_those_that_are_named_and_no_other(made: Template, stack: Template) -> None:
    assert more(made, stack, "well") == {**SECRETS, CLEANER: CALLS, OTHER: CALLS}
    assert more(made, stack, "sweep") == SECRETS
    for name in set(made.functions()) - {"well", "sweep"}:
        assert more(made, stack, name) == {}


@pytest.mark.parametrize("name", ["others/rack", "penstock", "penstock/*", "/other/penstock/a", "penstock/r?ck"])
def test_no_secret_that_is_not_below_our_name(name: str) -> None:
    assert names.secrets(["penstock/rack"]) == ["penstock/rack"]
    with pytest.raises(ValueError, match="well_secrets"):
        names.secrets(["penstock/rack", name])


@pytest.mark.parametrize("arn", ["*", "clean", CLEANER + "*", "arn:aws:s3:eu-west-1:123456789012:function:clean"])
def test_no_function_that_has_no_arn(arn: str) -> None:
    with pytest.raises(ValueError, match="accounts_lambdas"):
        names.functions([CLEANER, arn])
