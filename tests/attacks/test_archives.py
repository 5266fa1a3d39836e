"""What an attacker packed into an archive of a cache so that a worker runs out of disk, memory or stack."""

from __future__ import annotations

import gzip
import io
import tarfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.agent.archive import FREE_BYTES, Bounds, NotPacked, NotUnpacked, pack, unpack
from penstock.agent.machine import Machine

MIB = 1 << 20
TOP = "work/deps"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    root = tmp_path / "root"
    (root / "work").mkdir(parents=True)
    return Machine(str(root))


def member(name: str, size: int = 0, kind: bytes = tarfile.REGTYPE) -> bytes:
    """The header of an entry, as an archive has it."""
    info = tarfile.TarInfo(name)
    info.type, info.size, info.mode = kind, size, 0o755
    return info.tobuf(tarfile.USTAR_FORMAT)


FOLDER = member(TOP, kind=tarfile.DIRTYPE)


def write(path: Path, blocks: Iterator[bytes]) -> str:
    with gzip.open(path, "wb", compresslevel=9) as file:
        for block in blocks:
            file.write(block)
        file.write(bytes(2 * tarfile.BLOCKSIZE))
    return str(path)


def bomb(size: int) -> Iterator[bytes]:
    yield FOLDER
    yield member(f"{TOP}/zeros", size)
    for _ in range(size // MIB):
        yield bytes(MIB)


def open_it(machine: Machine, archive: str, bounds: Bounds, why: str) -> None:
    """Unpack an archive, which is refused for a reason, and of which nothing is left."""
    with pytest.raises(NotUnpacked, match=why):
        unpack(machine, [f"/{TOP}"], archive, lambda: None, bounds)
    assert list(Path(machine.root, "work").iterdir()) == []


def test_a_small_archive_that_becomes_a_thousand_times_larger(machine: Machine, tmp_path: Path) -> None:
    """It is refused by its header, before a byte of it is written."""
    archive = write(tmp_path / "bomb", bomb(2 * FREE_BYTES))
    assert Path(archive).stat().st_size < MIB
    written = 0

    def check() -> None:
        nonlocal written
        written = sum(each.stat().st_size for each in Path(machine.root).rglob("*") if each.is_file())
        assert not written

    with pytest.raises(NotUnpacked, match="unpacked_ratio"):
        unpack(machine, [f"/{TOP}"], archive, check)


def test_many_files_that_are_small_each(machine: Machine, tmp_path: Path) -> None:
    def files() -> Iterator[bytes]:
        yield FOLDER
        for number in range(200):
            yield member(f"{TOP}/{number}", MIB)
            yield bytes(MIB)

    open_it(machine, write(tmp_path / "many", files()), Bounds(), "unpacked_ratio")


def test_more_bytes_than_the_site_allows(machine: Machine, tmp_path: Path) -> None:
    open_it(machine, write(tmp_path / "big", bomb(2 * MIB)), Bounds(bytes=2 * MIB), f"more than {2 * MIB} bytes")


def test_more_entries_than_the_site_allows(machine: Machine, tmp_path: Path) -> None:
    names = iter([FOLDER, *(member(f"{TOP}/{number}") for number in range(100))])
    open_it(machine, write(tmp_path / "entries", names), Bounds(entries=100), "more than 100 entries")


def test_folders_deeper_than_the_site_allows(machine: Machine, tmp_path: Path) -> None:
    deep = iter([FOLDER, *(member(TOP + "/d" * level, kind=tarfile.DIRTYPE) for level in range(1, 101))])
    open_it(machine, write(tmp_path / "deep", deep), Bounds(), "deeper than 100 levels")


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK])
def test_a_name_that_fills_the_memory(machine: Machine, tmp_path: Path, kind: bytes) -> None:
    def named() -> Iterator[bytes]:
        yield member("x", 128 * MIB, kind)
        for _ in range(128):
            yield bytes(MIB)
        yield FOLDER

    archive = write(tmp_path / "name", named())
    tracemalloc.start()
    try:
        open_it(machine, archive, Bounds(), "attributes of an entry")
        assert tracemalloc.get_traced_memory()[1] < 48 * MIB
    finally:
        tracemalloc.stop()


def test_what_cannot_be_restored_is_not_saved(machine: Machine) -> None:
    """A job that fills its own cache learns of the limit when it saves."""
    top = Path(machine.root, TOP)
    (top / "a" / "b").mkdir(parents=True)
    for bounds, why in (
        (Bounds(bytes=1000), "more than 1000 bytes"), (Bounds(entries=2), "more than 2 entries"),
        (Bounds(depth=2), "deeper than 2 levels"),
    ):  # fmt: skip
        with pytest.raises(NotPacked, match=why):
            pack(machine, [f"/{TOP}"], io.BytesIO(), MIB, lambda: None, bounds)
    with (top / "zeros").open("wb") as file:
        file.truncate(2 * FREE_BYTES)
    with pytest.raises(NotPacked, match="unpacked_ratio"):
        pack(machine, [f"/{TOP}"], io.BytesIO(), MIB, lambda: None)


def test_a_site_says_how_much(machine: Machine) -> None:
    said = {"unpacked_bytes": 1, "unpacked_entries": 2, "unpacked_depth": 3, "unpacked_ratio": 4}
    assert Bounds.of(said) == Bounds(1, 2, 3, 4)
    assert Bounds.of({}) == Bounds()
