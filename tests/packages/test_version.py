"""The version is that of the tag that is checked out; between tags it says how many commits later this is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from packaging.version import Version

from infra import version


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with one commit and no tag."""
    root = tmp_path / "clone"
    root.mkdir()
    git(root, "init", "--quiet")
    commit(root)
    return root


def git(root: Path, *words: str) -> str:
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    return subprocess.run(["git", *who, *words], cwd=root, capture_output=True, text=True, check=True).stdout.strip()


def commit(root: Path) -> str:
    git(root, "commit", "--quiet", "--allow-empty", "--message", "more")
    return git(root, "rev-parse", "--short=8", "HEAD")


def test_without_a_tag_it_comes_before_the_first(clone: Path) -> None:
    last = commit(clone)
    assert version.current(clone) == f"0.1.0.dev2+g{last}"
    assert Version(version.current(clone)) < Version(version.FIRST)


def test_a_tag_is_the_version(clone: Path) -> None:
    git(clone, "tag", "v0.2.0")
    git(clone, "tag", "notes")
    assert version.current(clone) == "0.2.0"


def test_between_two_tags_it_is_between_two_versions(clone: Path) -> None:
    git(clone, "tag", "--annotate", "--message", "x", "v0.2.9")
    commit(clone)
    last = commit(clone)
    assert version.current(clone) == f"0.2.10.dev2+g{last}"
    assert Version("0.2.9") < Version(version.current(clone)) < Version("0.2.10")


def test_a_tag_that_is_no_version_is_refused(clone: Path) -> None:
    git(clone, "tag", "v1.0.0rc1")
    with pytest.raises(ValueError, match=r"v1\.0\.0rc1.* must be vX\.Y\.Z"):
        version.current(clone)


def test_what_was_unpacked_from_an_sdist_has_its_version(tmp_path: Path) -> None:
    (tmp_path / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: penstock\nVersion: 1.2.3\n\nVersion: 4\n")
    assert version.current(tmp_path) == "1.2.3"


def test_a_folder_that_is_no_clone_has_no_other_repositorys_version(clone: Path) -> None:
    (clone / "below").mkdir()
    git(clone, "tag", "v7.0.0")
    assert version.current(clone / "below") == "0.1.0.dev0"
