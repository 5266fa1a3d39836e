"""The software bills of materials list what the requirements files pin, and nothing else."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from infra import sbom, version
from infra.pins import FILES, SOURCES
from penstock import agentfile

PIN = re.compile(r"^([\w.-]+)==([\w.]+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)

Pins = Mapping[tuple[str, str], Sequence[str]]
"""Hashes by name and version."""


@pytest.fixture(scope="module")
def bills(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Each bill's text, by name."""
    return written(tmp_path_factory.mktemp("sbom"), seed="1")


def written(folder: Path, seed: str) -> Mapping[str, str]:
    """The bills that a new process writes, which orders its sets by a seed."""
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-m", "infra.sbom", folder], cwd=SOURCES, env=environment, check=True)
    return {path.name.removesuffix(".cdx.json"): path.read_text() for path in folder.iterdir()}


def pinned(name: str) -> Pins:
    """What a requirements file pins, read without the code that writes bills. No line of it may be left over."""
    text = (SOURCES / name).read_text()
    found = {(each[1], each[2]): re.findall("[0-9a-f]{64}", each[3]) for each in PIN.finditer(text)}
    assert [line for line in PIN.sub("", text).splitlines() if line and not line.startswith("#")] == []
    return found


def listed(bill: str) -> Pins:
    """The libraries of a bill."""
    libraries = [each for each in json.loads(bill)["components"] if each["type"] == "library"]
    assert len({each["bom-ref"] for each in libraries}) == len(libraries)
    return {(each["name"], each["version"]): archives(each) for each in libraries}


def archives(library: Mapping[str, Any]) -> Sequence[str]:
    (found,) = library["externalReferences"]
    assert found["type"] == "distribution"
    assert {each["alg"] for each in found["hashes"]} == {"SHA-256"}
    return [each["content"] for each in found["hashes"]]


@pytest.mark.parametrize("name", sbom.BILLS)
def test_a_bill_has_every_pin_with_its_hashes_and_no_other(bills: Mapping[str, str], name: str) -> None:
    wanted = {pin: known for file in sbom.BILLS[name] for pin, known in pinned(file).items()}
    assert wanted
    assert {pin: sorted(known) for pin, known in listed(bills[name]).items()} == wanted


def test_every_requirements_file_is_in_a_bill(bills: Mapping[str, str]) -> None:
    assert {file for files in sbom.BILLS.values() for file in files} == set(FILES)
    assert set(bills) == {*sbom.BILLS, *sbom.CONSOLE_BILLS}


@pytest.mark.parametrize("name", sbom.CONSOLE_BILLS)
def test_the_consoles_bills_have_what_its_lockfile_has(bills: Mapping[str, str], name: str) -> None:
    """Read without the code that writes bills."""
    locked = json.loads((SOURCES / "web/package-lock.json").read_text())["packages"]
    wanted = {
        (place.rpartition("node_modules/")[2], each["version"]): (each["integrity"], each["license"])
        for place, each in locked.items()
        if place and not (sbom.CONSOLE_BILLS[name] and each.get("dev"))
    }
    bill = json.loads(bills[name])
    found = {}
    for each in bill["components"]:
        (archive,) = each["externalReferences"]
        (digest,) = archive["hashes"]
        (licence,) = each["licenses"]
        integrity = f"sha512-{base64.b64encode(bytes.fromhex(digest['content'])).decode()}"
        key = ("/".join(filter(None, [each.get("group"), each["name"]])), each["version"])
        found[key] = (integrity, licence["expression"])
    assert found == wanted
    assert bill["metadata"]["component"]["version"] == version.current()
    assert len(bill["components"]) == len(found)
    assert {each["purl"].partition("/")[0] for each in bill["components"]} == {"pkg:npm"}


@pytest.mark.parametrize("name", sbom.BILLS)
def test_a_bill_is_of_penstock_and_has_the_agent(bills: Mapping[str, str], name: str) -> None:
    bill = json.loads(bills[name])
    root = bill["metadata"]["component"]
    assert (root["name"], root["version"]) == ("penstock", version.current())
    (agent,) = [each for each in bill["components"] if each["type"] != "library"]
    assert agent["hashes"] == [{"alg": "SHA-256", "content": agentfile.digest()}]
    assert (agent["name"], agent["version"]) == ("agent.pyz", agentfile.version())
    (needs,) = [each["dependsOn"] for each in bill["dependencies"] if each["ref"] == root["bom-ref"]]
    assert sorted(needs) == sorted(each["bom-ref"] for each in bill["components"])


def test_the_same_sources_give_the_same_bytes(bills: Mapping[str, str], tmp_path: Path) -> None:
    assert written(tmp_path, seed="2") == bills


def test_each_bill_has_a_serial_number_of_its_own(bills: Mapping[str, str]) -> None:
    assert len({json.loads(each)["serialNumber"] for each in bills.values()}) == len(bills)


def test_package_urls_have_the_registrys_names() -> None:
    bill = json.loads(sbom.bill([f"Some_Thing.x==1.0 \\\n    --hash=sha256:{'0' * 64}\n"]))
    (library,) = [each for each in bill["components"] if each["type"] == "library"]
    assert (library["name"], library["purl"]) == ("Some_Thing.x", "pkg:pypi/some-thing.x@1.0")


@pytest.mark.parametrize("name", [*sbom.BILLS, *sbom.CONSOLE_BILLS])
def test_bills_are_valid(bills: Mapping[str, str], name: str) -> None:
    schema = JsonStrictValidator(SchemaVersion.V1_6)
    assert schema.validate_str(bills[name]) is None
    assert schema.validate_str(re.sub('"SHA-[0-9]+"', '"SHA-0"', bills[name])) is not None
