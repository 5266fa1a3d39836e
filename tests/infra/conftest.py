"""The synthesised stack, without settings and with some. End-to-end tests deploy what app.py writes as a program."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.infra import stacks
from tests.infra.template import Template


def pytest_itemcollected(item: pytest.Item) -> None:
    """Tests that look at a stack are in one xdist group: stacks are made once. A layer of its own is for `make e2e`."""
    fixtures = getattr(item, "fixturenames", ())
    if "made_stacks" in fixtures or "stacks_with_own_layer" in fixtures:
        item.add_marker(pytest.mark.xdist_group("infra"))
    if "stacks_with_own_layer" in fixtures:
        item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def assembly(made_stacks: Mapping[str, Path]) -> Path:
    """The cloud assembly without settings."""
    return made_stacks["plain"]


@pytest.fixture(scope="session")
def stack(assembly: Path) -> Template:
    """Its template."""
    return Template.read(assembly / "Penstock.template.json")


@pytest.fixture(scope="session")
def made_stacks(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """The cloud assemblies, by the name that they have in stacks.py."""
    return stacks.synthesised(
        tmp_path_factory.mktemp("stacks"), [name for name in stacks.SETTINGS if name not in stacks.OWN_LAYER]
    )


@pytest.fixture(scope="session")
def stacks_with_own_layer(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Those whose layer has other libraries, or none that is compiled."""
    return stacks.synthesised(tmp_path_factory.mktemp("layers"), stacks.OWN_LAYER)
