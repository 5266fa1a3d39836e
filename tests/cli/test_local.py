"""penstock local, when nothing is up. That it comes up is tested with the local cloud itself."""

import json
from pathlib import Path

import pytest

from penstock.cli.config import Profile, load, path, save_profile
from tests.cli.conftest import plain


@pytest.fixture(autouse=True)
def state(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place where no local cloud is."""
    monkeypatch.setenv("PENSTOCK_STATE", str(home / "state"))
    return home / "state"


def test_status() -> None:
    assert plain("local", "status").stdout == "not running\n"
    assert json.loads(plain("local", "status", "--json").stdout) == {"running": False}


def test_down_forgets_the_profile(home: Path) -> None:
    file = path({"HOME": str(home)})
    save_profile(file, "local", Profile("http://127.0.0.1:9", "t"))
    assert plain("local", "down").exit_code == 0
    assert load(file).profiles == {}


def test_reset_needs_one() -> None:
    result = plain("local", "reset")
    assert (result.exit_code, "penstock local up" in result.stderr) == (4, True)


def test_up_needs_its_configuration() -> None:
    result = plain("local", "up", "--config", "missing.toml")
    assert (result.exit_code, "missing.toml" in result.stderr) == (2, True)
