"""What pyproject.toml cannot say: the version is that of the tag; packages have the stack's sources, and the console.

The console is not built here: `make web` and `make release` do. A package that is made without it says so when it is
asked for it.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from infra import version  # noqa: E402

COPIED = "penstock/_sources"
"""The folder that penstock/sources.py looks for."""

FILES = (
    "app.py",
    "cdk.json",
    "examples/site.toml",
    "infra/*.py",
    "functions/*.py",
    "functions/*.txt",
    "functions/*.json",
)

BUILT, CONSOLE = "build/web", "console"
"""The folder of the built console in a clone or a source archive, and below COPIED."""


class BuildWithSources(build_py):
    """Copies what `penstock deploy` and `penstock local up` need of a clone, except where the clone itself is used."""

    editable_mode: bool

    def run(self) -> None:
        super().run()
        for name, path in {} if self.editable_mode else _copied().items():
            target = Path(self.build_lib, COPIED, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        found: Any = super().get_outputs(include_bytecode)
        return [*found, *(str(Path(self.build_lib, COPIED, name)) for name in _copied())]


class ArchiveWithConsole(sdist):
    """Adds the built console, which is in a folder that setuptools takes for its own and leaves out."""

    def make_release_tree(self, base_dir: str, files: Any) -> None:
        super().make_release_tree(base_dir, files)
        for path in _console():
            target = Path(base_dir, path.relative_to(HERE))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def _console() -> list[Path]:
    return sorted(path for path in (HERE / BUILT).rglob("*") if path.is_file())


def _copied() -> dict[str, Path]:
    """What is below COPIED in a wheel, by its name there."""
    found = {path.relative_to(HERE).as_posix(): path for pattern in FILES for path in sorted(HERE.glob(pattern))}
    return found | {f"{CONSOLE}/{path.relative_to(HERE / BUILT).as_posix()}": path for path in _console()}


setup(version=version.current(), cmdclass={"build_py": BuildWithSources, "sdist": ArchiveWithConsole})
