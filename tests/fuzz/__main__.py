"""`python -m tests.fuzz [--seconds N] [--requests N] [api | readers | READER …]`: what `make test` tries, at length."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from tests.fuzz import api, hunt
from tests.fuzz.targets import READERS, Reader

API, ALL = "api", "readers"
MISSING = "the fuzzer is not here: pip install -r tests/fuzz/requirements.txt (Linux on x86-64, Python 3.11 to 3.13)"


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when nothing was found, 1 when something was, 2 when it could not be looked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("what", nargs="*", metavar="WHAT", help=f"of {', '.join([API, ALL, *READERS])}; default: all")
    parser.add_argument("--seconds", type=int, default=180, help="for each reader; default: 180")
    parser.add_argument(
        "--requests", type=int, default=200, help="right ones and wrong ones, of each operation of the API"
    )
    parser.add_argument("--processes", type=int, default=1, help="for the API; default: 1")
    parser.add_argument("--seed", type=int, default=1, help="default: 1")
    parser.add_argument("--replay", nargs=2, metavar=("READER", "FILE"), help="read one file once")
    given = parser.parse_args(arguments)
    if unknown := set(given.what) - {API, ALL, *READERS}:
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    if given.replay:
        READERS[given.replay[0]].read()(Path(given.replay[1]).read_bytes())
        return 0
    wanted = given.what or [API, ALL]
    readers = [reader for name, reader in READERS.items() if name in wanted or ALL in wanted]
    if readers and find_spec("atheris") is None:
        print(MISSING, file=sys.stderr)
        return 2
    found = api.everything(given.requests, given.seed, given.processes) if API in wanted else 0
    return 1 if found + hunted(readers, given.seconds, given.seed) else 0


def hunted(readers: Sequence[Reader], seconds: int, seed: int) -> int:
    """Hunt in each reader. Returns in how many something was found."""
    found = 0
    for reader in readers:
        outcome = hunt.hunt(reader, seconds, seed)
        print(outcome, flush=True)
        found += outcome.found is not None
    return found


if __name__ == "__main__":
    sys.exit(main())
