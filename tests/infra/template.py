"""Reading a CloudFormation template in the words of infra/grants.py."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from infra.grants import NOT_WRITTEN, WRITTEN
from infra.queues import NAMES
from penstock import agentfile


@dataclass(frozen=True)
class Template:
    """A synthesised stack."""

    content: dict[str, Any]

    @staticmethod
    def read(path: Path) -> Template:
        return Template(json.loads(path.read_text()))

    @staticmethod
    def of_assembly(folder: Path) -> Template:
        """The template of the only stack of a cloud assembly."""
        (path,) = folder.glob("*.template.json")
        return Template.read(path)

    def of(self, kind: str) -> dict[str, dict[str, Any]]:
        """Resources of a type, as in "SQS::Queue", by logical id."""
        resources = self.content["Resources"].items()
        return {name: each for name, each in resources if each["Type"] == f"AWS::{kind}"}

    def one(self, kind: str) -> tuple[str, dict[str, Any]]:
        """The logical id and properties of the only resource of a type."""
        ((name, each),) = self.of(kind).items()
        return name, each["Properties"]

    def functions(self) -> dict[str, dict[str, Any]]:
        """Functions' properties by the name that their file has. That of the console's files is none of ours."""
        named = self.of("Lambda::Function").items()
        found = [each["Properties"] for name, each in named if not name.startswith("Console")]
        return {each["Handler"].removesuffix(".handler"): each for each in found}

    def named(self, kind: str, start: str) -> tuple[str, dict[str, Any]]:
        """The logical id and properties of the only resource of a type whose id begins so."""
        ((name, each),) = [found for found in self.of(kind).items() if found[0].startswith(start)]
        return name, each["Properties"]

    def queue(self, name: str) -> tuple[str, dict[str, Any]]:
        """The logical id and properties of a queue that is not a dead-letter queue."""
        prefix = f"Queues{name.title()}"
        ((found, each),) = [
            (key, each)
            for key, each in self.of("SQS::Queue").items()
            if key.startswith(prefix) and not key.startswith(f"{prefix}Dead")
        ]
        return found, each["Properties"]

    def statements(self, role: Any) -> Iterator[dict[str, Any]]:
        """What the role that a function refers to may do."""
        logical = role["Fn::GetAtt"][0]
        for policy in self.of("IAM::Policy").values():
            if {"Ref": logical} in policy["Properties"]["Roles"]:
                yield from policy["Properties"]["PolicyDocument"]["Statement"]


def aliases(stack: Template) -> dict[str, str]:
    """The function of each alias that leads to a version of it."""
    names = {name: each["Properties"]["Handler"] for name, each in stack.of("Lambda::Function").items()}
    versions = {name: each["Properties"]["FunctionName"]["Ref"] for name, each in stack.of("Lambda::Version").items()}
    return {
        name: names[versions[each["Properties"]["FunctionVersion"]["Fn::GetAtt"][0]]].removesuffix(".handler")
        for name, each in stack.of("Lambda::Alias").items()
    }


def mentions(value: Any, name: str) -> bool:
    """Whether a value of a template refers to a resource."""
    if isinstance(value, dict):
        return value == {"Ref": name} or any(mentions(each, name) for each in value.values())
    if isinstance(value, list):
        return any(mentions(each, name) for each in value)
    return isinstance(value, str) and value == name


def listed(value: Any) -> list[Any]:
    """CloudFormation writes a list of one as its only element."""
    return value if isinstance(value, list) else [value]


def text(value: Any) -> str:
    """A value with its references as <Name> or <Name.Attribute>."""
    if isinstance(value, str):
        return value
    if "Ref" in value:
        return f"<{value['Ref']}>"
    if "Fn::GetAtt" in value:
        return f"<{'.'.join(value['Fn::GetAtt'])}>"
    if "Fn::Sub" in value:
        return str(value["Fn::Sub"])
    return "".join(text(part) for part in value["Fn::Join"][1])


KEYS_OF_ROWS = "dynamodb:LeadingKeys"


def rows_named(statement: Any) -> str:
    """What grants.py calls the rows of a statement that is for some keys of the table, or all but some; else ""."""
    tests = {"ForAllValues:StringNotLike": NOT_WRITTEN, "ForAllValues:StringLike": WRITTEN}
    for test, named in tests.items():
        keys = statement.get("Condition", {}).get(test, {}).get(KEYS_OF_ROWS)
        for name, of in named.items():
            if list(of) == keys:
                return name
    return ""


def may_write(statements: Iterable[Any], key: str, *beside: str) -> bool:
    """Whether a policy lets a row be put, as AWS evaluates its conditions on keys.

    `beside` are the keys of a transaction's other rows, where a condition sees those as well.
    """
    puts = (each for each in statements if "dynamodb:PutItem" in listed(each["Action"]))
    return any(_are_met(each.get("Condition", {}), [key, *beside]) for each in puts)


def _are_met(conditions: Mapping[str, Any], keys: Sequence[str]) -> bool:
    """Source: IAM User Guide, "Set operators for multivalued context keys", and "Evaluation logic for conditions":
    several values of a negated test are met if none of them is.
    """
    for operator, wanted in conditions.items():
        assert set(wanted) == {KEYS_OF_ROWS}, "this knows no other condition"
        if operator == "Null":
            assert wanted == {KEYS_OF_ROWS: "false"}
            continue
        every, test = operator.split(":")
        negated = {"StringLike": False, "StringNotLike": True}[test]
        passed = [any(fnmatchcase(key, each) for each in listed(wanted[KEYS_OF_ROWS])) != negated for key in keys]
        if not {"ForAllValues": all, "ForAnyValue": any}[every](passed):
            return False
    return True


ASSETS = "cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}"
"""The bucket to which the CDK uploads what a stack needs."""

MACHINE = "arn:<AWS::Partition>:states:<AWS::Region>:<AWS::AccountId>:{}:Penstock-attempt"


def resources(stack: Template) -> dict[str, str]:
    """What grants.py calls each resource, by its ARN in the template."""
    table, bucket = stack.one("DynamoDB::GlobalTable")[0], stack.named("S3::Bucket", "Storage")[0]
    settle = next(name for name in stack.of("Lambda::Function") if "Settle" in name)
    metadata = next(name for name in stack.of("KMS::Key") if "Metadata" in name)
    identity = next(name for name in stack.of("KMS::Key") if "Identity" in name)
    provenance = next(name for name in stack.of("KMS::Key") if "Provenance" in name)
    return {
        f"<{table}.Arn>": "table",
        f"<{table}.Arn>/index/due": "due index",
        f"<{table}.Arn>/index/listing": "listing index",
        f"<{bucket}.Arn>": "bucket",
        f"<{bucket}.Arn>/artifacts/*": "objects",
        f"<{bucket}.Arn>/bells/*": "bells",
        f"arn:<AWS::Partition>:s3:::{ASSETS}/{agentfile.digest()}.pyz": "agent file",
        f"<{stack.named('SecretsManager::Secret', 'Storage')[0]}>": "signing secret",
        **{f"<{name}>": "front secret" for name in stack.of("SecretsManager::Secret") if name.startswith("Console")},
        f"<{metadata}.Arn>": "metadata key",
        f"<{identity}.Arn>": "identity key",
        f"<{provenance}.Arn>": "provenance key",
        MACHINE.format("stateMachine"): "flow",
        MACHINE.format("execution") + ":*": "executions",
        f"<{settle}.Arn>": "settle function",
        **{f"<{stack.queue(name)[0]}.Arn>": f"{name} queue" for name in NAMES},
        **{
            f"<{stack.named('SQS::Queue', f'Queues{name.title()}Dead')[0]}.Arn>": f"{name} dead letters"
            for name in NAMES
        },
        "arn:<AWS::Partition>:cloudwatch:<AWS::Region>:<AWS::AccountId>:alarm:*": "alarms",
    }
