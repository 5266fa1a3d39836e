"""The options of a deployment. The deployed template has them in its metadata: nobody has to remember them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock import sources
from penstock.deploy.account import Account
from penstock.deploy.assembly import DeployError

KEY = "Penstock"
"""Where infra/stack.py writes them in the template's metadata."""

STACK = "Penstock"
"""The name of a stack that nobody gave another."""


def remembered(account: Account, stack: str) -> Mapping[str, str] | None:
    """The options that a stack was last deployed with; None if there is no such stack, or it does not say."""
    formation = account.client("cloudformation")
    try:
        body: Any = formation.get_template(StackName=stack, TemplateStage="Original")["TemplateBody"]
    except formation.exceptions.ClientError as error:
        if error.response["Error"]["Code"] == "ValidationError":  # there is no such stack
            return None
        raise
    template = json.loads(body) if isinstance(body, str) else body
    found: Any = template.get("Metadata", {}).get(KEY)
    return None if found is None else {name: str(value) for name, value in found["options"].items()}


def merged(before: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The options from now on: an empty value goes back to the default. Raises DeployError if a file is not there."""
    found = {name: value for name, value in {**before, **given}.items() if value}
    if "drivers" in found:
        file = Path(found["drivers"]).absolute()
        if not file.is_file():
            raise DeployError(f"there is no file {file}; say with -c drivers=FILE which drivers this stack has")
        found["drivers"] = str(file)
    return found


def context(options: Mapping[str, str]) -> dict[str, Any]:
    """The CDK's context with these options: its flags are those that `cdk deploy` reads from cdk.json."""
    flags = json.loads((sources.ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    return {**flags, **options}
