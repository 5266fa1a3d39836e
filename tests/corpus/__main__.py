"""`python -m tests.corpus DIR…`: read every version of every job file in some git directories, and compare.

DIR is a git directory, or a folder of them (owner+name/…). With --keep the table is written anew; without it, what is
not as in the table is told. Exits with 1 for a difference.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.corpus import blobs, table


def main(words: list[str]) -> int:
    """Return the exit code."""
    folders = [Path(word) for word in words if word != "--keep"]
    if not folders:
        print(__doc__, file=sys.stderr)
        return 2
    found = blobs.distinct(each for folder in folders for each in blobs.git_directories(folder))
    lines, differences = table.judged(found)
    for difference in differences:
        print(difference)
    print(f"{len(lines)} contents of {len({line.repository for line in lines})} repositories")
    for rule, many in table.counts(lines).most_common():
        print(f"{many:6} {rule}")
    if "--keep" in words:
        table.keep(lines)
        return bool(differences)
    told = {line.sha256: line for line in table.kept()}
    other = [line for line in lines if line.sha256 in told and _said(line) != _said(told[line.sha256])]
    new = sum(line.sha256 not in told for line in lines)
    print(f"{len(differences)} differences; {len(other)} not as in the table; {new} not in the table")
    return bool(differences or other)


def _said(line: table.Line) -> tuple[str, str]:
    return line.verdict, line.parse


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
