"""The synthesised stack, as the local cloud and `cdk deploy` get it, and what becomes of it with settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from penstock.local import stack as synthesis
from tests.infra import stacks
from tests.infra.template import Template


def pytest_itemcollected(item: pytest.Item) -> None:
    """Tests that look at a stack are in one xdist group: stacks are made once."""
    if {"assembly", "made_stacks"} & set(getattr(item, "fixturenames", ())):
        item.add_marker(pytest.mark.xdist_group("infra"))


@pytest.fixture(scope="session")
def assembly() -> Path:
    """The cloud assembly of the sources as they are."""
    return synthesis.assembly(lambda line: None)


@pytest.fixture(scope="session")
def stack(assembly: Path) -> Template:
    """Its template."""
    return Template.read(assembly / "Penstock.template.json")


@pytest.fixture(scope="session")
def made_stacks(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """The cloud assemblies with settings, by the name that they have in stacks.py."""
    folder = tmp_path_factory.mktemp("stacks")
    stacks.synthesised(folder)
    return {name: folder / name for name in stacks.SETTINGS}
