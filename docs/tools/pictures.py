"""Makes the pictures of the terminal and of the console in the documentation: `make pictures`, into docs/pictures.

The commands run as a reader would run them, at a terminal of 100 columns, against a cloud on this machine that starts
for this and is taken down at the end. docs/tools/console.py makes the pictures of the console.
"""

from __future__ import annotations

import os
import pty
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console as Recorder
from rich.text import Text

from docs.tools import console
from docs.tools.cloud import COLUMNS, PENSTOCK, Around, cloud, says, until

FOLDER = Path(__file__).parents[1] / "pictures"

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
    terminal(folder)
    console.main(folder)


def terminal(folder: Path) -> None:
    """The pictures of the terminal."""
    with cloud() as around:
        files = {"flash.sh": FLASH, "build.sh": BUILD, "wrong.sh": WRONG}
        for name, text in files.items():
            (Path(around["HOME"]) / name).write_text(text, encoding="utf-8")
        built = says(around, "job run build.sh --no-wait")
        holds = says(around, "job run flash.sh --no-wait")
        until(around, holds, "running")
        until(around, built, "settled")
        waits = says(around, "job run flash.sh --no-wait")
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


def _picture(around: Around, name: str, command: str) -> str:
    """What a command shows at a terminal, as SVG."""
    ours, theirs = pty.openpty()
    words = [PENSTOCK, *shlex.split(command)]
    child = subprocess.Popen(words, env=around, cwd=around["HOME"], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b"".join(_read(ours)).decode().replace("\r\n", "\n").rstrip("\n")
    child.wait()
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        recorder = Recorder(record=True, width=COLUMNS, file=nowhere, force_terminal=True, color_system="truecolor")
        recorder.print(Text.assemble(("$ ", "dim"), f"penstock {command}"))
        recorder.print(Text.from_ansi(shown), soft_wrap=False)
        return recorder.export_svg(title="penstock", code_format=FORMAT, unique_id=name)


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
