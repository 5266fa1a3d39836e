"""Compiled modules for what is uploaded. Without them each new process of a function would compile all that it imports:
on Lambda the code is on a read-only file system, so nothing that a process compiles is kept.

The version of Python that runs the functions must compile them, because another version ignores what this one wrote.
Where it is not installed, the functions are deployed without compiled modules, and the deployment warns.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

VERSION = "3.13"
"""Of the Python that runs the functions."""

MAGIC = 3571
"""The number of its bytecode, the same in every release of that version. Source: CPython, pycore_magic_number.h."""

SHOW_MAGIC = "from importlib.util import MAGIC_NUMBER; print(int.from_bytes(MAGIC_NUMBER[:2], 'little'))"

WARNING = (
    f"python{VERSION} was not found, so the functions are deployed without compiled modules: they work, but every cold "
    f"start takes about twice as long. Put python{VERSION} on PATH, and deploy again."
)


@cache
def compiler() -> str | None:
    """The program that compiles for the functions: this Python, one on PATH, or one of pyenv; None if there is none."""
    return next((each for each in _candidates() if _magic(each) == MAGIC), None)


def compile_folder(folder: Path, where: str) -> None:
    """Compile all modules of a folder, which will be at `where`, if there is a compiler.

    The compiled modules name the hash of their source and are not compared with it ("unchecked-hash"). Otherwise they
    would name the time of its last change, and archives do not keep that: the CDK sets all times in a zip to 1980.
    """
    program = compiler()
    if program:
        options = ["-q", "--invalidation-mode", "unchecked-hash", "-s", ".", "-p", where, "."]
        subprocess.run([program, "-I", "-m", "compileall", *options], cwd=folder, check=True)


def _candidates() -> Iterator[str]:
    yield sys.executable
    found = shutil.which(f"python{VERSION}")
    if found:
        yield found
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(map(str, pyenv.glob(f"versions/{VERSION}.*/bin/python")))


def _magic(program: str) -> int | None:
    """The number of a Python's bytecode; None if it does not run, as pyenv's stand-ins for what is not chosen."""
    done = subprocess.run([program, "-I", "-c", SHOW_MAGIC], capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 else None
