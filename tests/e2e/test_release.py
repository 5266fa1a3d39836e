"""A release of one commit is the same bytes wherever and whenever it is built, and its parts are good."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def commit() -> str:
    """The commit that is built, whatever is committed meanwhile."""
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def built(place: Path, umask: int, commit: str) -> Mapping[str, bytes]:
    """The release of a new clone of a commit, by a user whose new files have these permissions."""
    clone = place / "penstock"
    place.mkdir()
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True, umask=umask)
    subprocess.run(["git", "checkout", "--quiet", "--detach", commit], cwd=clone, check=True, umask=umask)
    environment = {**os.environ, "PYTHONPATH": f"{clone / 'functions'}:{clone}"}
    command = [sys.executable, "-m", "infra.release", "build/release"]
    subprocess.run(command, cwd=clone, env=environment, check=True, umask=umask)
    return {path.name: path.read_bytes() for path in (clone / "build/release").iterdir()}


@pytest.fixture(scope="module")
def release(commit: str, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, bytes]:
    return built(tmp_path_factory.mktemp("one") / "here", 0o022, commit)


@pytest.mark.xdist_group("release")
def test_two_builds_are_equal(release: Mapping[str, bytes], commit: str, tmp_path: Path) -> None:
    time.sleep(2)  # zip files have times of two seconds
    other = built(tmp_path / "in a folder of another name", 0o077, commit)
    assert sorted(other) == sorted(release)
    assert [name for name, content in release.items() if other[name] != content] == []


@pytest.mark.xdist_group("release")
def test_a_release_has_all_its_parts_and_their_sums(release: Mapping[str, bytes]) -> None:
    (wheel,) = [each for each in release if each.endswith(".whl")]
    name = wheel.removesuffix("-py3-none-any.whl")
    parts = ["-py3-none-any.whl", ".tar.gz", "-assembly.zip", "-layer.cdx.json", "-layer-libcloud.cdx.json"]
    bills = ["-setup.cdx.json", "-docs.cdx.json", "-browser.cdx.json", "-console.cdx.json", "-console-build.cdx.json"]
    wanted = {f"{name}{part}" for part in (*parts, *bills)}
    assert set(release) == {*wanted, "SHA256SUMS"}
    sums = dict(reversed(line.split("  ")) for line in release["SHA256SUMS"].decode().splitlines())
    assert sums == {each: hashlib.sha256(release[each]).hexdigest() for each in wanted}


@pytest.mark.xdist_group("release")
def test_its_packages_have_the_console_built(release: Mapping[str, bytes]) -> None:
    """Whoever installs them needs no Node for it, and gets the licences of all that is in it."""
    (sdist,) = [each for each in release if each.endswith(".tar.gz")]
    (wheel,) = [each for each in release if each.endswith(".whl")]
    with tarfile.open(fileobj=io.BytesIO(release[sdist])) as archive:
        inner = f"{sdist.removesuffix('.tar.gz')}/build/web/"
        packed = {name.removeprefix(inner) for name in archive.getnames() if name.startswith(inner)}
        assert not [name for name in archive.getnames() if "node_modules" in name]
    with zipfile.ZipFile(io.BytesIO(release[wheel])) as archive:
        inner = "penstock/_sources/console/"
        wheeled = {name.removeprefix(inner) for name in archive.namelist() if name.startswith(inner)}
        assert "preact" in archive.read(f"{inner}licences.txt").decode()
    assert packed == wheeled >= {"index.html", "licences.txt"}
    assert [name for name in wheeled if name.startswith("assets/") and name.endswith(".js")]


@pytest.mark.xdist_group("release")
def test_its_sources_build_the_same_wheel(release: Mapping[str, bytes], tmp_path: Path) -> None:
    (sdist,) = [each for each in release if each.endswith(".tar.gz")]
    (wheel,) = [each for each in release if each.endswith(".whl")]
    for name in (sdist, wheel):
        (tmp_path / name).write_bytes(release[name])
    subprocess.run(["tar", "-xf", sdist], cwd=tmp_path, check=True)
    script = f"from setuptools import build_meta; build_meta.build_wheel({str(tmp_path / 'built')!r})"
    unpacked = tmp_path / sdist.removesuffix(".tar.gz")
    subprocess.run([sys.executable, "-c", script], cwd=unpacked, check=True, stdout=subprocess.DEVNULL)
    with zipfile.ZipFile(tmp_path / wheel) as one, zipfile.ZipFile(tmp_path / "built" / wheel) as two:
        assert {each: one.read(each) for each in one.namelist()} == {each: two.read(each) for each in two.namelist()}
