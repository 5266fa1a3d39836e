"""penstock cache: what jobs left for later jobs."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.artifacts import CACHE
from tests.cli.conftest import Run
from tests.cli.service import Service


def test_cache_list_shows_the_total_size(penstock: Run, service: Service) -> None:
    shown = penstock("cache", "list", "--owner", "oxide:hubris")
    head, row = shown.stdout.splitlines()
    assert head.split() == ["ID", "NAME", "KEY", "SCOPE", "TARGET", "SIZE", "USED", "UNTIL"]
    assert row.split()[:5] == ["c1", "deps", "k", "1", "trunk"]
    assert "together 2.0 KiB of 10.0 GiB" in shown.stderr
    assert all("owner=oxide" in path for path in service.paths("GET"))
    assert json.loads(penstock("cache", "list", "--json").stdout) == [CACHE]


def test_a_cache_entry_is_shown_and_deleted(penstock: Run, service: Service) -> None:
    assert "oxide:hubris" in penstock("cache", "show", "c1").stdout
    assert json.loads(penstock("cache", "show", "c1", "--json").stdout) == CACHE
    assert "the entry of deps with the key 'k 1' is deleted" in penstock("cache", "delete", "c1").stdout
    assert service.paths("DELETE") == ["/v1/caches/c1"]


def test_cache_scope_is_sent(penstock: Run, service: Service, tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text("#!/bin/sh\n")
    done = penstock("job", "run", str(tmp_path / "a.sh"), "--cache-scope", "pr-1", "-W")
    assert done.exit_code == 0
    body = next(each[3] for each in service.asked if each[1].endswith("/jobs"))
    assert body["cache_scope"] == "pr-1"
    assert "pr-1" in penstock("job", "show", done.stdout.strip()).stdout
