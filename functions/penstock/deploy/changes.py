"""A change set of CloudFormation: what would happen to which resource, before it happens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

from botocore.exceptions import WaiterError

from penstock.deploy.account import Account
from penstock.deploy.assembly import Assembly, DeployError

NAME = "penstock-{}"
"""Of another name each time. What an interrupted deployment left is deleted when the next one is executed. Source: the
API reference of ExecuteChangeSet.
"""

NO_PARAMETERS: Mapping[str, str] = {}

CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]
NO_CHANGES = ("didn't contain changes", "No updates are to be performed")
"""How CloudFormation says that everything is so already. Source: the API reference of CreateChangeSet."""

PATIENCE_SECONDS = 3600
"""Snapshots of functions take minutes, and a table with indexes too."""


@dataclass(frozen=True)
class Change:
    """What happens to one resource. `action` is Add, Modify or Remove; `replaces` is True, False or Conditional."""

    action: str
    kind: str
    name: str
    replaces: str = "False"
    what: Sequence[str] = ()

    @property
    def is_loss(self) -> bool:
        """Whether what is there is deleted, or may be."""
        return self.action == "Remove" or self.replaces != "False"

    @property
    def is_metadata(self) -> bool:
        """Whether nothing but a note about the resource changes."""
        return self.action == "Modify" and not self.is_loss and set(self.what) == {"Metadata"}


class ChangeSet:
    """The changes that would make a stack what an assembly says. It must be executed or dropped."""

    def __init__(
        self,
        account: Account,
        assembly: Assembly,
        template: str,
        parameters: Mapping[str, str] = NO_PARAMETERS,
        look_each: int = 5,
    ) -> None:
        """Ask CloudFormation what it would do. Raises DeployError if it refuses, or the stack cannot change now.

        `look_each`: seconds between two looks whether it is done.
        """
        self._formation, self._stack, self._look_each = account.client("cloudformation"), assembly.stack, look_each
        stack = _described(self._formation, assembly.stack)
        self.is_new = stack is None or stack["StackStatus"] == "REVIEW_IN_PROGRESS"
        if stack and not self.is_new:
            _check(assembly.stack, stack["StackStatus"])
        self.id = self._formation.create_change_set(
            StackName=assembly.stack,
            ChangeSetName=NAME.format(token_hex(8)),
            ChangeSetType="CREATE" if self.is_new else "UPDATE",
            TemplateURL=template,
            RoleARN=account.named(assembly.properties["cloudFormationExecutionRoleArn"]),
            Capabilities=CAPABILITIES,
            Parameters=_parameters(assembly, stack or {}, parameters),
        )["Id"]
        self.changes = self._wait()

    def execute(self) -> Mapping[str, str]:
        """Make the changes, and return the stack's outputs. Raises DeployError with CloudFormation's reasons."""
        before = {each["EventId"] for each in self._events()}
        self._formation.execute_change_set(ChangeSetName=self.id, StackName=self._stack)
        kind = "stack_create_complete" if self.is_new else "stack_update_complete"
        try:
            patience = {"Delay": self._look_each, "MaxAttempts": PATIENCE_SECONDS // self._look_each}
            self._formation.get_waiter(kind).wait(StackName=self._stack, WaiterConfig=patience)
        except WaiterError as error:
            raise DeployError(self._reasons(before) or f"the stack {self._stack}: {error}") from error
        return self.outputs()

    def outputs(self) -> Mapping[str, str]:
        """The stack's outputs by name."""
        return outputs(self._formation, self._stack)

    def drop(self) -> None:
        """Leave everything as it is."""
        self._formation.delete_change_set(ChangeSetName=self.id, StackName=self._stack)
        if self.is_new:
            self._formation.delete_stack(StackName=self._stack)  # an empty one, made to have the change set

    def _wait(self) -> list[Change]:
        try:
            waiter = self._formation.get_waiter("change_set_create_complete")
            waiter.wait(ChangeSetName=self.id, StackName=self._stack, WaiterConfig={"Delay": 1, "MaxAttempts": 600})
        except WaiterError as error:
            said = self._formation.describe_change_set(ChangeSetName=self.id, StackName=self._stack)
            reason = said.get("StatusReason", str(error))
            if any(each in reason for each in NO_CHANGES):
                return []
            self.drop()
            raise DeployError(f"CloudFormation refuses the stack {self._stack}: {reason}") from error
        return list(self._described_changes())

    def _described_changes(self) -> Iterator[Change]:
        page: dict[str, Any] = {}
        while True:
            said = self._formation.describe_change_set(ChangeSetName=self.id, StackName=self._stack, **page)
            yield from (_change(each["ResourceChange"]) for each in said["Changes"])
            if not said.get("NextToken"):
                return
            page = {"NextToken": said["NextToken"]}

    def _events(self) -> list[Any]:
        pages = self._formation.get_paginator("describe_stack_events").paginate(StackName=self._stack)
        return [event for page in pages for event in page["StackEvents"]]

    def _reasons(self, before: set[str]) -> str:
        """Why this deployment failed: the events since it began, the first first."""
        failed = [
            f"{each['LogicalResourceId']} ({each['ResourceType']}): {each['ResourceStatusReason']}"
            for each in reversed(self._events())
            if each["EventId"] not in before and each["ResourceStatus"].endswith("FAILED")
            if "cancelled" not in each.get("ResourceStatusReason", "cancelled")
        ]
        return f"the stack {self._stack} could not be deployed: " + ", ".join(failed) if failed else ""


def _change(said: Mapping[str, Any]) -> Change:
    """A change as CloudFormation describes it, with each property, or other part, that changes."""
    targets = [each.get("Target", {}) for each in said.get("Details", [])]
    what = {each.get("Name") or each.get("Attribute", "") for each in targets} or set(said.get("Scope", []))
    return Change(
        action=said["Action"],
        kind=said["ResourceType"],
        name=said["LogicalResourceId"],
        replaces=said.get("Replacement", "False"),
        what=tuple(sorted(each for each in what if each)),
    )


def _described(formation: Any, stack: str) -> Mapping[str, Any] | None:
    try:
        (found,) = formation.describe_stacks(StackName=stack)["Stacks"]
    except formation.exceptions.ClientError as error:
        if error.response["Error"]["Code"] == "ValidationError":  # there is none of this name
            return None
        raise
    return found  # type: ignore[no-any-return]


def _check(stack: str, status: str) -> None:
    """Raises DeployError for a stack that cannot be changed now."""
    if status.endswith("IN_PROGRESS"):
        raise DeployError(f"the stack {stack} is being changed ({status}); wait until that ended, and try again")
    if status == "ROLLBACK_COMPLETE":
        raise DeployError(
            f"the stack {stack} failed when it was first made, and cannot be changed; delete it with "
            f"`aws cloudformation delete-stack --stack-name {stack}`, and try again"
        )


def _parameters(assembly: Assembly, stack: Mapping[str, Any], given: Mapping[str, str]) -> list[dict[str, Any]]:
    """Parameters that are not given keep the values that somebody gave to them."""
    has = {each["ParameterKey"] for each in stack.get("Parameters", [])} - given.keys()
    kept = [{"ParameterKey": each, "UsePreviousValue": True} for each in assembly.parameters if each in has]
    return [*kept, *({"ParameterKey": name, "ParameterValue": value} for name, value in given.items())]


def outputs(formation: Any, stack: str) -> Mapping[str, str]:
    """A stack's outputs by name; none if there is no such stack."""
    found = _described(formation, stack) or {}
    return {each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", [])}
