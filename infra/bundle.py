"""The code to upload: a zip with Penstock for all functions, and a layer with libraries. It needs no Docker.

The layer has only pure Python, so that one build works on Lambda's arm64 and on any machine of the local cloud. Both
have compiled modules beside the sources: infra/bytecode.py.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from aws_cdk import aws_lambda as lambda_

from infra import bytecode
from penstock import sources
from penstock.sources import BUILT, FUNCTIONS

REQUIREMENTS = FUNCTIONS / "requirements.txt"
LIBCLOUD = FUNCTIONS / "requirements-libcloud.txt"

LEFT_OUT = (
    "penstock/cli", "penstock/console", "penstock/deploy", "penstock/local", "penstock/testing",
    "penstock/api/openapi.py", "penstock/leasing.py", "penstock/sources.py",
)  # fmt: skip
"""Folders and files of functions/ that functions do not need."""

UNUSED = ("bin", "libcloud/test")
"""Parts of libraries that nothing imports. libcloud's tests have 18 MB."""


def code() -> lambda_.Code:
    """Penstock's code for Lambda. It is built once for each content."""
    return lambda_.Code.from_asset(str(built_code()))


def built_code() -> Path:
    """The folder that becomes /var/task."""
    shipped = {name: path for name, path in sorted(sources.shipped().items()) if is_needed(name)}
    content = b"".join(f"{name}\0".encode() + path.read_bytes() for name, path in shipped.items())
    return _built("function", content, lambda folder: _copy(shipped, folder))


def is_needed(name: str) -> bool:
    """Whether functions need a file of this name."""
    return not any(Path(name).is_relative_to(each) for each in LEFT_OUT)


def _copy(shipped: Mapping[str, Path], folder: Path) -> None:
    for name, path in shipped.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / name)
    bytecode.compile_folder(folder, "/var/task")


def libraries(*, libcloud: bool = False, drivers: str = "") -> lambda_.Code:
    """The layer: functions/requirements.txt, and optionally libcloud and third-party drivers."""
    return lambda_.Code.from_asset(str(built_layer(libcloud=libcloud, drivers=drivers)))


def built_layer(*, libcloud: bool = False, drivers: str = "") -> Path:
    """The folder that becomes /opt. It is built once for each content."""
    files = [REQUIREMENTS, *([LIBCLOUD] if libcloud else []), *([Path(drivers).resolve()] if drivers else [])]
    content = b"".join(path.read_bytes() for path in (*files, *_beside(files[-1])))
    return _built("layer", content, lambda folder: _install(folder, files))


def _beside(file: Path) -> Sequence[Path]:
    """The wheels that a requirements file names by path. Their content counts, because names may stay the same."""
    named = (line.partition("#")[0].strip() for line in file.read_text().splitlines())
    return [path for path in (file.parent / name for name in named if name) if path.is_file()]


def _built(kind: str, content: bytes, build: Callable[[Path], None]) -> Path:
    """A folder that `build` fills, unless the same content was already built for the same bytecode.

    It is made beside and then renamed, so that an interrupted build does not look finished.
    """
    version = str(bytecode.MAGIC if bytecode.compiler() else None).encode()
    folder = BUILT / kind / hashlib.sha256(version + content).hexdigest()[:16]
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as beside:
            target = Path(beside) / kind
            target.mkdir()
            build(target)
            try:
                target.rename(folder)
            except OSError:  # a concurrent build finished first; any other error is raised
                if not folder.is_dir():
                    raise
    os.utime(folder)  # the local cloud removes those that were not used for long
    return folder


def _install(folder: Path, files: Sequence[Path]) -> None:
    """Install libraries into a layer. Raises ValueError if one has native code.

    Of our own libraries only the files whose hashes we know are installed; those of other packages may have none.
    """
    install = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile"]
    pure = ["--only-binary=:all:", "--platform=any", "--target", str(folder / "python")]
    for file in files:
        hashed = ["--require-hashes"] if file in (REQUIREMENTS, LIBCLOUD) else []
        command = [sys.executable, "-m", "pip", *install, *pure, *hashed, "-r", str(file)]
        subprocess.run(command, cwd=file.parent, check=True)
    for name in UNUSED:
        shutil.rmtree(folder / "python" / name, ignore_errors=True)
    native = [str(path.relative_to(folder)) for path in folder.rglob("*.so")]
    if native:
        raise ValueError(f"{FUNCTIONS}: the layer must be pure Python, but libraries contain native code: {native}")
    bytecode.compile_folder(folder / "python", "/opt/python")
