"""What pyproject.toml cannot say: the version is that of the tag, and a wheel has the stack's sources."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.build_py import build_py

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


class BuildWithSources(build_py):
    """Copies what `penstock deploy` and `penstock local up` need of a clone, except where the clone itself is used."""

    editable_mode: bool

    def run(self) -> None:
        super().run()
        for path in () if self.editable_mode else _copied():
            target = Path(self.build_lib, COPIED, path.relative_to(HERE))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        found: Any = super().get_outputs(include_bytecode)
        return [*found, *(str(Path(self.build_lib, COPIED, path.relative_to(HERE))) for path in _copied())]


def _copied() -> list[Path]:
    return sorted(path for pattern in FILES for path in HERE.glob(pattern))


setup(version=version.current(), cmdclass={"build_py": BuildWithSources})
