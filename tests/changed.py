"""Prints the tests that are nearest to what changed since main, for `make quick`.

Those are: each test file that changed; and for each changed module of ours, the tests named after it or after its
package (`penstock/agent/bmat/usage.py`: `tests/agent/bmat/test_usage.py`, `tests/agent/test_bmat.py`), then those that
import it. At most MOST files; stderr says how many more there are. Tests of the domain run anyway, and are left out.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath

MOST = 5
SOURCES = (PurePath("functions"), PurePath())
ALWAYS = ("tests/domain/", "tests/jobfile/")


def main() -> None:
    """Print the files, one a line."""
    found = [str(path) for path in select(changed(), sorted(Path("tests").rglob("test_*.py")))]
    chosen = [path for path in found if not path.startswith(ALWAYS)]
    if len(chosen) > MOST:
        print(f"{len(chosen)} test files belong to what changed; only the nearest {MOST} run", file=sys.stderr)
    print("\n".join(chosen[:MOST]))


def changed() -> list[str]:
    """Return the Python files that differ from where this branch left main, untracked ones too."""
    base = _git("merge-base", "HEAD", "main") or ["HEAD"]
    found = _git("diff", "--name-only", "--diff-filter=d", base[0]) + _git("ls-files", "--others", "--exclude-standard")
    return sorted({path for path in found if path.endswith(".py")})


def _git(*words: str) -> list[str]:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=False).stdout.split()


def select(paths: Iterable[str], tests: list[Path]) -> list[Path]:
    """Return the tests of changed files, the nearest first."""
    paths = list(paths)
    modules = {module for path in paths for module in [module_of(PurePath(path))]}
    itself = [test for test in tests if str(test) in paths]
    named = [test for test in tests if any(is_named_after(test, module) for module in modules)]
    importing = [test for test in tests if modules.intersection(imports(test.read_text()))]
    return list(dict.fromkeys([*itself, *named, *importing]))


def module_of(path: PurePath) -> str:
    """Return the name by which a file is imported."""
    within = next(path.relative_to(source) for source in SOURCES if path.is_relative_to(source))
    return ".".join(part for part in within.with_suffix("").parts if part != "__init__")


def is_named_after(test: Path, module: str) -> bool:
    """Tell whether a test has the name of a module, or of the package that the module is in.

    Tests stand in the folder of the layer: tests/usecases/test_hosts.py is named after usecases/workers/hosts.py.
    """
    name = ".".join((*test.parts[1:-1], test.stem.removeprefix("test_")))
    own = module.removeprefix("penstock.")
    return name in (own, own.rpartition(".")[0], f"{own.partition('.')[0]}.{own.rpartition('.')[2]}")


def imports(source: str) -> Iterator[str]:
    """Yield the names that a module imports, wherever it does."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)


if __name__ == "__main__":
    main()
