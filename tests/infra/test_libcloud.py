"""Other clouds are a choice of the deployment: the library, and leave to read their credentials. [SEC-2]"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from infra.pins import pins
from infra.settings import Settings
from penstock.sources import ROOT as SOURCES
from tests.infra.template import Template, listed, text

READS = ("secretsmanager:GetSecretValue", "ssm:GetParameter")
MOST = 19_000_000
"""Bytes that the layer may gain: docs/operators/libcloud.md says how many it does."""


@pytest.fixture(scope="module")
def out(stacks_with_settings: Mapping[str, Path]) -> Path:
    """What `cdk deploy -c libcloud=true` would deploy."""
    return stacks_with_settings["libcloud"]


def layer(assembly: Path) -> Path:
    files = json.loads((assembly / "Penstock.assets.json").read_text())["files"].values()
    (found,) = (
        assembly / each["source"]["path"] / "python"
        for each in files
        if (assembly / each["source"]["path"] / "python").is_dir()
    )
    return found


def reads(stack: Template, name: str) -> set[str]:
    """The secrets of other clouds that a function may read."""
    return {
        text(resource)
        for statement in stack.statements(stack.functions()[name]["Role"])
        if set(listed(statement["Action"])) & set(READS)
        for resource in listed(statement["Resource"])
        if "penstock/" in text(resource)
    }


def weight(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_without_it_there_is_neither(stack: Template, assembly: Path) -> None:
    assert Settings.of({}).libcloud is False
    assert not (layer(assembly) / "libcloud").exists()
    assert not any(reads(stack, name) for name in stack.functions())


def test_with_it_the_library_is_there_and_no_more_than_is_used(out: Path, assembly: Path) -> None:
    found = layer(out)
    assert (found / "libcloud" / "compute").is_dir()
    assert not (found / "libcloud" / "test").exists()
    assert not list(found.rglob("*.so"))
    assert 0 < weight(found) - weight(layer(assembly)) < MOST


def test_it_works_with_the_layer_and_what_lambda_brings(out: Path, tmp_path: Path) -> None:
    import urllib3

    (tmp_path / "urllib3").symlink_to(Path(urllib3.__file__).parent)
    folders = [str(layer(out)), str(SOURCES / "functions"), str(tmp_path)]
    script = f"""import sys; sys.path[:0] = {folders!r}; sys.dont_write_bytecode = True
from libcloud.compute.providers import get_driver
from penstock.drivers.factories.libcloud import factory
print(*[get_driver(each).__name__ for each in ("openstack", "azure_arm", "gce", "digitalocean")])"""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == 4


def test_only_who_makes_and_who_sweeps_may_read_and_only_below_our_name(out: Path) -> None:
    made = Template.read(out / "Penstock.template.json")
    assert {name for name in made.functions() if reads(made, name)} == {"factory", "sweep"}
    for name in ("factory", "sweep"):
        ends = {each.rpartition(":")[2] for each in reads(made, name)}
        assert ends == {"penstock/*", "parameter/penstock/*"}


def test_functions_have_the_versions_that_developers_test_with() -> None:
    developers = set(pins((SOURCES / "requirements.txt").read_text()))
    functions = set(pins((SOURCES / "functions" / "requirements-libcloud.txt").read_text()))
    assert functions
    assert functions <= developers
