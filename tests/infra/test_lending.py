"""Wells in AWS may lend what the deployment names, end that, and touch nothing else. [SEC-2] [UNIT-1]"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from infra.settings import Settings
from tests.infra.stacks import BOUNDARY, JOBS, SCRATCH
from tests.infra.template import Template, listed, text

HERE = "Penstock.<AWS::Region>"
BUCKET = "arn:<AWS::Partition>:s3:::lent"
OBJECTS = f"{BUCKET}/jobs/{HERE}/*"
DENIES = ("iam:DeleteRolePolicy", "iam:PutRolePolicy")
LENDS = ("sts:AssumeRole", "sts:SetSourceIdentity", "sts:TagSession")


@pytest.fixture(scope="module")
def lending(stacks_with_settings: Mapping[str, Path]) -> Template:
    """The stack of `cdk deploy -c sts_roles=…`."""
    return Template.of_assembly(stacks_with_settings["lending"])


def leave(stack: Template, name: str) -> dict[str, tuple[set[str], dict[str, Any]]]:
    """What a function may do with roles and with buckets that are not the stack's: where, and on which condition."""
    found = {}
    for statement in stack.statements(stack.functions()[name]["Role"]):
        where = {text(each) for each in listed(statement["Resource"])}
        for action in listed(statement["Action"]):
            if action.startswith(("sts:", "iam:")) or any(each.startswith(BUCKET) for each in where):
                found[action] = (where, statement.get("Condition", {}))
    return found


def test_no_other_deployment_may_lend_anything(stack: Template) -> None:
    for name in stack.functions():
        assert leave(stack, name) == {}
    assert (Settings.of({}).sts_roles, Settings.of({}).s3_well) == ((), "")


def test_only_wells_lend_and_only_they_and_the_sweep_end_it(lending: Template) -> None:
    assert {name for name in lending.functions() if leave(lending, name)} == {"well", "sweep"}
    assert set(leave(lending, "well")) - set(leave(lending, "sweep")) == set(LENDS)
    assert set(leave(lending, "sweep")) <= set(leave(lending, "well"))


@pytest.mark.parametrize("name", ["well", "sweep"])
def test_roles_that_are_named_are_touched_and_no_others(lending: Template, name: str) -> None:
    for action, (where, on) in leave(lending, name).items():
        if not action.startswith("s3:"):
            assert where == {JOBS, SCRATCH}, action
            assert on == ({"StringEquals": {"iam:PermissionsBoundary": BOUNDARY}} if action in DENIES else {}), action


@pytest.mark.parametrize("name", ["well", "sweep"])
def test_of_the_bucket_only_what_is_below_the_deployments_own_prefix(lending: Template, name: str) -> None:
    found = {action: each for action, each in leave(lending, name).items() if action.startswith("s3:")}
    lists = {action for action in found if action.startswith("s3:List")}
    assert lists == {"s3:ListBucket", "s3:ListBucketVersions", "s3:ListBucketMultipartUploads"}
    assert {*found} - lists == {
        "s3:AbortMultipartUpload", "s3:DeleteObject", "s3:DeleteObjectVersion", "s3:GetObject", "s3:PutObject",
    }  # fmt: skip
    for action, (where, on) in found.items():
        assert where == ({BUCKET} if action in lists else {OBJECTS}), action
        prefix = on.get("StringLike", {}).get("s3:prefix")
        is_bound = action in ("s3:ListBucket", "s3:ListBucketVersions")
        assert (text(prefix) if prefix else None) == (f"jobs/{HERE}/*" if is_bound else None), action


def test_a_role_is_lent_only_within_a_boundary_and_a_bucket_only_with_a_role() -> None:
    with pytest.raises(ValueError, match="sts_boundary"):
        Settings.of({"sts_roles": JOBS})
    with pytest.raises(ValueError, match="sts_roles"):
        Settings.of({"s3_well": "lent"})
    assert Settings.of({"sts_roles": f"{JOBS},{SCRATCH},", "sts_boundary": BOUNDARY}).sts_roles == (JOBS, SCRATCH)
