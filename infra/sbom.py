"""Writes the software bills of materials: `make sbom`, into build/sbom, as CycloneDX 1.6 in JSON.

Each lists the libraries of some requirements files, with the hashes of the archives that pip accepts, and the agent.
The same sources give the same bytes: there is no timestamp, and the serial number is derived from the content.
"""

from __future__ import annotations

import sys
import tomllib
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from infra import version
from infra.pins import SOURCES, hashes
from penstock import agentfile

BILLS: Mapping[str, Sequence[str]] = {
    "layer": ("functions/requirements.txt",),
    "layer-libcloud": ("functions/requirements.txt", "functions/requirements-libcloud.txt"),
    "setup": ("requirements.txt",),
    "docs": ("docs/tools/requirements.txt",),
}
"""The requirements files of each bill: the functions' layer, the same with `-c libcloud=true`, what `make setup`
installs, and what `make docs` builds with.
"""

REGISTRY = "https://pypi.org/simple"


def main(folder: Path) -> None:
    """Write all bills into a folder, and print their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, files in BILLS.items():
        path = folder / f"{name}.cdx.json"
        path.write_text(bill([(SOURCES / each).read_text(encoding="utf-8") for each in files]), encoding="utf-8")
        print(path)


def bill(requirements: Sequence[str]) -> str:
    """The bill of the libraries in the text of these requirements files, which must have different libraries."""
    bom = Bom(serial_number=uuid.UUID(int=0))
    bom.metadata.timestamp = None  # type: ignore[assignment]  # so does cyclonedx-py --output-reproducible
    bom.metadata.component = root = _penstock()
    pinned = [(pin, known) for text in requirements for pin, known in hashes(text).items()]
    bom.components.update([_agent(), *(_library(pin, known) for pin, known in pinned)])
    bom.register_dependency(root, bom.components)
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_URL, _written(bom))
    return _written(bom)


def _written(bom: Bom) -> str:
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def _penstock() -> Component:
    project = tomllib.loads((SOURCES / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return Component(
        type=ComponentType.APPLICATION,
        bom_ref=project["name"],
        name=project["name"],
        version=version.current(),
        description=project["description"],
    )


def _agent() -> Component:
    """The file that workers run. Its version is what its workers' rows show."""
    return Component(
        type=ComponentType.FILE,
        bom_ref="agent.pyz",
        name="agent.pyz",
        version=agentfile.version(),
        hashes=_sha256([agentfile.digest()]),
    )


def _library(pin: str, known: Sequence[str]) -> Component:
    """A library. The hashes are those of its archives, of which pip installs one, so they are no hashes of itself."""
    name, _, version = pin.partition("==")
    purl = PackageURL("pypi", name=name, version=version)
    archives = ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION, url=XsUri(f"{REGISTRY}/{purl.name}/"), hashes=_sha256(known)
    )
    return Component(
        type=ComponentType.LIBRARY,
        bom_ref=purl.to_string(),
        name=name,
        version=version,
        purl=purl,
        external_references=[archives],
    )


def _sha256(digests: Sequence[str]) -> list[HashType]:
    return [HashType(alg=HashAlgorithm.SHA_256, content=each) for each in digests]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
