"""What reading a request costs with each library that could read it: to import it, the first request, and each after.

    python -m tests.figures.parsing      all of them, in processes of their own, taken in turns
    python -m tests.figures.parsing msgspec

msgspec and pydantic are not among what is installed: `pip install -r tests/figures/requirements.txt`.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from tests.figures.report import table

REQUEST = json.dumps(
    {
        "script": "#!/bin/sh\necho hello\n",
        "resources": ["bench"],
        "tags": {"branch": "main"},
        "env": {"LANG": "C"},
        "priority": 3,
        "inputs": ["data"],
    }
)
ROUNDS = 5
EACH = 200
"""How many requests the time of each is the mean of."""


def with_cattrs() -> Callable[[str], Any]:
    """As the service does: strict hooks, every error by its place, unknown keys with a guess."""
    from penstock.api import body
    from penstock.domain.commands import SubmitJob

    return lambda raw: body.parse(SubmitJob, raw)


def with_msgspec() -> Callable[[str], Any]:
    """It knows neither our bounds nor unknown keys of dataclasses, and names one error only."""
    import msgspec

    from penstock.domain.commands import SubmitJob

    return lambda raw: msgspec.json.decode(raw, type=SubmitJob)


def with_pydantic() -> Callable[[str], Any]:
    """As Powertools validates, once it is switched on: by pydantic's type adapters."""
    from pydantic import TypeAdapter

    from penstock.domain.commands import SubmitJob

    adapters: list[TypeAdapter[SubmitJob]] = []

    def parse(raw: str) -> SubmitJob:
        if not adapters:
            adapters.append(TypeAdapter(SubmitJob))
        return adapters[0].validate_json(raw)

    return parse


LIBRARIES = {
    "cattrs": (with_cattrs, ("cattrs", "cattrs.gen")),
    "msgspec": (with_msgspec, ("msgspec",)),
    "pydantic": (with_pydantic, ("pydantic",)),
}


def measure(name: str) -> tuple[float, float, float]:
    """CPU milliseconds to import a library and for the first request, and microseconds for each after it.

    What the API imports anyway is imported before, and cattrs with it: its import costs nothing here.
    """
    import penstock.aws.dynamodb  # noqa: F401
    from penstock.api import app as routes  # noqa: F401

    make, modules = LIBRARIES[name]
    begun = time.process_time()
    for module in modules:
        __import__(module)
    imported = time.process_time()
    parse = make()
    parse(REQUEST)
    first = time.process_time()
    for _ in range(EACH):
        parse(REQUEST)
    done = time.process_time()
    return 1e3 * (imported - begun), 1e3 * (first - imported), 1e6 * (done - first) / EACH


def size(name: str) -> str:
    """Whether a library has compiled parts, which the layer of the functions refuses."""
    from importlib.metadata import files

    packages = {"pydantic": ("pydantic", "pydantic-core")}.get(name, (name,))
    found = [each for package in packages for each in files(package) or ()]
    return "yes" if any(each.suffix == ".so" for each in found) else "no"


def run(name: str) -> tuple[float, ...]:
    """One measurement in a process of its own."""
    done = subprocess.run([sys.executable, "-m", "tests.figures.parsing", name], stdout=subprocess.PIPE, check=True)
    return tuple(json.loads(done.stdout))


def tell() -> None:
    """Print the medians, taken in turns so that what else the machine does falls on all alike."""
    there = [name for name in LIBRARIES if find_spec(name)]
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in there}
    for _ in range(ROUNDS):
        for name in there:
            found[name].append(run(name))
    rows = [
        (name, *(round(statistics.median(each), 2) for each in zip(*found[name], strict=True)), size(name))
        for name in there
    ]
    heads = ("library", "import, ms", "first request, ms", "each after, µs", "compiled parts")
    table("Reading a request, by library", heads, rows)
    for name in LIBRARIES.keys() - there:
        print(f"{name} is not installed: pip install -r tests/figures/requirements.txt")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
    else:
        tell()
