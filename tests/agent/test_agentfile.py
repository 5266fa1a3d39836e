"""The one file that machines fetch."""

import hashlib
import io
import subprocess
import zipfile

from penstock import agentfile
from tests.agent.conftest import PYTHON


def test_every_build_is_the_same(agent):
    first = agentfile.build()
    agentfile.build.cache_clear()
    assert agentfile.build() == first
    assert agentfile.digest() == hashlib.sha256(agent.read_bytes()).hexdigest()


def test_it_contains_only_the_package(agent):
    assert agent.read_bytes().startswith(b"#!/usr/bin/env python3\n")
    names = zipfile.ZipFile(io.BytesIO(agentfile.build())).namelist()
    assert names == sorted(names)
    assert {"__main__.py", "agent/__main__.py", "agent/worker.py", "agent/bmat.py"} < set(names)
    assert not [name for name in names if not name.endswith(".py")]


def test_it_runs_with_the_standard_library_alone(agent):
    done = subprocess.run([PYTHON, "-I", "-S", agent, "run", "--help"], capture_output=True, text=True)
    assert "--config" in done.stdout, done.stderr


def test_it_runs_as_a_program(agent):
    agent.chmod(0o755)
    assert subprocess.run([agent, "bmat", "--help"], capture_output=True, text=True).stdout.startswith("usage: bmat ")


def test_bmat_starts_without_the_agent(agent):
    command = [PYTHON, "-I", "-X", "importtime", agent, "bmat", "--help"]
    done = subprocess.run(command, capture_output=True, text=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "agent.bmat" in imported
    assert not imported & {"agent.worker", "http.client", "subprocess", "ipaddress"}
