"""What is uploaded: one zip of ours for all functions, one layer of other people's. No Docker, no compiler.

The layer holds pure Python only, so that one build serves Lambda on arm64 and the local cloud on anything.
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
"""What stays on people's own machines, as .gitignore patterns relative to functions/."""


def code() -> lambda_.Code:
    """Everything of ours that runs in Lambda."""
    return lambda_.Code.from_asset(str(FUNCTIONS), exclude=list(LEFT_OUT), ignore_mode=IgnoreMode.GIT)


UNUSED = ("bin", "libcloud/test")
"""What of the libraries nothing imports: libcloud brings 18 MB of its own tests."""


def libraries(*, libcloud: bool = False, drivers: str = "") -> lambda_.Code:
    """The layer of functions/requirements.txt, with that of other clouds, and other people's drivers, if wanted.

    It is built once per content.
    """
    files = [REQUIREMENTS, *([LIBCLOUD] if libcloud else []), *([Path(drivers).resolve()] if drivers else [])]
    content = b"".join(path.read_bytes() for path in (*files, *_beside(files[-1])))
    folder = LAYERS / hashlib.sha256(content).hexdigest()[:16]
    if not folder.is_dir():
        _build(folder, files)
    return lambda_.Code.from_asset(str(folder))


def _beside(file: Path) -> Sequence[Path]:
    """The wheels that a list names by their path: their content counts, for a name may stay the same."""
    named = (line.partition("#")[0].strip() for line in file.read_text().splitlines())
    return [path for path in (file.parent / name for name in named if name) if path.is_file()]


def _build(folder: Path, files: Sequence[Path]) -> None:
    """Install into a folder beside, then rename: a build cut short leaves nothing that looks finished."""
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
            raise ValueError(f"{FUNCTIONS}: a library is not pure Python, Lambda could not load it: {native}")
        try:
            target.rename(folder)
        except OSError:  # somebody else built the same meanwhile; anything else is still wrong
            if not folder.is_dir():
                raise
