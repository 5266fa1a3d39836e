"""What is uploaded runs with what Lambda brings and nothing more."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from infra.node import use_bundled
from infra.sizes import SIZES
from penstock.local.stack import SOURCES

LAMBDA_BRINGS = ("boto3", "botocore", "s3transfer", "urllib3", "dateutil", "six")


@pytest.fixture(scope="module")
def assets(assembly: Path) -> dict[str, Path]:
    """The uploaded folders: "code" and "layer"."""
    files = json.loads((assembly / "Penstock.assets.json").read_text())["files"].values()
    folders = [assembly / each["source"]["path"] for each in files if each["source"]["packaging"] == "zip"]
    return {"layer" if (folder / "python").is_dir() else "code": folder for folder in folders}


@pytest.mark.parametrize("name", SIZES)
def test_a_handler_imports_with_the_layer_alone(assets: dict[str, Path], tmp_path: Path, name: str) -> None:
    for package in LAMBDA_BRINGS:
        spec = find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        source = Path(spec.origin)
        target = tmp_path / (package if spec.submodule_search_locations else source.name)
        target.symlink_to(source.parent if spec.submodule_search_locations else source)
    folders = [str(assets["code"]), str(assets["layer"] / "python"), str(tmp_path)]
    script = f"import sys; sys.path[:0] = {folders!r}; sys.dont_write_bytecode = True; import {name}; {name}.handler"
    environment = {"POWERTOOLS_SERVICE_NAME": "penstock"}
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_layer_is_pure_python(assets: dict[str, Path]) -> None:
    assert not [path for path in assets["layer"].rglob("*") if path.suffix in (".so", ".pyd", ".dylib")]


def test_our_zip_has_the_agent_and_not_the_tools(assets: dict[str, Path]) -> None:
    package = assets["code"] / "penstock"
    assert (package / "agent").is_dir()
    assert not (package / "cli").exists()
    assert not (package / "local").exists()
    assert not (package / "testing").exists()
    assert not list(assets["code"].rglob("__pycache__"))


def test_every_library_is_pinned_and_says_why() -> None:
    lines = (SOURCES / "functions" / "requirements.txt").read_text().splitlines()
    libraries = [line for line in lines if line and not line.startswith("#")]
    assert libraries
    assert not [line for line in libraries if "==" not in line or "  # " not in line]


def test_functions_have_the_versions_that_developers_test_with() -> None:
    developers = (SOURCES / "requirements.txt").read_text().lower().replace("_", "-").splitlines()
    functions = (SOURCES / "functions" / "requirements.txt").read_text().lower().replace("_", "-").splitlines()
    pins = [line.split("#")[0].strip() for line in functions if "==" in line]
    assert not [pin for pin in pins if pin not in developers]


def test_the_pinned_node_serves_where_none_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JSII_NODE", raising=False)
    use_bundled()
    import os

    node = os.environ["JSII_NODE"]
    assert subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.startswith("v")
