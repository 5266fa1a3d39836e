"""penstock audit, and what `user revoke` says."""

from __future__ import annotations

import json
from urllib.parse import parse_qsl

import pytest

from tests.cli.conftest import Run
from tests.cli.service import AUDIT, STARTED, Service


def test_audit_list(penstock: Run, service: Service) -> None:
    head, row, _ = penstock("audit", "list").stdout.splitlines()
    assert head.split() == ["TIME", "WHO", "DID", "WHAT", "DETAIL"]
    assert row.split() == [STARTED, "root", "hold", "worker", "w1", "for", "60", "s:", "a", "look"]
    assert json.loads(penstock("audit", "list", "--json").stdout) == AUDIT
    assert "there are more" in penstock("audit", "list", "--limit", "1").stderr
    penstock("audit", "list", "--who", "ann", "--since", "2h")
    asked = service.paths("GET")[-1]
    assert asked.startswith("/v1/audit?who=ann&since=20")
    assert asked.endswith("&limit=50")
    wanted = {
        "since": "2026-01-31T10:00:00Z",
        "until": "2026-02-01T10:00:00Z",
        "did": "apply config",
        "what": "pool a/",
    }
    penstock("audit", "list", *(word for name, value in wanted.items() for word in (f"--{name}", value)))
    assert dict(parse_qsl(service.paths("GET")[-1].partition("?")[2])) == {
        **wanted, "since": "2026-01-31T10:00:00.000+00:00", "until": "2026-02-01T10:00:00.000+00:00", "limit": "50",
    }  # fmt: skip
    assert "invalid value for '--until'" in penstock("audit", "list", "--until", "soon").stderr


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ([], "2 jobs hold something under it, and keep it until they end: j8, j9; --now cancels them"),
        (["--now"], "2 jobs held something under it and are being cancelled: j8, j9"),
    ],
)
def test_revoke_lists_the_affected_jobs(penstock: Run, service: Service, option: list[str], said: str) -> None:
    done = penstock("user", "revoke", "eve", "resource.bench", *option)
    assert done.stdout == "eve no longer has resource.bench\n"
    assert "1 job waited under it and will fail: j7" in done.stderr
    assert said in done.stderr
    assert service.paths("DELETE")[-1].endswith("?now=true") is bool(option)
    assert json.loads(penstock("user", "revoke", "eve", "x", "--json", *option).stdout)["holding"] == ["j8", "j9"]
