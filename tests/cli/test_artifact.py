"""penstock artifact: what is kept, why, and what would go."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.artifacts import ARTIFACT, BYTES, GOING, UNKNOWN, WHY
from tests.cli.conftest import Run
from tests.cli.service import Service


def test_artifact_list_shows_owners_and_expiry(penstock: Run, service: Service) -> None:
    head, first, second = penstock("artifact", "list").stdout.splitlines()
    assert head.split() == ["ID", "PATH", "SIZE", "STATE", "MADE", "UNTIL", "OWNERS"]
    assert (first.split()[-1], ARTIFACT["until"] in first) == ("job#j1", True)
    assert "not known yet" in second
    assert second.endswith("nobody")
    assert json.loads(penstock("artifact", "list", "--by", "ann", "--json").stdout) == [ARTIFACT, UNKNOWN]
    assert service.paths("GET")[-1].startswith("/v1/artifacts?by=ann")


def test_artifact_why_shows_summary_and_owners(penstock: Run) -> None:
    shown = penstock("artifact", "why", "a1")
    assert shown.stdout.splitlines()[0] == "/work/trace.bin: it goes when job#j1 lets it go"
    assert "job j1 owns it, and failed" in shown.stdout
    assert "artifact pin a1" in shown.stderr
    assert "OWNER" not in penstock("artifact", "why", "a2").stdout
    assert json.loads(penstock("artifact", "why", "a1", "--json").stdout) == WHY


def test_pin_sends_reason_and_time(penstock: Run, service: Service) -> None:
    assert (
        f"is kept until {ARTIFACT['until']}" in penstock("artifact", "pin", "a1", "--reason", "r", "--for", "2h").stdout
    )
    assert service.asked[-1][3] == {"reason": "r", "for": 7200}
    assert "until you unpin it" in penstock("artifact", "pin", "a2", "--reason", "r").stdout
    assert service.asked[-1][3] == {"reason": "r"}
    assert penstock("artifact", "pin", "a1").exit_code == 2


def test_unpin(penstock: Run, service: Service) -> None:
    assert "no longer pinned by you" in penstock("artifact", "unpin", "a1").stdout
    assert "no longer pinned by ann" in penstock("artifact", "unpin", "a1", "--by", "ann").stdout
    assert service.paths("DELETE") == ["/v1/artifacts/a1/pin", "/v1/artifacts/a1/pin?by=ann"]


def test_an_artifact_is_downloaded(penstock: Run, tmp_path: Path) -> None:
    told = json.loads(penstock("artifact", "copy", "a1", str(tmp_path / "it"), "--json").stdout)
    assert (tmp_path / "it").read_bytes() == BYTES
    assert told == {**ARTIFACT, "file": str(tmp_path / "it")}
    assert penstock("artifact", "copy", "a9").exit_code == 2


def test_a_damaged_published_file_is_not_kept(penstock: Run, service: Service, tmp_path: Path) -> None:
    service.content = b"x" * len(BYTES)
    assert penstock("artifact", "copy", "a1", str(tmp_path / "it")).exit_code == 4
    assert not [path for path in tmp_path.iterdir() if "it" in path.name]


def test_a_url_is_printed(penstock: Run, service: Service) -> None:
    assert penstock("artifact", "sign", "a1", "--expires-in", "15m").stdout.endswith("/bytes?secret=1\n")
    assert service.asked[-1][3] == {"expires_in": 900}


def test_a_dry_run_lists_what_would_be_deleted(penstock: Run) -> None:
    assert "nothing would go" in penstock("artifact", "sweep", "--dry-run").stderr
    shown = penstock("artifact", "sweep", "--dry-run", "--within", "7d")
    assert "nobody owns it" in shown.stdout
    assert "1 artifacts, 2.0 KiB" in shown.stderr
    assert "more than one answer holds" in penstock("artifact", "sweep", "--dry-run", "--within", "1h").stderr
    found = json.loads(penstock("artifact", "sweep", "--dry-run", "--within", "7d", "--json").stdout)
    assert found == {"items": [GOING], "is_whole": True}


def test_sweep_requires_dry_run(penstock: Run) -> None:
    assert penstock("artifact", "sweep").exit_code == 2


def test_outputs_past_retention_are_reported(penstock: Run, service: Service) -> None:
    shown = penstock("job", "outputs", service.add("gone"))
    assert "its outputs are gone since 2026-01-01T10:02:30Z" in shown.stderr
