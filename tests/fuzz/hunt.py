"""Runs a reader under the fuzzer, and reads what that says: how often it ran, what it reached, what it found."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.targets import Reader

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "build" / "fuzz"
CORPUS = Path(__file__).parent / "corpus"
SLOWEST = 20
"""Seconds after which one input has taken too long, on a machine with much else to do."""

MEMORY = 1024
"""How many MB a reader may come to have."""

WORD = re.compile(rb"[A-Za-z_][A-Za-z0-9_./-]{2,40}")
REACHED = re.compile(r"#(\d+)\s+\w+\s+cov: (\d+)")


@dataclass(frozen=True)
class Outcome:
    """What came of a run: how many inputs were tried, how many edges they reached, and what was found where."""

    reader: str
    tried: int
    edges: int
    found: Path | None
    said: str

    def __str__(self) -> str:
        line = f"{self.reader}: {self.tried} executions, {self.edges} edges"
        if self.found is None:
            return f"{line}, nothing found"
        again = f"again: python -m tests.fuzz --replay {self.reader} {self.found}"
        return f"{line}, FOUND {self.found}\n{self.said}\n{again}"


def hunt(reader: Reader, seconds: int, seed: int) -> Outcome:
    """Try a reader for so long, or until something is found. What is new to it is kept in build/, and begun with."""
    folder = KEPT / reader.name
    kept, begins, found = folder / "kept", folder / "begins", folder / "found"
    for each in (kept, begins, found):
        each.mkdir(parents=True, exist_ok=True)
    before = set(found.iterdir())
    inputs = [*reader.begins(), *regressions(reader.name)]
    for content in inputs:
        (begins / hashlib.sha256(content).hexdigest()[:16]).write_bytes(content)
    words = folder / "words"
    words.write_text(_words(inputs))
    options = {
        "artifact_prefix": f"{found}/", "dict": words, "max_len": reader.most, "max_total_time": seconds, "seed": seed,
        "timeout": SLOWEST, "rss_limit_mb": MEMORY,
    }  # fmt: skip
    asked = [f"-{name}={value}" for name, value in options.items()]
    command = [sys.executable, "-m", "tests.fuzz.guided", reader.name, str(kept), str(begins), *asked]
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="penstock-fuzz-", dir=memory) as place:
        ran = subprocess.run(command, cwd=ROOT, env={**os.environ, "TMPDIR": place}, capture_output=True, check=False)
    said = (ran.stdout + ran.stderr).decode("utf-8", "replace")
    fresh = sorted(set(found.iterdir()) - before)
    if ran.returncode and not fresh:
        raise RuntimeError(f"{reader.name} did not run:\n{said[-4000:]}")
    counts = REACHED.findall(said) or [("0", "0")]
    return Outcome(
        reader.name, max(int(tried) for tried, _ in counts), int(counts[-1][1]), fresh[0] if fresh else None, _why(said)
    )


def regressions(name: str) -> list[bytes]:
    """What was found once, and is mended."""
    return [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]


def _words(inputs: Iterable[bytes]) -> str:
    """What the inputs are made of, as libFuzzer wants to be told it."""
    words = {word for content in inputs for word in WORD.findall(content)}
    return "".join(f"{json.dumps(word.decode())}\n" for word in sorted(words))


def _why(said: str) -> str:
    """The exception that ended it, with where it was raised."""
    parts = [part for part in (" === Uncaught", "ERROR: libFuzzer") if part in said]
    return said[said.find(parts[0]) :][:3000] if parts else ""
