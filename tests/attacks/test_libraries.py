"""What an attacker put into the package registry so that it is installed, here or in the functions' layer."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from zipfile import ZipFile

import pytest

from infra import bundle
from infra.pins import FILES, HASH, SOURCES, is_wanted, pins, with_hashes


@pytest.mark.parametrize("name", FILES)
def test_every_library_has_hashes(name: str) -> None:
    """And no file of requirements is missing: pip checks each of them when it must."""
    text = (SOURCES / name).read_text()
    assert set(pins(text))
    for block in with_hashes(text, dict.fromkeys(pins(text), ())).splitlines():
        if block and not block.startswith("#"):
            assert f"\n{block} \\\n{HASH}" in f"\n{text}", f"{block} has no hash: run `make pins`"


def test_no_requirements_are_forgotten() -> None:
    there = {
        str(path.relative_to(SOURCES))
        for at in ("", "functions/", "docs/tools/", "tests/web/")
        for path in SOURCES.glob(f"{at}requ*.txt")
    }
    assert there == set(FILES)


def test_setup_checks_them() -> None:
    lines = [line for line in (SOURCES / "Makefile").read_text().splitlines() if "-r requirements.txt" in line]
    assert lines
    assert all("--require-hashes" in line for line in lines)


def wheel(folder: Path, content: str = "") -> Path:
    """A library, as a registry serves it."""
    path = folder / "harmless-1.0-py3-none-any.whl"
    with ZipFile(path, "w") as file:
        file.writestr("harmless.py", content)
        file.writestr("harmless-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: harmless\nVersion: 1.0\n")
        file.writestr("harmless-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr("harmless-1.0.dist-info/RECORD", "")
    return path


@pytest.mark.parametrize("which", ["REQUIREMENTS", "LIBCLOUD"])
def test_another_file_of_a_pinned_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str) -> None:
    """The layer is not built with it."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setattr(bundle, "UNUSED", ())
    good = hashlib.sha256(wheel(tmp_path).read_bytes()).hexdigest()
    wanted = tmp_path / "requirements.txt"
    wanted.write_text(f"harmless==1.0 \\\n{HASH}{good}\n")
    monkeypatch.setattr(bundle, which, wanted)
    bundle._install(tmp_path / "good", [wanted])
    assert (tmp_path / "good" / "python" / "harmless.py").exists()
    wheel(tmp_path, "import os")
    with pytest.raises(subprocess.CalledProcessError):
        bundle._install(tmp_path / "evil", [wanted])
    assert not (tmp_path / "evil" / "python" / "harmless.py").exists()
    wanted.write_text("harmless==1.0\n")
    with pytest.raises(subprocess.CalledProcessError):
        bundle._install(tmp_path / "unpinned", [wanted])


def test_which_files_are_pinned() -> None:
    """Those that fit our machines and versions of Python, and the sources."""
    good = [
        "a-1.0-py3-none-any.whl",
        "a-1.0-py2.py3-none-any.whl",
        "a-1.0.tar.gz",
        "a-1.0-cp311-abi3-manylinux_2_28_x86_64.whl",
        "a-1.0-cp39-abi3-macosx_10_12_universal2.whl",
        "a-1.0-cp313-cp313-manylinux_2_17_aarch64.manylinux2014_aarch64.whl",
        "a-1.0-cp312-cp312-musllinux_1_2_x86_64.whl",
    ]
    bad = [
        "a-1.1-py3-none-any.whl",
        "a-1.0-cp310-cp310-manylinux_2_17_x86_64.whl",
        "a-1.0-cp313-cp313t-manylinux_2_17_x86_64.whl",
        "a-1.0-cp311-cp311-win_amd64.whl",
        "a-1.0-cp311-cp311-manylinux_2_17_s390x.whl",
        "a-1.0.exe",
        "a.whl",
        "a-1.1.tar.gz",
    ]
    assert [each for each in good if not is_wanted(each, "1.0")] == []
    assert [each for each in bad if is_wanted(each, "1.0")] == []


def test_hashes_are_replaced_and_reasons_stay() -> None:
    before = f"# all\na==1  # why\nb==2 \\\n{HASH}old\n"
    after = f"# all\n# why\na==1 \\\n{HASH}x \\\n{HASH}y\nb==2 \\\n{HASH}z\n"
    known = {"a==1": ["x", "y"], "b==2": ["z"]}
    assert with_hashes(before, known) == after
    assert with_hashes(after, known) == after
