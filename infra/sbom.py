"""Writes the software bills of materials: `make sbom`, into build/sbom, as CycloneDX 1.6 in JSON.

Each lists the libraries of some requirements files, with the hashes of the archives that pip accepts, and the agent.
Those of the console list the packages of its lockfile, with the hashes that npm accepts, and their licences.
The same sources give the same bytes: there is no timestamp, and the serial number is derived from the content.
"""

from __future__ import annotations

import sys
import tomllib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from infra import version
from infra.pins import SOURCES, hashes
from penstock import agentfile
from penstock.console import packages

BILLS: Mapping[str, Sequence[str]] = {
    "layer": ("functions/requirements.txt",),
    "layer-libcloud": ("functions/requirements.txt", "functions/requirements-libcloud.txt"),
    "setup": ("requirements.txt",),
    "docs": ("docs/tools/requirements.txt",),
    "browser": ("tests/web/requirements.txt",),
}
"""The requirements files of each bill: the functions' layer, the same with `-c libcloud=true`, what `make setup`
installs, what `make docs` builds with, and what drives a browser in tests.
"""

CONSOLE_BILLS: Mapping[str, bool] = {"console": True, "console-build": False}
"""Whether each lists only the packages of which a part is shipped: what browsers run; or all with which it is built."""

REGISTRY = "https://pypi.org/simple"
NPM_REGISTRY = "https://registry.npmjs.org"


def main(folder: Path) -> None:
    """Write all bills into a folder, and print their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {name: bill([(SOURCES / each).read_text(encoding="utf-8") for each in BILLS[name]]) for name in BILLS}
    texts |= {name: console_bill(SOURCES / "web", only_shipped=only) for name, only in CONSOLE_BILLS.items()}
    for name, text in texts.items():
        path = folder / f"{name}.cdx.json"
        path.write_text(text, encoding="utf-8")
        print(path)


def bill(requirements: Sequence[str]) -> str:
    """The bill of the libraries in the text of these requirements files, which must have different libraries."""
    pinned = [(pin, known) for text in requirements for pin, known in hashes(text).items()]
    return _bill([_agent(), *(_library(pin, known) for pin, known in pinned)])


def console_bill(web: Path, *, only_shipped: bool) -> str:
    """The bill of the packages that the lockfile in a folder names."""
    locked = {package for _, package in packages.locked(web) if package.is_shipped or not only_shipped}
    return _bill([_package(each) for each in sorted(locked)])


def _bill(components: Iterable[Component]) -> str:
    bom = Bom(serial_number=uuid.UUID(int=0))
    bom.metadata.timestamp = None  # type: ignore[assignment]  # so does cyclonedx-py --output-reproducible
    bom.metadata.component = root = _penstock()
    bom.components.update(components)
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


def _package(package: packages.Package) -> Component:
    """A package of npm, whose archive has this hash."""
    group, _, name = package.name.rpartition("/")
    purl = PackageURL("npm", namespace=group or None, name=name, version=package.version)
    hashed = [HashType(alg=HashAlgorithm.SHA_512, content=package.sha512)]
    archive = ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION, url=XsUri(f"{NPM_REGISTRY}/{package.name}"), hashes=hashed
    )
    return Component(
        type=ComponentType.LIBRARY,
        bom_ref=purl.to_string(),
        group=group or None,
        name=name,
        version=package.version,
        purl=purl,
        licenses=[LicenseExpression(package.licence)] if package.licence else [],
        external_references=[archive],
    )


def _sha256(digests: Sequence[str]) -> list[HashType]:
    return [HashType(alg=HashAlgorithm.SHA_256, content=each) for each in digests]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
