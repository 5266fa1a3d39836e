"""What the tests of wrong job files share."""

from penstock.domain.jobfile import Problems, parse

NAMED = '#!/bin/bash\n#: name = "a"\n#: variety = "basic"\n'


def items(text: str | bytes) -> list[tuple[int, int, str, str]]:
    found = parse(text, "a.sh")
    assert isinstance(found, Problems), found
    return [(one.line, one.column, one.message, one.hint or "") for one in found.items]


def only(text: str | bytes) -> tuple[int, int, str, str]:
    found = items(text)
    assert len(found) == 1, found
    return found[0]


def below(toml: str) -> str:
    """A good file with more lines of TOML, the first of them on line 4."""
    return NAMED + "".join(f"#: {line}\n" for line in toml.split("\n")) + "\necho\n"
