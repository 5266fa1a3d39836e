"""The commands for users and tokens, against the real handlers: what they print, and how they end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.cli.app import cli
from tests.attacks.front import serving
from tests.functions.service import Service, token_of

Run = Callable[..., Result]


@pytest.fixture
def penstock(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs a command as an operator, or with the token that is given."""
    for name in ("PENSTOCK_PROFILE", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with serving(service) as url:
        monkeypatch.setenv("PENSTOCK_URL", url)

        def run(*words: str, token: str = "") -> Result:
            monkeypatch.setenv("PENSTOCK_TOKEN", token or token_of("root"))
            service.twin.pass_time(1)
            return CliRunner().invoke(cli, list(words), catch_exceptions=False)

        yield run


def test_a_token_is_made_shown_and_revoked(penstock: Run) -> None:
    made = penstock("token", "create", "--user", "ada", "--scope", "read", "--name", "ci", "--expires", "1h")
    secret = made.stdout.strip()
    assert secret.startswith("pst_user_")
    assert "this is shown once; it works until 2026-01-01T01:" in made.stderr
    shown = penstock("whoami", token=secret).stdout
    assert all(word in shown for word in ("ada", "token scopes", "read", "token expires"))
    header, first, second = penstock("token", "list", token=secret).stdout.splitlines()
    assert header.split() == ["ID", "NAME", "KIND", "SCOPES", "STATE", "CREATED", "USED", "EXPIRES", "PARENT"]
    assert second.split()[1:5] == ["ci", "user", "read", "good"]
    assert first.split()[2:5] == ["user", "all", "good"]
    refused = penstock("pool", "pause", "target/linux", token=secret)
    assert (refused.exit_code, "this needs a token with the scope 'operate'" in refused.stderr) == (2, True)
    assert penstock("token", "revoke", secret).exit_code == 0
    late = penstock("whoami", token=secret)
    assert (late.exit_code, "this token was revoked at" in late.stderr) == (2, True)


def test_a_token_without_end_is_asked_for_by_its_word(penstock: Run) -> None:
    made = penstock("token", "create", "--expires", "never")
    assert "works until it is revoked" in made.stderr
    assert json.loads(penstock("token", "create", "--expires", "never", "--json").stdout)["expires"] is None
    assert penstock("token", "create", "--expires", "ever").exit_code == 2


def test_a_user_is_disabled_enabled_renamed_and_removed(penstock: Run, service: Service) -> None:
    job = service.submit()
    service.twin.run()
    disabled = penstock("user", "disable", "ada")
    assert disabled.stdout == "ada is disabled\n"
    assert f"1 job still run or end: {job}" in disabled.stderr
    assert "looks again for jobs" in disabled.stderr
    assert "disabled" in penstock("user", "list").stdout
    assert penstock("whoami", token=token_of("ada")).exit_code == 2
    assert penstock("user", "enable", "ada").stdout == "ada is enabled\n"
    assert penstock("user", "rename", "ada", "adele").stdout == "ada is called adele\n"
    assert json.loads(penstock("whoami", "--json", token=token_of("ada")).stdout)["former"] == ["ada"]
    early = penstock("user", "remove", "adele")
    assert (early.exit_code, "`penstock user disable adele` comes first" in early.stderr) == (2, True)
    assert json.loads(penstock("user", "disable", "adele", "--leases", "end", "--json").stdout)["state"] == "disabled"
