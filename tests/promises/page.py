"""Writes docs/promises.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from tests.promises import find
from tests.promises.find import Figures, Place

HEAD = """\
# The promises

Made by `PYTHONPATH=functions:. python -m tests.promises > docs/promises.md`; a test fails when it is stale, or when a
promise has no code or no test. The sentences are in `tests/promises/promises.toml`; who keeps a promise names its label
in a docstring, and so does a test that fails without it.

The figures are of the last `make mutate`, which drops and weakens every named condition of what carries the label and
looks whether a test notices (docs/decisions/named-conditions.md). `tests/mutants.json` says which test that was;
`tests/mutate/equivalent.toml`, why the mutants that nobody can notice are the same as what they were made of. Each that
is not noticed yet wants a test, or a reason; `python -m tests.mutate --open` tries them again and shows them.
"""


def page() -> str:
    """The whole document."""
    figures = find.figures()
    columns = {
        "Kept by": find.code(),
        "Tests": find.tests(),
        "Model": find.model(),
        "Simulation": find.watchers("simulation"),
        "Crash sweep": find.watchers("tests/crash"),
    }
    lines = [HEAD, "| promise | mutants | noticed | equivalent | not noticed yet |", "|---|---|---|---|---|"]
    for label in find.PROMISES:
        lines.append(f"| [{label}](#{label.lower()}) | {_row(figures.get(label))} |")
    lines += [f"| all that is mutated | {_row(figures[''])} |", ""]
    for label, says in find.PROMISES.items():
        lines += [f"## {label}", "", f"**{says[0].upper()}{says[1:]}.**", ""]
        if label in find.NOT_YET:
            lines += [f"Not yet: {find.NOT_YET[label]}.", ""]
            continue
        lines += [line for name, found in columns.items() for line in _listed(name, found.get(label, []))] + [""]
    return "\n".join(lines).rstrip() + "\n"


def _row(figures: Figures | None) -> str:
    return (
        "not yet | | | "
        if figures is None
        else f"{figures.mutants} | {figures.noticed} | {figures.equivalent} | {figures.open}"
    )


def _listed(name: str, places: Sequence[Place]) -> Iterator[str]:
    if places:
        yield f"- {name}: " + "; ".join(
            _file(path, list(some)) for path, some in groupby(places, lambda place: place[0])
        )


def _file(path: str, places: Iterable[Place]) -> str:
    names = [f"`{name}`" for _, name in places if name]
    whole = ["all of it"] * (len(names) > 0 and any(not name for _, name in places))
    return f"[{path}](../{path}) {', '.join([*names, *whole])}".rstrip()
