"""A stolen operator token: docs/operators/incident.md says what to type, and here it is typed. [SEC-2]"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from penstock.bootstrap_admin import make_operator
from penstock.cli.app import cli
from penstock.cli.commands import user as user_commands
from penstock.domain.users.users import token_id_in
from penstock.usecases import sweep
from tests.attacks.front import serving
from tests.functions.service import SCRIPT, SITE, Service, refused

PAGE = Path(__file__).parents[2] / "docs/operators/incident.md"
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)


class Thief:
    """Somebody with an operator's token, who makes sure to come back."""

    def __init__(self, service: Service, secret: str) -> None:
        self.service, self.stolen, self.secrets = service, secret, [secret]
        self.take("POST", "/v1/users", {"name": "mallory", "privileges": ["admin"]})
        self.take("PUT", "/v1/users/bob/privileges/admin")
        for name in ("root", "mallory", "bob"):
            self.secrets.append(self.take("POST", f"/v1/users/{name}/tokens", {})["token"])
        service.twin.pass_time(1)
        again = self.take("POST", "/v1/users/mallory/tokens", {}, by=self.secrets[2])
        self.secrets.append(again["token"])
        self.job = self.take("POST", "/v1/jobs", {"script": SCRIPT}, by=again["token"])["id"]
        service.twin.run()
        self.take("POST", "/v1/pools/target/linux/pause")
        self.take("PUT", "/v1/config", {"toml": SITE.replace('privilege = "target.lab"', "")})

    def take(self, method: str, path: str, body: Any = None, by: str = "") -> Any:
        answer = self.service.ask(method, path, body, token=by or self.stolen)
        assert answer.status < 300, answer
        return answer.json


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No configuration but this test's, and the site's file."""
    for name in ("PENSTOCK_URL", "PENSTOCK_TOKEN", "PENSTOCK_PROFILE", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "site.toml").write_text(SITE)
    return tmp_path


def minutes(service: Service) -> None:
    for _ in range(4):
        service.twin.pass_time(61)
        sweep.sweep(service.twin.on)
        service.twin.run()


def typed(block: str, id: str, monkeypatch: pytest.MonkeyPatch) -> list[Result]:
    """The results of the commands of a block."""
    found = []
    for line in block.strip().splitlines():
        words = [id if word == "ID" else word for word in shlex.split(line)]
        if words[0] == "export":
            monkeypatch.setenv(*words[1].split("=", 1))
            continue
        assert words[0] == "penstock", line
        found.append(CliRunner().invoke(cli, words[1:], catch_exceptions=False))
        assert found[-1].exit_code == 0, (line, found[-1].output)
    return found


def first_operator(service: Service, url: str) -> Callable[..., tuple[str, str]]:
    """What stands for the look at AWS: the service's URL, and an operator made beside it."""
    return lambda stack, region, name, expires: (url, make_operator(service.twin.on, name, expires))


def test_what_the_page_says_ends_the_incident(service: Service, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service.twin.world.time = datetime.now(UTC)  # the command line counts `--since` from its own clock
    stolen = service.ask("POST", "/v1/users/root/tokens", {}, as_="root").json["token"]
    service.twin.pass_time(1)
    thief, id = Thief(service, stolen), str(token_id_in(stolen))
    with serving(service) as url:
        monkeypatch.setattr(user_commands, "first_operator", first_operator(service, url))
        results = []
        for number, block in enumerate(BLOCKS):
            results += typed(block, id, monkeypatch)
            if number == 1:  # the thief is out now, with what was made from the token, also for others
                for secret in thief.secrets:
                    refused(service.ask("GET", "/v1/whoami", token=secret), 401, "token-revoked")
            minutes(service)
    output = "".join(result.output for result in results)
    assert not [secret for secret in thief.secrets if secret in output]
    for secret in thief.secrets:
        assert service.ask("GET", "/v1/whoami", token=secret).status == 401
    assert all(word in output for word in ("mallory", "make token", "create user", "apply config", "pause"))
    lines = [line for result in results for line in result.output.splitlines()]
    new = [line for line in lines if line.startswith("pst_operator_")][-1]
    ask = service.ask
    assert ask("GET", "/v1/whoami", token=new).json["token"]["scopes"] == ["operate", "read"]
    assert ask("GET", f"/v1/jobs/{thief.job}", token=new).json["outcome"] == "cancelled"
    assert not ask("GET", "/v1/pools/target/linux", token=new).json["paused"]
    assert ask("GET", "/v1/targets/lab", token=new).json["settings"]["privilege"] == "target.lab"
    users = {each["name"]: each["privileges"] for each in ask("GET", "/v1/users", token=new).json["items"]}
    assert "mallory" not in users
    assert users["bob"] == []
