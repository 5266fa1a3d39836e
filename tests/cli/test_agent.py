"""penstock agent: which agent it becomes, with which options and which token."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from penstock import agentfile
from tests.cli.conftest import Run, plain
from tests.cli.service import TOKEN, Service

Became = list[tuple[Sequence[str], Mapping[str, str]]]


@pytest.fixture
def became(monkeypatch: pytest.MonkeyPatch) -> Became:
    """What the command became instead of itself."""
    found: Became = []
    monkeypatch.setattr(os, "execve", lambda path, words, environment: found.append((words, environment)))
    return found


def test_agent_runs_the_packaged_agent(penstock: Run, service: Service, became: Became, home: Path) -> None:
    assert penstock("agent", "--host", "bench-7").exit_code == 0
    ((words, environment),) = became
    state = home / ".local" / "state" / "penstock" / "bench-7"
    assert words[:3] == [sys.executable, str(state / "agent.pyz"), "host"]
    assert words[3:] == ["--url", service.url, "--host", "bench-7", "--state", str(state)]
    assert (state / "agent.pyz").read_bytes() == agentfile.build()
    assert environment["PENSTOCK_TOKEN"] == TOKEN
    assert TOKEN not in " ".join(words)


def test_options_are_passed_on(penstock: Run, became: Became, tmp_path: Path) -> None:
    given = ["--root", "/", "--user", "jobs", "--state", str(tmp_path / "s"), "--token-file", "bench-7.token"]
    given += ["--containers", "podman"]
    assert penstock("agent", "--host", "bench-7", *given).exit_code == 0
    ((words, environment),) = became
    assert words[-8:] == [
        "--root", "/", "--user", "jobs", "--containers", "podman", "--token-file", "bench-7.token",
    ]  # fmt: skip
    assert environment.get("PENSTOCK_TOKEN") is None
    assert (tmp_path / "s" / "agent.pyz").exists()


def test_a_state_folder_that_cannot_be_written_is_refused(penstock: Run, became: Became, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = penstock("agent", "--host", "bench-7", "--state", str(tmp_path / "file" / "s"))
    assert (done.exit_code, "can't write" in done.stderr, became) == (2, True, [])


def test_it_needs_a_service_and_a_name(became: Became) -> None:
    assert plain("agent").exit_code == 2
    done = plain("agent", "--host", "bench-7")
    assert (done.exit_code, "no service is configured" in done.stderr, became) == (2, True, [])
