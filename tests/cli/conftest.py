"""A service on a socket, a home of its own for the configuration, and a way to run the command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.cli import client, follow
from penstock.cli.app import cli
from tests.cli.service import TOKEN, Service, serve

Run = Callable[..., Result]

GOOD = """#!/bin/bash
#: name = "hello"
#: variety = "basic"
#: target = "default"
echo hello
"""
BAD = """#!/bin/bash
#: name = "hello"
#: variety = "basic"
#: tarket = "default"
#: timeout = "soon"
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No configuration, no variables, and an empty working directory."""
    for name in ("PENSTOCK_URL", "PENSTOCK_TOKEN", "PENSTOCK_PROFILE", "NO_COLOR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return tmp_path


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorter pauses; the same decisions."""
    monkeypatch.setattr(follow, "FAST", 0.01)
    monkeypatch.setattr(follow, "SLOW", 0.05)
    monkeypatch.setattr(client, "FIRST_PAUSE", 0.02)


@pytest.fixture
def service() -> Iterator[Service]:
    """A service that answers."""
    found = Service()
    server = serve(found)
    yield found
    server.shutdown()
    server.server_close()


@pytest.fixture
def penstock(service: Service, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command against the service."""
    monkeypatch.setenv("PENSTOCK_URL", service.url)
    monkeypatch.setenv("PENSTOCK_TOKEN", TOKEN)
    return plain


def plain(*words: str, input: str | None = None) -> Result:
    """Runs the command as it is configured."""
    return CliRunner().invoke(cli, list(words), input=input, catch_exceptions=False)


@pytest.fixture
def good(home: Path) -> str:
    """A job file."""
    Path("hello.sh").write_text(GOOD)
    return "hello.sh"


@pytest.fixture
def bad(home: Path) -> str:
    """A job file with two problems."""
    Path("bad.sh").write_text(BAD)
    return "bad.sh"
