"""The verdict on every job file that was found, by the digest of its content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from pathlib import Path

from tests.corpus import oracle, ours
from tests.corpus.blobs import Blob

TABLE = Path(__file__).with_name("table.tsv")


@dataclass(frozen=True, order=True)
class Line:
    """One content. `verdict` is "accepted" or the rule that refuses it; `parse` the digest of what it says, or "-"."""

    repository: str
    path: str
    sha256: str
    verdict: str
    parse: str


def judged(blobs: Iterable[Blob]) -> tuple[list[Line], list[str]]:
    """What the rules say of each, and where we say something else."""
    lines, differences = [], []
    for blob in blobs:
        asked = oracle.read(blob.data)
        found, rules = ours.read(blob.data)
        lines.append(Line(blob.repository, blob.path, blob.sha256, asked.rule, asked.digest))
        if not ours.agree(asked, found, rules):
            said = ", ".join(sorted(rules)) or f"another parse, {found.digest}"
            differences.append(f"{blob.repository} {blob.path} {blob.sha256}: {asked.rule} by the rules; we: {said}")
    return lines, differences


def kept() -> list[Line]:
    """The table that is kept."""
    return [Line(*line.split("\t")) for line in TABLE.read_text(encoding="utf-8").splitlines()]


def keep(lines: Iterable[Line]) -> None:
    """Keep this table in its place."""
    TABLE.write_text("".join("\t".join(astuple(line)) + "\n" for line in lines), encoding="utf-8")


def counts(lines: Iterable[Line]) -> Counter[str]:
    """How many there are of each verdict."""
    return Counter(line.verdict for line in lines)
