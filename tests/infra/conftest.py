"""The synthesised stack, without settings and with some. End-to-end tests deploy what app.py writes as a program."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.infra import stacks
from tests.infra.template import Template


def pytest_itemcollected(item: pytest.Item) -> None:
    """Tests that look at a stack are in one xdist group: stacks are made once. Other settings are for `make e2e`."""
    fixtures = getattr(item, "fixturenames", ())
    if "made_stacks" in fixtures:
        item.add_marker(pytest.mark.xdist_group("infra"))
    if "stacks_with_settings" in fixtures:
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
def stacks_with_settings(made_stacks: Mapping[str, Path]) -> Mapping[str, Path]:
    """The cloud assemblies with settings, by the name that they have in stacks.py."""
    return made_stacks


@pytest.fixture(scope="session")
def made_stacks(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Those that the tests of this run look at: all that there are, or only the one without settings."""
    looked_at = {fixture for item in request.session.items for fixture in getattr(item, "fixturenames", ())}
    names = list(stacks.SETTINGS) if "stacks_with_settings" in looked_at else ["plain"]
    return stacks.synthesised(tmp_path_factory.mktemp("stacks"), names)
