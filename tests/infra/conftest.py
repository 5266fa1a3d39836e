"""The synthesised stack, as the local cloud and `cdk deploy` get it."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.local import synth
from tests.infra.template import Template


@pytest.fixture(scope="session")
def assembly() -> Path:
    """The cloud assembly of the sources as they are."""
    return synth.assembly(lambda line: None)


@pytest.fixture(scope="session")
def stack(assembly: Path) -> Template:
    """Its template."""
    return Template.read(assembly / "Penstock.template.json")
