"""Where the files of the stack are: in a clone, or in the installed package, into which setup.py copied them.

ROOT/app.py, cdk.json    the stack's program and its flags
ROOT/infra               the stack
ROOT/functions           the functions' handlers, and what their layer has
ROOT/examples/site.toml  the site of a new local cloud
ROOT/web                 what the console is built of: only in a clone
CONSOLE                  the console as it was built: penstock/console
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import platformdirs

PACKAGE = Path(__file__).parent
"""Penstock's own package, wherever it is installed."""

COPIED = "_sources"
"""The folder in the installed package that has what a clone has beside it."""

IS_INSTALLED = (PACKAGE / COPIED).is_dir()
ROOT = PACKAGE / COPIED if IS_INSTALLED else PACKAGE.parents[1]
FUNCTIONS = ROOT / "functions"
SITE = ROOT / "examples" / "site.toml"

BUILT = platformdirs.user_cache_path("penstock") if IS_INSTALLED else ROOT / "build"
"""Where what is made of them is kept, so that the same is not made twice. All of it may be deleted."""

WEB = ROOT / "web"
CONSOLE = ROOT / "console" if IS_INSTALLED else BUILT / "web"


def shipped() -> Mapping[str, Path]:
    """All modules and data of the functions, by their names in a function's code. Not all are needed there."""
    package = {f"{PACKAGE.name}/{name}": path for name, path in _below(PACKAGE).items()}
    return {path.name: path for path in FUNCTIONS.glob("*.py")} | package


def _below(package: Path) -> Mapping[str, Path]:
    found = {path.relative_to(package): path for path in sorted(package.rglob("*")) if path.suffix in (".py", ".json")}
    return {name.as_posix(): path for name, path in found.items() if name.parts[0] != COPIED}
