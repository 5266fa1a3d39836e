"""The agent's file is uploaded with a deployment, and one function may hand it out."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from penstock import agentfile
from tests.infra.template import ASSETS, Template, listed, text


@pytest.fixture(scope="module")
def asset(assembly: Path) -> Mapping[str, Any]:
    """What the assembly says of the agent's file."""
    files = json.loads((assembly / "Penstock.assets.json").read_text())["files"].values()
    (found,) = [each for each in files if each["source"]["path"].endswith(".pyz")]
    return dict(found)


def test_what_is_uploaded_is_named_by_its_digest(assembly: Path, asset: Mapping[str, Any]) -> None:
    content = (assembly / asset["source"]["path"]).read_bytes()
    assert asset["source"]["packaging"] == "file"
    (place,) = asset["destinations"].values()
    assert (place["bucketName"], place["objectKey"]) == (ASSETS, f"{hashlib.sha256(content).hexdigest()}.pyz")


def test_it_is_the_file_that_machines_expect(assembly: Path, asset: Mapping[str, Any]) -> None:
    """Their user data compares the digest, and tests of factories the version."""
    content = (assembly / asset["source"]["path"]).read_bytes()
    assert content == agentfile.build()
    said = zipfile.ZipFile(io.BytesIO(content)).read("agent/__init__.py").decode()
    assert f'VERSION = "{agentfile.version()}"' in said


def test_only_the_function_that_hands_it_out_knows_where_it_is(stack: Template, asset: Mapping[str, Any]) -> None:
    told = {name: each["Environment"]["Variables"] for name, each in stack.functions().items()}
    assert {name for name, each in told.items() if {"AGENT_BUCKET", "AGENT_FILE"} & set(each)} == {"agent_api"}
    (place,) = asset["destinations"].values()
    assert text(told["agent_api"]["AGENT_BUCKET"]) == place["bucketName"]
    assert told["agent_api"]["AGENT_FILE"] == place["objectKey"]


def test_only_that_function_may_read_it_and_nothing_else_beside_it(stack: Template) -> None:
    """SEC-2: whoever took the function over could else read the code and the template of every stack here."""
    may = {
        (name, action, text(resource))
        for name, function in stack.functions().items()
        for statement in stack.statements(function["Role"])
        for resource in listed(statement["Resource"])
        for action in listed(statement["Action"])
        if "cdk-" in text(resource) or text(resource) == "*"
    }
    assert may == {("agent_api", "s3:GetObject", f"arn:<AWS::Partition>:s3:::{ASSETS}/{agentfile.digest()}.pyz")}
