"""The wheel, installed where there is no clone: the client, the local cloud, a deployment to it, and nothing left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from infra import bundle, release
from tests.packages import closure

pytestmark = pytest.mark.xdist_group("packages")
JOB = '#!/bin/bash\n#: name = "hello"\n#: variety = "basic"\n#: target = "default"\necho "hello from a wheel"\n'

UNPACKED = Path.home() / ".cache/aws/jsii/package-cache"
"""Where the CDK's libraries are unpacked once for each user; it takes a minute."""

WAIT = 550
"""Seconds, for machines that do much else."""


@dataclass
class Installed:
    """A virtual environment with the wheel, and a user who has nothing else."""

    venv: Path
    home: Path

    def run(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment to its end, from an empty folder."""
        environment = {
            "PATH": f"{self.venv / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(UNPACKED),
            **more,
        }
        command = [str(self.venv / "bin" / words[0]), *words[1:]]
        return subprocess.run(command, cwd=self.home, env=environment, capture_output=True, text=True, timeout=WAIT)

    def good(self, *words: str, **more: str) -> str:
        """What a program prints that succeeds."""
        done = self.run(*words, **more)
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    @property
    def packages(self) -> Path:
        (found,) = self.venv.glob("lib/python*/site-packages")
        return found

    def deployer(self) -> Mapping[str, str]:
        """The AWS settings of whoever owns the local cloud's account."""
        place = self.home / ".local/state/penstock/local"
        return {
            "AWS_ENDPOINT_URL": json.loads((place / "running").read_text())["url"],
            "AWS_ACCESS_KEY_ID": (place / "key").read_text(),
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_REGION": "us-east-1",
        }


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this commit."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(["git", "clone", "--quiet", str(closure.ROOT), str(folder / "clone")], check=True)
    built = [sys.executable, "-c", release.BUILD, str(folder / "built")]
    subprocess.run(built, cwd=folder / "clone", check=True, stdout=subprocess.DEVNULL)
    (found,) = (folder / "built").glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """The wheel with what `penstock[local]` brings, and no more: links to what is installed here, without a network.

    The functions' layer is taken from the clone's cache, where it is built once for each content.
    """
    folder = tmp_path_factory.mktemp("installed")
    found = Installed(folder / "venv", folder / "home")
    found.home.mkdir()
    subprocess.run([sys.executable, "-m", "venv", str(found.venv)], check=True)
    found.good("python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel))
    closure.link(closure.brought("local"), found.packages)
    cache = found.home / ".cache" / "penstock"
    cache.mkdir(parents=True)
    (cache / "layer").symlink_to(bundle.built_layer().parent)
    try:
        yield found
    finally:
        if (found.venv / "bin" / "penstock").exists():  # a test failed before the last one
            found.run("penstock", "local", "down")


def test_the_command_is_there(installed: Installed, wheel: Path) -> None:
    assert f"penstock {wheel.name.split('-')[1]}\n" == installed.good("penstock", "--version")
    assert "Run jobs on scarce machines" in installed.good("penstock", "--help")
    assert "Ec2Factory" in installed.good("penstock", "driver", "list")
    assert (installed.packages / "penstock" / "py.typed").is_file()


def test_a_local_cloud_runs_a_job(installed: Installed) -> None:
    installed.good("penstock", "local", "up", "--detach")
    (installed.home / "job.sh").write_text(JOB)
    assert "hello from a wheel" in installed.good("penstock", "job", "run", "job.sh")


def test_a_deployment_is_shown_made_and_remembered(installed: Installed) -> None:
    """To the local cloud, as a second stack of its account."""
    to = installed.deployer()
    deploy = ("penstock", "deploy", "-c", "name=Second")
    shown = json.loads(installed.good(*deploy, "-c", "ec2=true", "--diff", "--json", **to))
    assert {each["action"] for each in shown["changes"]} == {"Add"}
    refused = installed.run(*deploy, "-c", "ec2=true", **to)
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    made = installed.run(*deploy, "-c", "ec2=true", "--yes", **to)
    assert (made.returncode, "penstock user bootstrap --stack Second" in made.stderr) == (0, True), made.stderr
    again = installed.run(*deploy, "--diff", **to)
    assert "as before: -c ec2=true" in again.stderr
    assert (again.stdout, "nothing would change" in again.stderr) == ("", True)
    assert "pst_" in installed.good("penstock", "user", "bootstrap", "--stack", "Second", "--region", "us-east-1", **to)


def test_an_option_that_is_none_is_refused(installed: Installed) -> None:
    done = installed.run("penstock", "deploy", "--diff", "-c", "ec=true", **installed.deployer())
    assert (done.returncode, "did you mean 'ec2'?" in done.stderr) == (4, True)


def test_nothing_is_left(installed: Installed) -> None:
    installed.good("penstock", "local", "down")
    assert "not running" in installed.good("penstock", "local", "status")
    installed.good("python", "-m", "pip", "uninstall", "--yes", "penstock")
    assert [path.name for path in installed.packages.glob("penstock*")] == []
    assert not (installed.venv / "bin" / "penstock").exists()
