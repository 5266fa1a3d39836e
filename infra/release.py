"""Builds a release: `make release`, into build/release. The same commit gives the same bytes, wherever it is built.

    penstock-VERSION-py3-none-any.whl    what `pip install` takes, with the console built
    penstock-VERSION.tar.gz              its sources
    penstock-VERSION-assembly.zip        the stack with default options, as `cdk deploy --app` takes it when unzipped
    penstock-VERSION-*.cdx.json          bills of materials: infra/sbom.py
    SHA256SUMS                           of all of them, as `sha256sum --check` takes it

It builds a clone of the commit, so that nothing else of this folder gets into it. Times are those of the commit,
archives have their files in order, and zip files are not compressed, because compressors differ between machines.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from infra import version

HERE = Path(__file__).parents[1]
BUILD = "import sys; from setuptools import build_meta as b; out = sys.argv[1]; b.build_sdist(out); b.build_wheel(out)"
DATE = (1980, 1, 1, 0, 0, 0)
TEMPORARY = re.compile(rb"jsii-kernel-\w+")
"""The folder into which jsii unpacks the CDK for a while. Notes in the assembly say which line of it made what."""

READABLE, EXECUTABLE = 0o100644, 0o100755


def main(folder: Path) -> None:
    """Build the commit that is checked out. Raises SystemExit if files were changed since."""
    changed = _git(HERE, "status", "--porcelain")
    if changed:
        sys.exit(f"a release is built of a commit; commit or remove first:\n{changed}")
    with tempfile.TemporaryDirectory() as place:
        clone, out = Path(place) / "clone", Path(place) / "out"
        out.mkdir()
        subprocess.run(["git", "clone", "--quiet", str(HERE), str(clone)], check=True)
        _git(clone, "checkout", "--quiet", "--detach", _git(HERE, "rev-parse", "HEAD"))
        files = build(clone, out)
    _write(folder, files)


def build(clone: Path, out: Path) -> dict[str, bytes]:
    """All files of a release of a clone, by name; `out` is an empty folder for what tools write."""
    epoch = int(_git(clone, "log", "-1", "--format=%ct"))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CDK_", "PYTHON"))}
    environment = {
        **kept,
        "PYTHONPATH": f"{clone / 'functions'}:{clone}",
        "SOURCE_DATE_EPOCH": str(epoch),
        "CDK_DISABLE_STACK_TRACE": "1",  # those of warnings name temporary files
    }
    name = f"penstock-{version.current(clone)}"

    def run(*words: str, **more: str) -> None:
        subprocess.run([sys.executable, *words], cwd=clone, env=environment | more, check=True, stdout=sys.stderr)

    run("-m", "penstock.console.build")
    run("app.py", CDK_OUTDIR=str(out / "assembly"), CDK_CONTEXT_JSON=_context(clone))
    run("-m", "infra.sbom", str(out / "bills"))
    run("-c", BUILD, str(out / "packages"))
    files = {f"{name}-assembly.zip": zipped(_content(out / "assembly"))}
    files |= {f"{name}-{path.name}": path.read_bytes() for path in (out / "bills").iterdir()}
    files |= {path.name: _same_wheel(path) for path in (out / "packages").glob("*.whl")}
    return files | {path.name: same_sdist(path.read_bytes(), epoch) for path in (out / "packages").glob("*.tar.gz")}


def _context(clone: Path) -> str:
    """The flags that `cdk deploy` reads from cdk.json."""
    return json.dumps(json.loads((clone / "cdk.json").read_text(encoding="utf-8"))["context"])


def _content(folder: Path) -> dict[str, tuple[bytes, int]]:
    """All files below a folder: their bytes and modes."""
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {
        name: (TEMPORARY.sub(b"jsii-kernel", path.read_bytes()), path.stat().st_mode) for name, path in found.items()
    }


def zipped(content: Mapping[str, tuple[bytes, int]]) -> bytes:
    """A zip of files: the same files give the same bytes. A package's own description is last, as wheels have it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(content, key=lambda name: (".dist-info/" in name, name.endswith("/RECORD"), name)):
            entry = zipfile.ZipInfo(name, DATE)
            entry.create_system = 3
            entry.external_attr = _mode(content[name][1]) << 16
            archive.writestr(entry, content[name][0])
    return buffer.getvalue()


def _same_wheel(path: Path) -> bytes:
    with zipfile.ZipFile(path) as archive:
        return zipped({each.filename: (archive.read(each), each.external_attr >> 16) for each in archive.infolist()})


def same_sdist(packed: bytes, epoch: int) -> bytes:
    """A source archive without what was of the machine: users, times, modes, order."""
    buffer = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(packed)) as archive,
        gzip.GzipFile("", "wb", fileobj=buffer, mtime=0) as squeezed,
        tarfile.open(fileobj=squeezed, mode="w", format=tarfile.PAX_FORMAT) as target,
    ):
        for each in sorted(archive.getmembers(), key=lambda each: each.name):
            if each.isfile():
                entry = tarfile.TarInfo(each.name)
                entry.size, entry.mtime, entry.mode = each.size, epoch, _mode(each.mode) & 0o777
                target.addfile(entry, archive.extractfile(each))
    return buffer.getvalue()


def _mode(mode: int) -> int:
    return EXECUTABLE if mode & 0o100 else READABLE


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write them with their sums, and print their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for former in folder.iterdir():
        former.unlink()
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(files.items()))
    for name, content in {**files, "SHA256SUMS": sums.encode()}.items():
        (folder / name).write_bytes(content)
        print(folder / name)


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
