"""`python -m tests.fuzz.guided READER FOLDER …`: one reader under atheris, in a process of its own.

What comes after the reader's name is libFuzzer's: folders, the first of which it keeps what is new in, and options.
"""

from __future__ import annotations

import contextlib
import os
import sys

import atheris

from tests.fuzz.targets import READERS


def main(words: list[str]) -> None:
    """Run until the time is over, or something is found."""
    reader = READERS[words[0]]
    sees = atheris.instrument_imports(include=list(reader.sees), enable_loader_override=False)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere), sees:  # it names each module it sees
        read = reader.read()
    atheris.Setup([sys.argv[0], *words[1:]], read)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
