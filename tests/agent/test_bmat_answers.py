"""The agent answers invalid requests on its socket, too, and installs commands that buildomat's scripts expect."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys

import pytest

from penstock.agent import tasks
from penstock.agent.tasks import SHIMS, install_shims, write_command

ASK = """
import re, socket, sys
path = re.search("PENSTOCK_SOCKET=(\\\\S+)", open(sys.argv[1]).read())[1]
with socket.socket(socket.AF_UNIX) as agent:
    agent.connect(path)
    agent.sendall(sys.stdin.buffer.read() + b"\\n")
    print(agent.makefile().read(), flush=True)
"""
ODD = {"do": "post", "when": "always", "name": "odd", "command": ["env"], "cwd": "/", "env": {"NUMBER": 7}}
PUT = {"do": "put", "name": "x", "secret": True}


def asking(*lines: str) -> str:
    """A script that asks all of this."""
    here = f"{shlex.quote(sys.executable)} -c {shlex.quote(ASK)} $(command -v bmat)"
    return "\n".join(f"printf %s {shlex.quote(line)} | {here}" for line in lines)


@pytest.mark.parametrize(
    "line", ["[" * 50_000, *(json.dumps({**PUT, "value": value}) for value in (7, None, ["a"], {"a": "b"}))]
)
def test_invalid_requests_are_answered(worker, line):
    job = worker(script=asking(line))
    assert job.finish()["result"] == "succeeded"
    assert json.loads(job.plane.lines("stdout")[0]) == {"error": "the agent does not understand this request of bmat"}


def test_values_of_an_environment_become_text(worker):
    job = worker(script=asking(json.dumps(ODD)))
    assert job.finish()["result"] == "succeeded"
    assert "NUMBER=7" in job.plane.lines("stdout")


def test_scripts_have_banner_ptime_and_pfexec(worker):
    script = "banner hub ris; ptime -m sh -c 'echo in; exit 3'; echo $?; pfexec echo leave $(pfexec id -u)"
    if os.geteuid():
        pytest.skip("only root needs no sudo for pfexec")
    job = worker(script=script)
    assert job.finish()["result"] == "succeeded", job.plane.lines()
    hub, ris = ["", "#########", "## hub ##", "#########", ""], ["", "#########", "## ris ##", "#########", ""]
    assert job.plane.lines("stdout") == [*hub, *ris, "in", "3", "leave 0"]
    assert [line.split("\t")[0] for line in job.plane.lines("stderr") if line] == ["real", "user", "sys"]


def test_commands_of_the_machine_come_first(tmp_path, monkeypatch):
    own, folder = tmp_path / "own", tmp_path / "bin"
    for each in (own, folder):
        each.mkdir()
    write_command(str(own / "banner"), "#!/bin/sh\n")
    monkeypatch.setattr(tasks, "BASE_PATH", f"{own}:{folder}")
    install_shims(str(folder))
    install_shims(str(folder))  # and again on a worker that goes on to its next job
    assert sorted(each.name for each in folder.iterdir()) == ["pfexec", "ptime"]


@pytest.mark.parametrize("name", sorted(SHIMS))
def test_each_command_is_valid_for_its_shell(name, tmp_path):
    install_shims(str(tmp_path))
    path = shutil.which(name, path=str(tmp_path)) or pytest.skip(f"this machine has {name} itself")
    shell = SHIMS[name].splitlines()[0].removeprefix("#!")
    assert subprocess.run([shell, "-n", path], capture_output=True, text=True).stderr == ""
