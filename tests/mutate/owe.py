"""Writes the list of the mutants that no test notices yet. What was not tried since its function changed is among them.

For when there is no time to try them: the list says what is owed, and `--open` tries it.
"""

from __future__ import annotations

import json

from tests.mutate.record import Entry, Record, digest, equivalents, mutated

HEAD = """\
# Mutants that no test notices yet, of {of}s that came lately or moved. Each is a test that is owed. A test sees to it
# that the list has no more, and no fewer, than there are: who writes the test takes the line out. The list is written
# anew by `python -m tests.mutate --owe`.
"""


def owe(record: Record) -> int:
    """Let all that is not known be not noticed, and write record and list. Returns how many mutants are owed a test."""
    same = equivalents(record.kind)
    for function, some in mutated(record.kind).items():
        if not record.is_known(some[0]):
            names = {mutant.name for mutant in some if mutant.key not in same}
            record.entries[function] = Entry(digest(*function, record.kind), open=names)
    record.save()
    text = listed(record)
    record.kind.owed.write_text(text, encoding="utf-8")
    return sum(record.is_open(mutant) for some in mutated(record.kind).values() for mutant in some)


def listed(record: Record) -> str:
    """The list of what no test notices, as it is kept."""
    kind, hows = record.kind, dict[tuple[str, str, str], list[str]]()
    for some in mutated(kind).values():
        for mutant in some:
            if record.is_open(mutant):
                hows.setdefault((mutant.module, mutant.function, mutant.text), []).append(mutant.how)
    entries = [
        f"\n[[owed]]\nmodule = {_quoted(module)}\nfunction = {_quoted(function)}\n{kind.of} = {_quoted(text)}\n"
        f"how = [{', '.join(map(_quoted, sorted(some)))}]\n"
        for (module, function, text), some in sorted(hows.items())
    ]
    return "".join([HEAD.format(of=kind.of), *entries])


def _quoted(text: str) -> str:
    return f"'{text}'" if '"' in text and "'" not in text else json.dumps(text, ensure_ascii=False)
