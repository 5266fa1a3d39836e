"""Commands that scripts written for buildomat expect: a machine's own come first, ours are there where it has none."""

import os
import shutil
import subprocess

import pytest

from penstock.agent import bmat_server
from penstock.agent.bmat_server import SHIMS, install_shims, write_command


def test_a_script_has_headings_times_and_leave(worker):
    script = "banner hub ris; ptime -m sh -c 'echo in; exit 3'; echo $?; pfexec echo leave $(pfexec id -u)"
    if os.geteuid():
        pytest.skip("only root needs no sudo for pfexec")
    job = worker(script=script)
    assert job.finish()["result"] == "succeeded", job.plane.lines()
    hub, ris = ["", "#########", "## hub ##", "#########", ""], ["", "#########", "## ris ##", "#########", ""]
    assert job.plane.lines("stdout") == [*hub, *ris, "in", "3", "leave 0"]
    assert [line.split("\t")[0] for line in job.plane.lines("stderr") if line] == ["real", "user", "sys"]


def test_what_the_machine_has_is_left_alone(tmp_path, monkeypatch):
    own, folder = tmp_path / "own", tmp_path / "bin"
    for each in (own, folder):
        each.mkdir()
    write_command(str(own / "banner"), "#!/bin/sh\n")
    monkeypatch.setattr(bmat_server, "BASE_PATH", f"{own}:{folder}")
    install_shims(str(folder))
    install_shims(str(folder))  # and again on a worker that goes on to its next job
    assert sorted(each.name for each in folder.iterdir()) == ["pfexec", "ptime"]


@pytest.mark.parametrize("name", sorted(SHIMS))
def test_each_is_a_script_without_faults(name, tmp_path):
    install_shims(str(tmp_path))
    path = shutil.which(name, path=str(tmp_path)) or pytest.skip(f"this machine has {name} itself")
    shell = SHIMS[name].splitlines()[0].removeprefix("#!")
    assert subprocess.run([shell, "-n", path], capture_output=True, text=True).stderr == ""
