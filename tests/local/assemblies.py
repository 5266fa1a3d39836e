"""Assemblies as a synthesis would write them, of a few resources."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from penstock.deploy.assembly import Assembly

BUCKET = "bootstrapped-000000000000-us-east-1"
"""Where their assets go."""


def assembled(folder: Path, stack: str, resources: dict[str, Any], **given: str) -> Assembly:
    """What a synthesis would write for a stack of these resources, with these options and an asset."""
    folder.mkdir(exist_ok=True)
    (folder / "asset").mkdir(exist_ok=True)
    (folder / "asset" / "file.txt").write_text("content")
    template = {
        "Metadata": {"Penstock": {"options": given}},
        "Parameters": {"PublicUrl": {"Type": "String", "Default": ""}},
        "Resources": resources,
        "Outputs": {"Url": {"Value": {"Ref": "PublicUrl"}}},
    }
    text = json.dumps(template)
    (folder / "template.json").write_text(text)
    place = {"bucketName": "bootstrapped-${AWS::AccountId}-${AWS::Region}"}
    files = {
        "a": {"source": {"path": "asset", "packaging": "zip"}, "destinations": {"x": {**place, "objectKey": "a.zip"}}},
        "t": {
            "source": {"path": "template.json", "packaging": "file"},
            "destinations": {"x": {**place, "objectKey": f"{abs(hash(text))}.json"}},
        },
    }
    (folder / f"{stack}.assets.json").write_text(json.dumps({"files": files}))
    properties = {
        "templateFile": "template.json",
        "cloudFormationExecutionRoleArn": "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/deployer",
    }
    artifact = {"type": "aws:cloudformation:stack", "properties": properties}
    (folder / "manifest.json").write_text(json.dumps({"artifacts": {stack: artifact}}))
    return Assembly.read(folder)
