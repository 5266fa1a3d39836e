"""A new user's first hour, from a wheel in an empty environment, without a clone.

Install, local up, a job, a job that waits and why, a set, sign in from another machine, an upgrade, what a deployment
would change, uninstall. What was typed and what it said is left in build/first-hour.txt.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest

from infra import bundle, release
from penstock.console import build
from tests.packages import closure

pytestmark = pytest.mark.xdist_group("packages")
JOB = '#!/bin/bash\n#: name = "hello"\n#: variety = "basic"\n#: target = "default"\necho "hello from a wheel"\n'

UNPACKED = Path.home() / ".cache/aws/jsii/package-cache"
"""Where the CDK's libraries are unpacked once for each user; it takes a minute."""

WAIT = 550
"""Seconds, for machines that do much else."""

TRANSCRIPT = closure.ROOT / "build" / "first-hour.txt"

HOLDER = '#!/bin/bash\n#: name = "flash"\n#: variety = "basic"\n#: resources = ["bench"]\nsleep 600\n'
BUILD = '#!/bin/bash\n#: name = "build"\n#: variety = "basic"\necho built\n'
AFTER = '#!/bin/bash\n#: name = "after"\n#: variety = "basic"\n#: [dependencies.build]\n#: job = "build"\necho tested\n'


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
        done = subprocess.run(
            [str(self.venv / "bin" / words[0]), *words[1:]],
            cwd=self.home,
            env=environment,
            capture_output=True,
            text=True,
            timeout=WAIT,
        )
        with TRANSCRIPT.open("a", encoding="utf-8") as file:
            file.write(f"$ {' '.join(words)}\n{done.stderr}{done.stdout}\n")
        return done

    def json(self, *words: str, **more: str) -> Any:
        """What a command prints with --json."""
        return json.loads(self.good("penstock", *words, "--json", **more))

    def until(self, job: str, state: str) -> None:
        """Wait until a job is in a state."""
        end = time.monotonic() + WAIT
        while self.json("job", "show", job)["state"] != state:
            assert time.monotonic() < end, f"job {job} is not {state}"
            time.sleep(0.5)

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
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of this commit, with the console as `make web` builds it."""
    folder = tmp_path_factory.mktemp("clone") / "penstock"
    subprocess.run(["git", "clone", "--quiet", str(closure.ROOT), str(folder)], check=True)
    shutil.copytree(build.built(print), folder / "build" / "web")
    return folder


def built(clone: Path, folder: Path) -> Path:
    """The wheel of a clone."""
    words = [sys.executable, "-c", release.BUILD, str(folder)]
    subprocess.run(words, cwd=clone, check=True, stdout=subprocess.DEVNULL)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def wheel(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this commit."""
    return built(clone, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """The wheel with what `penstock[local]` brings, and no more: links to what is installed here, without a network.

    The functions' layer is taken from the clone's cache, where it is built once for each content.
    """
    folder = tmp_path_factory.mktemp("installed")
    found = Installed(folder / "venv", folder / "home")
    found.home.mkdir()
    TRANSCRIPT.parent.mkdir(exist_ok=True)
    TRANSCRIPT.unlink(missing_ok=True)
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
    up = installed.good("penstock", "local", "up", "--detach")
    (console,) = re.findall(r"^console +(\S+)$", up, re.MULTILINE)
    assert "<title>Penstock</title>" in httpx.get(console, trust_env=False).text
    (installed.home / "job.sh").write_text(JOB)
    assert "hello from a wheel" in installed.good("penstock", "job", "run", "job.sh")


def test_a_waiting_job_is_explained(installed: Installed) -> None:
    (installed.home / "flash.sh").write_text(HOLDER)
    holder = installed.json("job", "run", "flash.sh", "--no-wait")["id"]
    installed.until(holder, "running")
    waits = installed.json("job", "run", "flash.sh", "--no-wait")["id"]
    said = installed.good("penstock", "job", "why", "-")
    assert holder in said
    assert "flash" in said
    listed = installed.good(
        "penstock", "job", "list", "--state", "waiting", "--name", "fl*", "--columns", "ID,WAITS FOR"
    )
    assert waits in listed
    assert "bench" in listed
    assert waits in installed.good("penstock", "pool", "show", "resource/bench")
    for job in (waits, holder):
        installed.good("penstock", "job", "cancel", job, "--wait")


def test_a_set_shows_its_logs_together(installed: Installed) -> None:
    folder = installed.home / "ci"
    folder.mkdir()
    (folder / "build.sh").write_text(BUILD)
    (folder / "after.sh").write_text(AFTER)
    said = installed.good("penstock", "job", "run", "ci/")
    assert re.search(r"build\W+built", said)
    assert re.search(r"after\W+tested", said)


def test_another_machine_signs_in_with_a_code(installed: Installed, tmp_path: Path) -> None:
    url = installed.deployer()["AWS_ENDPOINT_URL"]
    other = Installed(installed.venv, tmp_path)
    words = [str(other.venv / "bin" / "penstock"), "login", url, "--profile", "team"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    with subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True) as asks:
        assert asks.stderr is not None
        lines = iter(asks.stderr.readline, "")
        code = next(found[1] for line in lines if (found := re.search(r"login approve (\S+)", line)))
        installed.good("penstock", "login", "approve", code, "--scope", "read", "--yes")
        asks.communicate(timeout=WAIT)
    assert asks.returncode == 0
    assert "team" in other.good("penstock", "profile", "list")
    assert other.json("whoami")["name"] == installed.json("whoami")["name"]
    refused = other.run("penstock", "job", "run", str(installed.home / "job.sh"))
    assert (refused.returncode, "scope" in refused.stderr) == (2, True)
    other.good("penstock", "logout")
    assert other.run("penstock", "whoami").returncode != 0


def test_an_upgrade_keeps_what_there_is(installed: Installed, wheel: Path, clone: Path, tmp_path: Path) -> None:
    """The next version of the package meets the service that the one before has started."""
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", *who, "commit", "--quiet", "--allow-empty", "-m", "next"], cwd=clone, check=True)
    newer = built(clone, tmp_path)
    assert newer.name != wheel.name
    before = installed.json("job", "list")
    installed.good("python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--upgrade", str(newer))
    assert installed.good("penstock", "--version") == f"penstock {newer.name.split('-')[1]}\n"
    assert installed.json("job", "list") == before
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
    assert "console  https://" in made.stdout
    assert_console_is_there(to)
    again = installed.run(*deploy, "--diff", **to)
    assert "as before: -c ec2=true" in again.stderr
    assert (again.stdout, "nothing would change" in again.stderr) == ("", True)
    assert "pst_" in installed.good("penstock", "user", "bootstrap", "--stack", "Second", "--region", "us-east-1", **to)


def assert_console_is_there(to: Mapping[str, str]) -> None:
    """In its bucket, with its headers, put there by the stack's own function, which may do nothing else."""
    s3 = boto3.client(
        "s3",
        endpoint_url=to["AWS_ENDPOINT_URL"],
        region_name=to["AWS_REGION"],
        aws_access_key_id=to["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=to["AWS_SECRET_ACCESS_KEY"],
    )
    (bucket,) = [each["Name"] for each in s3.list_buckets()["Buckets"] if "console" in each["Name"]]
    index = s3.get_object(Bucket=bucket, Key="index.html")
    assert (index["ContentType"], index["CacheControl"]) == ("text/html; charset=utf-8", "no-cache")
    scripts = re.findall(r'src="/(assets/[^"]+[.]js)"', index["Body"].read().decode())
    assert scripts
    for each in scripts:
        about = s3.head_object(Bucket=bucket, Key=each)
        assert (about["ContentType"], "immutable" in about["CacheControl"]) == ("text/javascript; charset=utf-8", True)


def test_an_option_that_is_none_is_refused(installed: Installed) -> None:
    done = installed.run("penstock", "deploy", "--diff", "-c", "ec=true", **installed.deployer())
    assert (done.returncode, "did you mean 'ec2'?" in done.stderr) == (4, True)


def test_nothing_is_left(installed: Installed) -> None:
    installed.good("penstock", "local", "down")
    assert "not running" in installed.good("penstock", "local", "status")
    installed.good("python", "-m", "pip", "uninstall", "--yes", "penstock")
    assert [path.name for path in installed.packages.glob("penstock*")] == []
    assert not (installed.venv / "bin" / "penstock").exists()
