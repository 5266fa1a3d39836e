"""The one file that machines fetch."""

import hashlib
import io
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from penstock import agentfile
from penstock.agent import packed
from tests.agent.conftest import PYTHON


def test_every_build_is_the_same(agent):
    first = agentfile.build()
    agentfile.build.cache_clear()
    assert agentfile.build() == first
    assert agentfile.digest() == hashlib.sha256(agent.read_bytes()).hexdigest()


def test_it_says_a_version_that_no_other_sources_have(agent, monkeypatch, tmp_path):
    """The service tells by it whether a worker runs the agent whose digest it knows."""
    assert re.fullmatch("[0-9a-f]{8}", agentfile.version())
    said = zipfile.ZipFile(io.BytesIO(agentfile.build())).read("agent/__init__.py").decode()
    assert f'VERSION = "{agentfile.version()}"' in said
    changed = tmp_path / "agent"
    shutil.copytree(agentfile.PACKAGE, changed, ignore=shutil.ignore_patterns("__pycache__"))  # others write there
    with (changed / "worker.py").open("a") as source:
        source.write("# changed\n")
    first = agentfile.version()
    monkeypatch.setattr(agentfile, "PACKAGE", changed)
    agentfile.version.cache_clear()
    try:
        assert agentfile.version() != first
    finally:
        agentfile.version.cache_clear()


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


START = """
import runpy, sys
sys.addaudithook(lambda event, given: event == "compile" and print(given[1], file=sys.stderr))
sys.argv = [{path!r}, "run", "--config", "/nonexistent"]
runpy.run_path({path!r}, run_name="__main__")
"""


def compiled_at_start(path: Path, python: str = sys.executable) -> list[str]:
    """The agent's modules that are compiled when it starts, to fail for want of its config."""
    done = subprocess.run([python, "-I", "-c", START.format(path=str(path))], capture_output=True, text=True)
    assert "No such file" in done.stderr
    return [line for line in done.stderr.splitlines() if line.endswith(".py") and "agent" in line and " " not in line]


def test_a_local_worker_starts_without_compiling_its_agent(agent, tmp_path):
    path = tmp_path / "agent.pyz"
    path.write_bytes(agentfile.build_compiled())
    assert compiled_at_start(path) == []
    assert len(compiled_at_start(agent)) > 15


def test_a_compiled_file_runs_as_any_other(agent, tmp_path):
    path = tmp_path / "agent.pyz"
    path.write_bytes(packed.compile_file(agent.read_bytes()))
    path.chmod(0o755)
    assert subprocess.run([path, "bmat", "--help"], capture_output=True, text=True).stdout.startswith("usage: bmat ")
    assert packed.compile_file(path.read_bytes()) == path.read_bytes()


def test_a_compiled_file_says_nothing_of_the_moment_it_was_made(agent):
    compiled = zipfile.ZipFile(io.BytesIO(packed.compile_file(agent.read_bytes())))
    assert {entry.date_time for entry in compiled.infolist()} == {agentfile.LONG_AGO}
    assert {entry.external_attr for entry in compiled.infolist()} == {0o100644 << 16}


def test_a_file_that_another_python_compiled_runs_from_its_sources(agent, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.MAGIC_NUMBER", b"\0\0\r\n")
    path = tmp_path / "agent.pyz"
    path.write_bytes(packed.compile_file(agent.read_bytes()))
    assert len(compiled_at_start(path)) > 15
