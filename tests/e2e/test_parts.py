"""A big file goes in and comes out in parts, end to end. [ART-1]"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from penstock.domain.artifacts.volumes import PART_BYTES
from tests.e2e.conftest import Local

pytestmark = pytest.mark.xdist_group("jobs")

SIZE = PART_BYTES + 5_000_000
SCRIPT = """#!/bin/bash
#: name = "big"
#: variety = "basic"
#: output_rules = ["=/work/big"]
cat "$PENSTOCK_INPUT/big" > "$PENSTOCK_WORK/big"
"""


def test_a_file_of_two_parts_comes_out_as_it_went_in(local: Local, tmp_path: Path) -> None:
    data = hashlib.shake_256(b"big").digest(SIZE)
    (tmp_path / "big").write_bytes(data)
    (tmp_path / "job.sh").write_text(SCRIPT)
    done = local.cli("job", "run", "--verbose", str(tmp_path / "job.sh"), "-i", str(tmp_path / "big"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "in 2 parts" in done.stdout + done.stderr
    job = local.json("job", "list")[0]["id"]
    copied = local.cli("job", "copy", job, "/work/big", str(tmp_path / "copy"))
    assert copied.returncode == 0, copied.stderr
    assert (tmp_path / "copy").read_bytes() == data
    local.put_back()
