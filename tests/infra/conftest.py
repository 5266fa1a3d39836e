"""The synthesised stack, without settings and with some. End-to-end tests deploy what app.py writes as a program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
def made_stacks(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """The cloud assemblies that the tests of this run look at, by the name that they have in stacks.py."""
    return stacks.synthesised(tmp_path_factory.mktemp("stacks"), looked_at(request.session.items))


@pytest.fixture(scope="session")
def stacks_with_own_layer(made_stacks: Mapping[str, Path]) -> Mapping[str, Path]:
    """Those whose layer has other libraries, or none that is compiled."""
    return {name: made_stacks[name] for name in stacks.OWN_LAYER}


def looked_at(tests: Iterable[pytest.Item]) -> list[str]:
    """The stacks that some tests look at. End-to-end tests look at the plain one, and at those with an own layer."""
    names = {"plain"}
    for each in tests:
        fixtures = getattr(each, "fixturenames", ())
        if "stacks_with_own_layer" in fixtures:
            names |= {*stacks.OWN_LAYER}
        elif "made_stacks" in fixtures and not each.get_closest_marker("e2e"):
            names |= stacks.SETTINGS.keys() - {*stacks.OWN_LAYER}
    return [name for name in stacks.SETTINGS if name in names]
