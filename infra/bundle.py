"""The code to upload: a zip with Penstock for all functions, and a layer with libraries. It needs no Docker.

The layer has only pure Python, so that one build works on Lambda's arm64 and on any machine of the local cloud.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from aws_cdk import IgnoreMode
from aws_cdk import aws_lambda as lambda_

ROOT = Path(__file__).parents[1]
FUNCTIONS = ROOT / "functions"
REQUIREMENTS = FUNCTIONS / "requirements.txt"
LIBCLOUD = FUNCTIONS / "requirements-libcloud.txt"
LAYERS = ROOT / "build" / "layer"

LEFT_OUT = (
    "/penstock/cli",
    "/penstock/local",
    "/penstock/testing",
    "/penstock/api/openapi.py",
    "/requirements*.txt",
    "*.asl.json",
    "__pycache__",
    "*.pyc",
    "*.egg-info",
)
"""Files that functions do not need, as .gitignore patterns relative to functions/."""


def code() -> lambda_.Code:
    """Penstock's code for Lambda."""
    return lambda_.Code.from_asset(str(FUNCTIONS), exclude=list(LEFT_OUT), ignore_mode=IgnoreMode.GIT)


UNUSED = ("bin", "libcloud/test")
"""Parts of libraries that nothing imports. libcloud's tests have 18 MB."""


def libraries(*, libcloud: bool = False, drivers: str = "") -> lambda_.Code:
    """The layer: functions/requirements.txt, and optionally libcloud and third-party drivers.

    It is built once for each content.
    """
    files = [REQUIREMENTS, *([LIBCLOUD] if libcloud else []), *([Path(drivers).resolve()] if drivers else [])]
    content = b"".join(path.read_bytes() for path in (*files, *_beside(files[-1])))
    folder = LAYERS / hashlib.sha256(content).hexdigest()[:16]
    if not folder.is_dir():
        _build(folder, files)
    return lambda_.Code.from_asset(str(folder))


def _beside(file: Path) -> Sequence[Path]:
    """The wheels that a requirements file names by path. Their content counts, because names may stay the same."""
    named = (line.partition("#")[0].strip() for line in file.read_text().splitlines())
    return [path for path in (file.parent / name for name in named if name) if path.is_file()]


def _build(folder: Path, files: Sequence[Path]) -> None:
    """Install into a temporary folder, then rename it, so that an interrupted build does not look finished."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as beside:
        target = Path(beside) / "layer"
        install = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile"]
        pure = ["--only-binary=:all:", "--platform=any", "--target", str(target / "python")]
        wanted = [part for file in files for part in ("-r", str(file))]
        subprocess.run([sys.executable, "-m", "pip", *install, *pure, *wanted], cwd=files[-1].parent, check=True)
        for name in UNUSED:
            shutil.rmtree(target / "python" / name, ignore_errors=True)
        native = [str(path.relative_to(target)) for path in target.rglob("*.so")]
        if native:
            raise ValueError(f"{FUNCTIONS}: the layer must be pure Python, but libraries contain native code: {native}")
        try:
            target.rename(folder)
        except OSError:  # a concurrent build finished first; any other error is raised
            if not folder.is_dir():
                raise
