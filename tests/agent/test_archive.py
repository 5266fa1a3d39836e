"""Archives of caches: nothing of an invalid one is put in place, and nothing leaves the cache's paths."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.agent.archive import NotPacked, NotUnpacked, Packed, pack, unpack
from penstock.agent.machine import Machine

Make = Callable[..., tarfile.TarInfo]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    root = tmp_path / "root"
    (root / "work").mkdir(parents=True)
    return Machine(str(root))


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", data: bytes = b"") -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size, info.mode = kind, link, len(data), 0o4755
    return info, data


def archive(path: Path, *entries: tuple[tarfile.TarInfo, bytes]) -> str:
    with tarfile.open(path, "w:gz") as tar:
        for info, data in entries:
            tar.addfile(info, io.BytesIO(data))
    return str(path)


FOLDER = entry("work/deps", tarfile.DIRTYPE)
GOOD = entry("work/deps/a", data=b"a")


@pytest.mark.parametrize(
    "wrong",
    [
        [entry("work/other", data=b"x")],
        [entry("work/depsx", data=b"x")],
        [entry("work/deps/../../../x", data=b"x")],
        [entry("/etc/x", data=b"x")],
        [entry("work/deps/./b", data=b"x")],
        [entry("work/deps/link", tarfile.SYMTYPE, "/tmp"), entry("work/deps/link/x", data=b"x")],
        [entry("work/deps/link", tarfile.SYMTYPE, "/tmp"), entry("work/deps/link", data=b"x")],
        [entry("work/deps/no/folder", data=b"x")],
        [entry("work/deps/a", data=b"twice")],
        [entry("work/deps/hard", tarfile.LNKTYPE, "work/deps/none")],
        [entry("work/deps/hard", tarfile.LNKTYPE, "/etc/passwd")],
        [
            entry("work/deps/link", tarfile.SYMTYPE, "/etc/passwd"),
            entry("work/deps/h", tarfile.LNKTYPE, "work/deps/link"),
        ],
        [entry("work/deps/null", tarfile.CHRTYPE)],
        [entry("work/deps/disk", tarfile.BLKTYPE)],
        [entry("work/deps/pipe", tarfile.FIFOTYPE)],
    ],
)
def test_one_invalid_entry_makes_an_archive_invalid(machine: Machine, tmp_path: Path, wrong) -> None:  # type: ignore[no-untyped-def]
    path = archive(tmp_path / "a.tar.gz", FOLDER, GOOD, *wrong)
    with pytest.raises(NotUnpacked):
        unpack(machine, ["/work/deps"], path, lambda: None)
    assert os.listdir(machine.real_path("/work")) == []
    assert sorted(os.listdir(tmp_path)) == ["a.tar.gz", "root"]


def test_setuid_bits_are_dropped(machine: Machine, tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar.gz", FOLDER, GOOD)
    assert unpack(machine, ["/work/deps"], path, lambda: None) == 2
    assert os.stat(machine.real_path("/work/deps/a")).st_mode & 0o7777 == 0o755


def dated(name: str, kind: bytes, mtime: str) -> tuple[tarfile.TarInfo, bytes]:
    info, data = entry(name, kind)
    info.pax_headers = {"mtime": mtime}
    return info, data


@pytest.mark.parametrize("kind", [tarfile.DIRTYPE, tarfile.REGTYPE])
@pytest.mark.parametrize("mtime", ["nan", "1e3", "1.x", "", "9" * 5000])
def test_an_invalid_time_is_found_before_anything_is_put_in_place(
    machine: Machine, tmp_path: Path, kind: bytes, mtime: str
) -> None:
    path = archive(tmp_path / "a.tar.gz", FOLDER, GOOD, dated("work/deps/x", kind, mtime))
    with pytest.raises(NotUnpacked):
        unpack(machine, ["/work/deps"], path, lambda: None)
    assert os.listdir(machine.real_path("/work")) == []


@pytest.mark.parametrize("kind", [tarfile.DIRTYPE, tarfile.REGTYPE])
@pytest.mark.parametrize("mtime", ["9" * 30, "-" + "9" * 30 + ".5"])
def test_a_time_beyond_the_limit_is_set_to_the_limit(machine: Machine, tmp_path: Path, kind: bytes, mtime: str) -> None:
    path = archive(tmp_path / "a.tar.gz", FOLDER, GOOD, dated("work/deps/x", kind, mtime))
    assert unpack(machine, ["/work/deps"], path, lambda: None) == 3
    assert (os.stat(machine.real_path("/work/deps/x")).st_mtime < 0) == mtime.startswith("-")


def test_a_truncated_archive_is_not_unpacked(machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    archive(path, FOLDER, entry("work/deps/a", data=os.urandom(100_000)))
    path.write_bytes(path.read_bytes()[:50_000])
    with pytest.raises(NotUnpacked):
        unpack(machine, ["/work/deps"], str(path), lambda: None)
    assert os.listdir(machine.real_path("/work")) == []


def test_a_path_through_a_link_out_of_the_root_is_refused(machine: Machine, tmp_path: Path) -> None:
    os.symlink(tmp_path, machine.real_path("/work/out"))
    path = archive(tmp_path / "a.tar.gz", entry("work/out/b", data=b"x"))
    with pytest.raises(NotUnpacked, match="leads out"):
        unpack(machine, ["/work/out/b"], path, lambda: None)
    assert not (tmp_path / "b").exists()


def test_stopped_unpacking_leaves_nothing(machine: Machine, tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    calls = []

    def check() -> None:
        calls.append(1)
        if len(calls) == 3:
            raise Stop

    path = archive(tmp_path / "a.tar.gz", FOLDER, GOOD, entry("work/deps/b", data=b"b"))
    with pytest.raises(Stop):
        unpack(machine, ["/work/deps"], path, check)
    assert os.listdir(machine.real_path("/work")) == []


def packed(machine: Machine, *names: str, most: int = 1 << 20) -> tuple[Packed, bytes]:
    stream = io.BytesIO()
    return pack(machine, list(names), stream, most, lambda: None), stream.getvalue()


def test_read_only_folders_are_packed_and_unpacked(machine: Machine, tmp_path: Path) -> None:
    work = Path(machine.real_path("/work"))
    (work / "mod/sub").mkdir(parents=True)
    (work / "mod/sub/x").write_text("x")
    for each in ("mod/sub/x", "mod/sub", "mod"):
        (work / each).chmod(0o555 if each != "mod/sub/x" else 0o444)
    (tmp_path / "a").write_bytes(packed(machine, "/work/mod")[1])
    os.rename(work, tmp_path / "before")
    work.mkdir()
    assert unpack(machine, ["/work/mod"], str(tmp_path / "a"), lambda: None) == 3
    assert [oct((work / each).stat().st_mode & 0o777) for each in ("mod", "mod/sub/x")] == ["0o555", "0o444"]


def test_hard_links_across_paths_and_a_missing_path(machine: Machine, tmp_path: Path) -> None:
    work = Path(machine.real_path("/work"))
    (work / "one").write_text("1")
    (work / "two").mkdir()
    os.link(work / "one", work / "two/linked")
    made, data = packed(machine, "/work/none", "/work/one", "/work/two")
    assert (made.count, made.missing, made.left_out) == (3, ["/work/none"], 0)
    (tmp_path / "a").write_bytes(data)
    (work / "one").write_text("changed")
    (work / "two/linked").unlink()
    (work / "two").rmdir()
    assert unpack(machine, ["/work/none", "/work/one", "/work/two"], str(tmp_path / "a"), lambda: None) == 3
    assert (work / "one").read_text() == (work / "two/linked").read_text() == "1"


def test_unreadable_or_too_large_files_are_not_packed(machine: Machine) -> None:
    work = Path(machine.real_path("/work"))
    (work / "big").write_bytes(os.urandom(10_000))
    with pytest.raises(NotPacked, match="more than 5000 bytes"):
        packed(machine, "/work/big", most=5000)
    os.symlink("/etc", work / "out")
    with pytest.raises(NotPacked, match="leads out"):
        packed(machine, "/work/out/passwd")


def test_a_file_that_shrinks_is_not_packed(machine: Machine) -> None:
    work = Path(machine.real_path("/work"))
    (work / "a").write_bytes(b"x" * 10_000)

    def check() -> None:
        (work / "a").write_bytes(b"y")

    with pytest.raises(NotPacked, match="could not be packed"):
        pack(machine, ["/work/a"], io.BytesIO(), 1 << 20, check)


def test_names_that_are_not_utf8_are_preserved(machine: Machine, tmp_path: Path) -> None:
    work = os.fsencode(machine.real_path("/work"))
    os.mkdir(work + b"/d")
    open(work + b"/d/\xff\n", "wb").close()
    (tmp_path / "a").write_bytes(packed(machine, "/work/d")[1])
    os.unlink(work + b"/d/\xff\n")
    unpack(machine, ["/work/d"], str(tmp_path / "a"), lambda: None)
    assert os.listdir(work + b"/d") == [b"\xff\n"]
