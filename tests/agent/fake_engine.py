"""Stands in for the command of a container engine, for what a real one does not do when it is asked to.

It keeps containers and networks as files: <folder>/container/NAME has a state, <folder>/network/NAME is there. A file
<folder>/fails/WORD has what it says when it fails at the command WORD. <folder>/calls has its calls, as JSON. With a
file <folder>/unbounded it ignores how much memory a container may have.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

PROGRAM = """#!{python}
import sys
sys.path.insert(0, {tests!r})
from tests.agent.fake_engine import main
sys.exit(main({folder!r}, sys.argv[1:]))
"""


class FakeEngine:
    """The engine as a test sees it."""

    def __init__(self, folder: Path, name: str = "podman") -> None:
        self.folder, self.program = folder, folder / name
        for each in ("container", "network", "fails"):
            (folder / each).mkdir(parents=True)
        tests = str(Path(__file__).parents[2])
        self.program.write_text(PROGRAM.format(python=sys.executable, tests=tests, folder=str(folder)))
        self.program.chmod(0o755)

    def fail(self, word: str, text: str) -> None:
        """Have a command fail from here on."""
        (self.folder / "fails" / word).write_text(text)

    def mend(self, word: str) -> None:
        (self.folder / "fails" / word).unlink()

    def states(self) -> dict[str, str]:
        """The containers and their states."""
        return {path.name: path.read_text() for path in (self.folder / "container").iterdir()}

    def put(self, name: str, state: str) -> None:
        (self.folder / "container" / name).write_text(state)

    def networks(self) -> set[str]:
        return {path.name for path in (self.folder / "network").iterdir()}

    def calls(self, word: str) -> list[list[str]]:
        """The calls of one command, in order."""
        path = self.folder / "calls"
        made = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [call for call in made if call[0] == word]


def main(folder: str, words: list[str]) -> int:
    """Do what a command asks for."""
    home = Path(folder)
    with open(home / "calls", "a") as file:
        file.write(json.dumps(words) + "\n")
    failing = home / "fails" / words[0]
    if failing.exists():
        print(failing.read_text(), file=sys.stderr)
        return 125
    name = Path(sys.argv[0]).name
    if words[0] == "--version":
        print(f"{name} version 5.0")
    elif words[0] == "network":
        return network(home / "network", words[1:])
    else:
        return container(home / "container", words)
    return 0


def network(home: Path, words: list[str]) -> int:
    if words[0] == "ls":
        print("\n".join(path.name for path in home.iterdir()))
    elif words[0] == "create":
        (home / words[-1]).touch()
    else:
        (home / words[-1]).unlink()
    return 0


def container(home: Path, words: list[str]) -> int:
    path = home / words[-1]
    if words[0] == "create":
        (home / words[words.index("--name") + 1]).write_text("created")
    elif words[0] == "ps":
        print("\n".join(each.name for each in home.iterdir()))
    elif words[0] == "container":
        if not path.exists():
            print("no such container", file=sys.stderr)
            return 125
        bound = 0 if (home.parent / "unbounded").exists() else 1 << 27
        print(bound if "{{.HostConfig.Memory}}" in words else f"{path.read_text()} 0 3")
    elif words[0] in ("start", "stop"):
        path.write_text("running" if words[0] == "start" else "exited")
    elif words[0] == "rm":
        path.unlink()
    elif words[0] == "cp":
        sys.stdin.buffer.read()
    elif words[0] == "logs":
        print("giving up", file=sys.stderr)
    return 0
