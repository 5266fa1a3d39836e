"""Writes docs/internals/promises.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from tests.promises import find, leaks
from tests.promises.find import Figures, Place
from tests.prove import parts, proved

HEAD = """\
# The promises

These are the sentences that Penstock keeps, whatever fails, with the code that keeps each and the tests that fail
without that code. Each promise has a label, such as SLOT-1, which other pages use. Code that keeps a promise names its
label in a docstring, and so does each test of it.

`PYTHONPATH=functions:. python -m tests.promises > docs/internals/promises.md` generates this page from
`tests/promises/promises.toml` and the docstrings. A test fails if the page is stale, or if a promise has no code or no
test.

The figures come from the last `make mutate`. It makes *mutants* of code that carries a label: it drops or weakens one
condition ([decision 0013](../decisions/0013-mutation-tested-conditions.md)), or leaves out or moves one effect
([decision 0058](../decisions/0058-effects-are-mutation-tested.md)), and checks that a test fails. `tests/mutants.txt`
and `tests/mutants_effects.txt` list the tests that fail, by function. `equivalent.toml` and `equivalent_effects.toml`
in `tests/mutate` list the mutants that behave like the original, each with the reason. Every mutant that no test
notices needs a test or a reason; `python -m tests.mutate --open` tries these mutants again and shows them.
"""

PROOFS = """\
## Proofs at full size

`make prove` tries to break the promises for hours. The table says when each of its parts passed the last time, and how
much it tried then. `PYTHONPATH=functions:. python -m tests.prove PART` runs one of them.

| part | tries | figures | on commit | day |
|---|---|---|---|---|"""


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
    lines += [f"| all that is mutated | {_row(figures[''])} |", "", PROOFS, *_proofs(), "", leaks.section()]
    for label, says in find.PROMISES.items():
        lines += [f"## {label}", "", f"**{says[0].upper()}{says[1:]}.**", ""]
        if label in find.NOT_YET:
            lines += [f"Not yet: {find.NOT_YET[label]}.", ""]
            continue
        lines += [line for name, found in columns.items() for line in _listed(name, found.get(label, []))] + [""]
    return "\n".join(lines).rstrip() + "\n"


def _proofs() -> Iterator[str]:
    """A line for each part of `make prove`, with its last run that passed whole."""
    record = proved.read()
    for name, part in parts.load().items():
        last = record.get(name)
        figures = f"{last.figures or 'passed'} | `{last.commit[:12]}` | {last.day}" if last else "not yet | | "
        yield f"| `{name}` | {part.says} | {figures} |"


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
    return f"[{path}](../../{path}) {', '.join([*names, *whole])}".rstrip()
