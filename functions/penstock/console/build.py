"""Builds the console into build/web when its sources have changed: `make web`.

    python -m penstock.console.build

Deployments, releases and the local cloud call `built`. What was installed from a wheel has its console built already.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from penstock import sources
from penstock.console import budget, node, packages

Report = Callable[[str], None]

INSTALL = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
"""npm installs what package-lock.json says, if its hashes match, and runs no program of it."""

PATIENCE = ("--fetch-retries=2", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000")
"""npm's own waits are minutes, in which somebody without a network looks at a cloud that does not come up."""

SCRIPTS = ("api", "types")
"""What runs before the build: the client's types from the OpenAPI document, and the check of all types."""

MADE = ("node_modules", "src/api/schema.d.ts")
"""What is in web/ and no source: installed, or made of the OpenAPI document."""

DOCUMENT = "api/openapi.json"
LICENCES = "licences.txt"


class ConsoleError(Exception):
    """The console cannot be built. The message says why; what to do stands behind the last `; `, if anything."""


def main() -> None:
    """Build it, and print how big it is. Exits with a message if it cannot be built, or is too big."""
    try:
        folder = built(lambda line: print(f"- {line}", file=sys.stderr, flush=True))
    except ConsoleError as error:
        sys.exit(str(error))
    print(_sizes().read_text(encoding="utf-8"), folder, sep="\n")


def built(report: Report) -> Path:
    """The folder with the console, which is built before if it is not as its sources. Raises ConsoleError."""
    if sources.IS_INSTALLED:
        return _shipped()
    if not (sources.WEB / "package.json").is_file():
        raise ConsoleError(f"there is no folder {sources.WEB}, of which the console is built; use a whole clone")
    wanted = fingerprint()
    if _stamp() != wanted:
        with _alone():
            if _stamp() != wanted:  # who waited for another finds it built
                _build(wanted, report)
    return sources.CONSOLE


def fingerprint() -> str:
    """A hash over all that the console is made of."""
    digest = hashlib.sha256(node.version().encode() if node.bundled() else b"")
    for name, path in sorted(_made_of().items()):
        digest.update(f"{name}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _made_of() -> Mapping[str, Path]:
    found = {"openapi.json": sources.PACKAGE / DOCUMENT}
    found |= {f"build/{path.name}": path for path in Path(__file__).parent.glob("*.py")}
    for folder, below, files in os.walk(sources.WEB):
        place = Path(folder).relative_to(sources.WEB)
        below[:] = [each for each in below if (place / each).as_posix() not in MADE]
        found |= {(place / each).as_posix(): Path(folder, each) for each in files}
    return {name: path for name, path in found.items() if name not in MADE}


def _shipped() -> Path:
    if not (sources.CONSOLE / "index.html").is_file():
        raise ConsoleError("the installed package was built without the console; install the wheel of a release")
    return sources.CONSOLE


def _note(kind: str) -> Path:
    return sources.CONSOLE.with_name(f"{sources.CONSOLE.name}.{kind}")


def _sizes() -> Path:
    return _note("sizes")


def _stamp() -> str:
    """What the build is made of; nothing if there is none, or it was interrupted."""
    with contextlib.suppress(OSError):
        return _note("made-of").read_text() if (sources.CONSOLE / "index.html").is_file() else ""
    return ""


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Be the only process that builds. Waits for it."""
    sources.BUILT.mkdir(parents=True, exist_ok=True)
    with _note("lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(wanted: str, report: Report) -> None:
    """Build beside, and put it in the former one's place when it is whole and small enough."""
    _install(report)
    report("building the console")
    with tempfile.TemporaryDirectory(dir=sources.BUILT) as beside:
        out = Path(beside) / "web"
        for script in SCRIPTS:
            _npm("run", "--silent", script)
        _npm("run", "--silent", "build", "--", "--manifest", "--emptyOutDir", "--outDir", str(out))
        (out / LICENCES).write_text(packages.licences(sources.WEB), encoding="utf-8")
        parts = budget.parts(out)
        table = budget.table(parts)
        if budget.first_view(parts) > budget.MOST_BYTES:
            raise ConsoleError(f"the console's first view is too big:\n{table}")
        shutil.rmtree(out / budget.MANIFEST.partition("/")[0])
        _sizes().write_text(table, encoding="utf-8")
        _replace(out, wanted)


def _replace(out: Path, wanted: str) -> None:
    _note("made-of").unlink(missing_ok=True)
    shutil.rmtree(sources.CONSOLE, ignore_errors=True)
    out.rename(sources.CONSOLE)
    _note("made-of").write_text(wanted)


def _install(report: Report) -> None:
    """Install what package-lock.json names, unless it is there already."""
    locked = (sources.WEB / packages.LOCKFILE).read_bytes()
    wanted = hashlib.sha256(node.version().encode() + locked if node.bundled() else locked).hexdigest()
    stamp = sources.WEB / "node_modules" / ".installed"
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    report("installing what the console is built with")
    _npm(*INSTALL, *PATIENCE)
    stamp.write_text(wanted)


def _npm(*words: str) -> None:
    """Run npm in web/. Raises ConsoleError with what it said if it fails."""
    program = node.bundled()
    if program is None:
        raise ConsoleError("Node is missing, with which the console is built; pip install 'penstock[deploy]'")
    command = [str(program), str(node.npm(program)), *words]
    path = os.pathsep.join([str(program.parent), os.environ.get("PATH", os.defpath)])
    # As pip and curl do, Node trusts whom the machine trusts, such as a company's proxy.
    trust = {"NODE_USE_SYSTEM_CA": "1"}
    quiet = {"NO_COLOR": "1", "npm_config_update_notifier": "false"}
    environment = {**trust, **os.environ, **quiet, "PATH": path}
    done = subprocess.run(command, cwd=sources.WEB, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-20:])
        raise ConsoleError(f"the console cannot be built: `npm {' '.join(words[:3])}` failed:\n{said}")


if __name__ == "__main__":
    main()
