"""Some of what the record of mutation says is tried again."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.mutate.kinds import KINDS
from tests.mutate.scope import ROOT

SAMPLE = 8


@pytest.mark.e2e
@pytest.mark.parametrize("kind", KINDS)
def test_some_mutants_are_still_noticed(kind: str) -> None:
    """In a process of its own, which collects the recorded tests alone."""
    paths = {"PYTHONPATH": f"{ROOT / 'functions'}:{ROOT}"}
    command = [sys.executable, "-m", "tests.mutate", "--of", kind, "--sample", str(SAMPLE)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | paths, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{SAMPLE} of {SAMPLE}" in done.stdout
