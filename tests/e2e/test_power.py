"""Hosts that the controller examples/http_hosts.py switches on for a job and off afterwards, end to end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.drivers.factories import process
from tests.e2e.conftest import SITE, Local
from tests.wells.service import SECRET, Program

pytestmark = pytest.mark.xdist_group("e2e")

EXAMPLE = Path(__file__).parents[2] / "examples" / "http_hosts.py"
DARK = """
[factories.dark]
driver = "hosts"
url = "{url}"
secret = "file:{folder}/dark.secret"
power = {{ idle = "1m" }}
[targets.dark]
factory = "dark"
names = ["dark-1", "dark-2"]
"""


@pytest.fixture
def dark(local: Local, tmp_path: Path) -> Iterator[Path]:
    """Two hosts that are off, and their controller: the folder of its hosts."""
    program = Program(tmp_path, EXAMPLE, "HOSTS_SECRET", str(tmp_path / "hosts"), local.running.url)
    (tmp_path / "dark.secret").write_text(SECRET)
    site = tmp_path / "site.toml"
    site.write_text(SITE.read_text() + DARK.format(url=program.url, folder=tmp_path))
    for name in ("dark-1", "dark-2"):
        assert local.cli("user", "create", name, "--privilege", f"host.{name}").returncode == 0
        (tmp_path / "hosts" / name).mkdir(parents=True)
        made = local.json("token", "create", "--user", name, "--scope", f"host:target/dark/{name}")
        (tmp_path / "hosts" / name / "token").write_text(made["token"])
    try:
        with local.having(site):
            yield tmp_path / "hosts"
    finally:
        program.end()
        assert all(process.kill_all("LAB_HOST", name) for name in ("dark-1", "dark-2"))


def is_on(name: str) -> bool:
    return bool(process.tagged("LAB_HOST", name))


def power(local: Local, name: str) -> str:
    shown: dict[str, Any] = local.call("GET", "/v1/pools/target/dark").json()
    # A slot that moves while the page is read may be on none of its lists.
    return next((str(slot["host"]["power"]) for slot in shown["slots"] if slot["slot"] == name), "")


def told(local: Local, consoles: Path) -> list[str]:
    """What is known of both hosts, for whoever looks for why a test failed."""
    return [f"{name}: {power(local, name)}\n{console(consoles / name)}" for name in ("dark-1", "dark-2")]


def console(host: Path) -> str:
    path = host / "console"
    return path.read_text()[-3000:] if path.exists() else ""


def test_a_host_is_switched_on_for_a_job_and_off_when_it_is_idle(local: Local, dark: Path) -> None:
    """JOB-2, UNIT-2: one of two; and the controller cleans it in between."""
    job = local.submit("echo lit\n", "-t", "dark")
    local.until(
        lambda: "dark-1, which was never heard of (" in local.json("job", "why", job)["summary"] or is_on("dark-1"),
        lambda: told(local, dark),
    )
    assert local.settled(job)["outcome"] == "succeeded"
    assert [line["payload"] for line in local.log(job) if line["stream"] == "stdout"] == ["lit"]
    assert not is_on("dark-2")
    with local.sweeping():
        local.until(lambda: "switched off since" in power(local, "dark-1"), lambda: told(local, dark))
        assert not is_on("dark-1")
        assert "switched off since" in local.cli("pool", "show", "target/dark").stdout
        again = local.submit("echo again\n", "-t", "dark")
        assert local.settled(again)["outcome"] == "succeeded"
        assert "switched off" not in power(local, "dark-1")
    assert not is_on("dark-2")
