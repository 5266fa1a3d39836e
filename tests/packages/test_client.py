"""`pip install penstock` is a client of few libraries. What needs more says so, with the command that installs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.packages import closure

CLIENT = {"click", "cryptography", "httpx", "jmespath", "pathspec", "platformdirs", "rich", "tomlkit"}
MOST = 20
"""Packages that a client has in all: with whatever its own libraries need."""

IMPORT_ALL = """
import importlib, pkgutil, penstock.cli
for module in pkgutil.walk_packages(penstock.cli.__path__, "penstock.cli."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print("all")
"""
RUN = "from penstock.cli import main; main()"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the client's own libraries and no other."""
    folder = closure.link(closure.brought(), tmp_path_factory.mktemp("client") / "packages")
    closure.describe(folder)
    return folder


def python(client: Path, script: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a script that finds Penstock and what is in the folder, and nothing else that is installed."""
    path = [str(closure.ROOT / "functions"), str(client)]
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {path!r}\n{script}", *words]
    home = {"HOME": str(client.parent), "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, env=home, capture_output=True, text=True, check=False)


def test_the_client_asks_for_few_libraries() -> None:
    assert {each.name for each in closure.declared()} == CLIENT
    assert len(closure.brought()) <= MOST


def test_nothing_else_is_found(client: Path) -> None:
    assert "boto3" in python(client, "import boto3").stderr


def test_every_module_of_the_command_line_can_be_imported(client: Path) -> None:
    done = python(client, IMPORT_ALL)
    assert (done.stdout, done.stderr) == ("all\n", "")


@pytest.mark.parametrize(
    ("words", "extra", "missing"),
    [
        (("local", "up"), "local", "ministack"),
        (("user", "bootstrap"), "aws", "boto3"),
        (("deploy", "--diff"), "deploy", "aws-cdk-lib"),
        (("driver", "test", "s3"), "aws", "botocore"),
    ],
)
def test_what_needs_more_says_how_to_install_it(client: Path, words: tuple[str, ...], extra: str, missing: str) -> None:
    done = python(client, RUN, *words)
    assert done.returncode == 2
    assert f"pip install 'penstock[{extra}]'" in done.stderr
    assert missing in done.stderr


def test_drivers_are_listed_with_what_they_need(client: Path) -> None:
    done = python(client, RUN, "driver", "list")
    (shown,) = [line for line in done.stdout.splitlines() if "Ec2Factory" in line]
    assert (done.returncode, "pip install 'penstock[aws]'" in shown) == (0, True)


def test_the_rest_works(client: Path, tmp_path: Path) -> None:
    job = tmp_path / "job.sh"
    job.write_text('#!/bin/bash\n#: name = "x"\n#: variety = "basic"\necho\n')
    for words in (("--version",), ("local", "status"), ("job", "lint", str(job)), ("completion", "bash")):
        done = python(client, RUN, *words)
        assert done.returncode == 0, (words, done.stderr)
