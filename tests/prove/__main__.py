"""`make prove`: run the long proofs. Ended before its end, it goes on where it was, as long as the code is the same.

    export PYTHONPATH=functions:.
    python -m tests.prove [--list] [--again] [--processes N] [PART ...]

Each piece leaves its output in build/prove. A part of which all pieces passed goes into tests/prove/record.toml, and a
piece of any other into tests/prove/begun.toml, unless something in the working tree is not committed. Whoever commits
these can go on elsewhere. docs/internals/promises.md shows the record.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Lock

from tests.prove import parts, proved
from tests.prove.parts import Part
from tests.prove.proved import Begun, Outputs, Pieces, Proved


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when all that was asked for has passed, 1 when something failed, 2 for a part that does not exist."""
    known = parts.load()
    parser = _parser(list(known))
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.parts if name not in known]:
        parser.error(f"there is no {unknown[0]}; there are {', '.join(known)}")
    wanted = [known[name] for name in given.parts or known]
    if given.list:
        print("\n".join(_lines(wanted)))
        return 0
    head = proved.commit()
    outputs = Outputs(head)
    failed = [part.name for part in wanted if not _prove(part, outputs, head, given.processes, given.again)]
    without = f": not {', '.join(failed)}" if failed else ""
    print(f"prove: {len(wanted) - len(failed)} of {len(wanted)} parts passed{without}")
    return int(bool(failed))


def _lines(wanted: Sequence[Part]) -> list[str]:
    return [f"{part.name:<12} {len(part.pieces):>3}  {_standing(part):<47}  {part.says}" for part in wanted]


def _standing(part: Part) -> str:
    code, whole, begun = proved.code(part.of), proved.read().get(part.name), proved.read_begun().get(part.name)
    if begun and begun.code == code:
        return f"{len(begun.pieces)} passed with this code"
    return whole.standing(code, part.of) if whole else "not yet passed"


def _parser(names: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.prove", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(names))
    parser.add_argument(
        "--list",
        action="store_true",
        help="run nothing; say what there is, in how many pieces, and whether it passed with the code as it is now",
    )
    parser.add_argument("--again", action="store_true", help="run what has passed with this code again")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="at once (2)")
    return parser


def _prove(part: Part, outputs: Outputs, head: str, processes: int, again: bool) -> bool:
    """Run what is missing of a part, and record the part if nothing is missing then."""
    code = proved.code(part.of, head) if head.isalnum() else ""  # what is not committed is not recorded
    if again:
        outputs.forget(part)
        _note(part, code, {})
    elif _is_whole(part, code):
        print(f"{part.name}: passed whole before, with this code", flush=True)
        return True
    passed = _passed(part, outputs, code)
    missing = [piece for piece in part.pieces if piece not in passed]

    def run(at: int) -> None:
        piece = missing[at]
        _run(part, piece, outputs, processes, f"{part.name} {piece}".strip(), f"{at + 1} of {len(missing)}")
        with ONE_AT_A_TIME:
            _note(part, code, _passed(part, outputs, code))

    with ThreadPoolExecutor(1 if part.is_parallel else processes) as pool:
        list(pool.map(run, range(len(missing))))  # it waits for all, and who interrupts it starts no more
    passed = _passed(part, outputs, code)
    if len(passed) < len(part.pieces):
        return False
    _record(part, head, code, parts.figures(passed.values()))
    return True


ONE_AT_A_TIME = Lock()


def _is_whole(part: Part, code: str) -> bool:
    """Whether all of a part passed with this code."""
    found = proved.read().get(part.name)
    return bool(code and found and found.code == code)


def _passed(part: Part, outputs: Outputs, code: str) -> Pieces:
    """The pieces that passed here on this commit, or anywhere with this code."""
    begun = proved.read_begun().get(part.name)
    found = {**(begun.pieces if begun and begun.code == code else {}), **outputs.counted(part)}
    return {piece: found[piece] for piece in part.pieces if piece in found}


def _note(part: Part, code: str, passed: Pieces) -> None:
    """Note what passed of a part, so that it goes on there on another machine, too."""
    if code:
        others = {name: begun for name, begun in proved.read_begun().items() if name != part.name}
        proved.write_begun(others | ({part.name: Begun(code, passed)} if passed else {}))


def _record(part: Part, head: str, code: str, figures: str) -> None:
    print(f"{part.name}: passed whole, {figures}", flush=True)
    if code:
        found = Proved(head, datetime.now(UTC).date().isoformat(), figures, code)
        proved.write(proved.read() | {part.name: found})
        _note(part, code, {})


def _run(part: Part, piece: str, outputs: Outputs, processes: int, name: str, place: str) -> None:
    print(f"{name} ({place}) ...", flush=True)
    log, since = outputs.running(part, piece), time.monotonic()
    with log.open("w") as output:
        command = [sys.executable, *part.command(piece, processes)]
        code = subprocess.call(command, stdout=output, stderr=subprocess.STDOUT, env=os.environ | part.env)
    if code == 0:
        log.rename(outputs.passed(part, piece))
    said = "passed" if code == 0 else f"FAILED with {code}, see {log}"
    print(f"{name}: {said} after {time.monotonic() - since:.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
