"""What a job's file publishes is read by anybody, under its name, until it is withdrawn, end to end."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.e2e.conftest import Local

pytestmark = pytest.mark.xdist_group("jobs")

SCRIPT = """#!/bin/bash
#: name = "nightly"
#: variety = "basic"
#: output_rules = ["=/work/image.txt"]
#: [[publish]]
#: from_output = "/work/image.txt"
#: series = "e2e"
#: name = "image.txt"
#: [[publish]]
#: from_output = "/work/nothing"
#: series = "e2e"
#: name = "nothing.txt"
echo "the image" > "$PENSTOCK_WORK/image.txt"
"""


def _ask(way: str, url: str) -> httpx.Response:
    """A request of nobody in particular."""
    return httpx.request(way, url, follow_redirects=True, trust_env=False, timeout=30)


def test_a_published_file_is_read_by_anybody_until_it_is_withdrawn(local: Local, tmp_path: Path) -> None:
    job = local.submit(SCRIPT, "-e", "GITHUB_SHA=c0ffee")
    settled = local.settled(job)
    assert settled["outcome"] == "succeeded", local.log(job)
    assert "BUT NOT PUBLISHED: the job kept no /work/nothing" in settled["reason"]
    (shown,) = local.json("published", "list", "--series", "e2e", "--version", "c0ffee")
    name = f"{shown['owner']}/e2e/c0ffee/image.txt"
    url = f"{local.running.url}{shown['url']}"
    looked = _ask("HEAD", url)
    assert (looked.status_code, looked.headers["etag"]) == (200, f'"{shown["sha256"]}"')
    read = _ask("GET", url)
    assert (read.status_code, read.content) == (200, b"the image\n")
    assert 'filename="image.txt"' in read.headers["content-disposition"]
    assert local.cli("published", "access", "e2e", "--private").returncode == 0
    assert (_ask("GET", url).status_code, _ask("HEAD", url).status_code) == (404, 404)
    got = local.cli("published", "get", name, str(tmp_path))
    assert (got.returncode, (tmp_path / "image.txt").read_bytes()) == (0, b"the image\n"), got.stderr
    assert local.cli("published", "unpublish", name).returncode == 0
    assert local.json("published", "list", "--series", "e2e") == []
    assert "was withdrawn by" in local.cli("published", "get", name, str(tmp_path / "again")).stderr
    local.put_back()
