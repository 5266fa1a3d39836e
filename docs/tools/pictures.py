"""Makes the pictures of the terminal in the documentation: `make pictures`, into docs/pictures.

The commands run as a reader would run them, at a terminal of 100 columns, against a cloud on this machine that starts
for this and is taken down at the end.
"""

from __future__ import annotations

import os
import pty
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

FOLDER = Path(__file__).parents[1] / "pictures"
PENSTOCK = str(Path(sys.executable).with_name("penstock"))
COLUMNS = 100
PATIENCE = 60.0
"""Seconds until a job has started."""

FORMAT = CONSOLE_SVG_FORMAT[: CONSOLE_SVG_FORMAT.index("    @font-face")] + CONSOLE_SVG_FORMAT[
    CONSOLE_SVG_FORMAT.index("    .{unique_id}-matrix") :
].replace("Fira Code, monospace", "ui-monospace, Menlo, Consolas, monospace")
"""Rich's picture of a terminal, with a font of the reader's machine: the picture asks no server for one."""

FLASH = """#!/bin/bash
#: name = "flash"
#: variety = "basic"
#: resources = ["bench"]
echo "flashing $(bmat resource get bench name)"
sleep 600
"""
BUILD = """#!/bin/bash
#: name = "build"
#: variety = "basic"
#: output_rules = ["=/work/report.txt"]
echo "compiling 214 files"
echo done > "$PENSTOCK_WORK/report.txt"
"""
WRONG = """#!/bin/bash
#: name = "build"
#: variety = "basic"
#: resorces = ["bench"]
make
"""


def main(folder: Path = FOLDER) -> None:
    """Make all pictures in a folder."""
    with tempfile.TemporaryDirectory() as home, _cloud(Path(home)) as around:
        files = {"flash.sh": FLASH, "build.sh": BUILD, "wrong.sh": WRONG}
        for name, text in files.items():
            (Path(home) / name).write_text(text, encoding="utf-8")
        built = _says(around, "job run build.sh --no-wait")
        holds = _says(around, "job run flash.sh --no-wait")
        _until(around, holds, "running")
        _until(around, built, "settled")
        waits = _says(around, "job run flash.sh --no-wait")
        scenes = {
            "lint": "job lint wrong.sh",
            "list": "job list",
            "tail": f"job tail {built} --no-follow",
            "why": f"job why {waits}",
            "pool": "pool show resource/bench",
        }
        for name, command in scenes.items():
            (folder / f"{name}.svg").write_text(_picture(around, name, command), encoding="utf-8")
            print(folder / f"{name}.svg")


@contextmanager
def _cloud(home: Path) -> Iterator[Mapping[str, str]]:
    """A cloud on this machine, and the environment in which commands find it and nothing else."""
    around = {"HOME": str(home), "PATH": os.environ["PATH"], "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    _says(around, f"local up --detach --port {_free_port()}")
    try:
        yield around
    finally:
        _says(around, "local down")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _says(around: Mapping[str, str], command: str) -> str:
    """What a command prints. Raises CalledProcessError when it fails."""
    words = [PENSTOCK, *shlex.split(command)]
    done = subprocess.run(words, env=around, cwd=around["HOME"], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def _until(around: Mapping[str, str], job: str, state: str) -> None:
    """Wait until a job is in a state. Raises TimeoutError."""
    end = time.monotonic() + PATIENCE
    while f'"state": "{state}"' not in _says(around, f"job show {job} --json"):
        if time.monotonic() > end:
            raise TimeoutError(f"job {job} is not {state} after {PATIENCE:.0f} s")
        time.sleep(0.5)


def _picture(around: Mapping[str, str], name: str, command: str) -> str:
    """What a command shows at a terminal, as SVG."""
    ours, theirs = pty.openpty()
    words = [PENSTOCK, *shlex.split(command)]
    child = subprocess.Popen(words, env=around, cwd=around["HOME"], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b"".join(_read(ours)).decode().replace("\r\n", "\n").rstrip("\n")
    child.wait()
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True, color_system="truecolor")
        console.print(Text.assemble(("$ ", "dim"), f"penstock {command}"))
        console.print(Text.from_ansi(shown), soft_wrap=False)
        return console.export_svg(title="penstock", code_format=FORMAT, unique_id=name)


def _read(terminal: int) -> Iterator[bytes]:
    """What is written to a pseudo terminal, until the last process that has it ends."""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # Linux says so instead of an empty read
            part = b""
        if not part:
            os.close(terminal)
            return
        yield part


if __name__ == "__main__":
    main()
