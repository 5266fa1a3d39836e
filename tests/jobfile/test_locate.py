"""Positions agree with what the TOML parser sees, and nothing makes the parser raise or dawdle."""

import time
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.domain.jobfile import JobFile, Problem, parse
from penstock.domain.jobfile.parse import KEYS
from penstock.toml.document import Spot, locate, nearest, tokenise

TOML = r'''
# a comment [with] = marks
title = "x = [1]"   # more
a.b . "c.d"= 1.5
'quo ted'.x = 2026-01-01 10:00:00Z
list = [ 1, "]", [ 2, 3 ], { k = 'v', deep = { n = +1e3 } },
  # between
  """multi
  "" ] line""""",
]
lit = \'\'\'it's
  [no table]\'\'\'
empty = []
none = {}
[table]
k = 0x1
  [ table . "sub.x" ]
  "\u00e9sc\"" = true
[[many]]
n = 1
[many.inner]
m = 2
[[many]]
n = 3
[[many.deep]]
o = 4
[[many.deep]]
'''.replace("\\'", "'")


def paths(value: Any, path: tuple[str | int, ...] = ()) -> set[tuple[str | int, ...]]:
    """Every path of a document."""
    found = {path}
    if isinstance(value, dict | list):
        for step, entry in value.items() if isinstance(value, dict) else enumerate(value):
            found |= paths(entry, (*path, step))
    return found


def test_every_path_has_a_spot() -> None:
    spots = locate(tokenise(TOML))
    assert set(spots) == paths(tomllib.loads(TOML))
    for path, start in {
        ("a", "b", "c.d"): "1.5",
        ("list", 1): '"]"',
        ("list", 2, 1): "3 ]",
        ("list", 3, "deep", "n"): "+1e3",
        ("list", 4): '"""multi',
        ("lit",): "'''it's",
        ("quo ted", "x"): "2026-01-01 10",
        ("table", "sub.x", 'ésc"'): "true",
        ("many", 0, "inner", "m"): "2",
        ("many", 1, "deep", 0, "o"): "4",
    }.items():
        assert TOML[spots[path].value :].startswith(start)
    assert TOML[spots["a", "b", "c.d"].key :].startswith('"c.d"')
    assert TOML[spots["table", "sub.x"].key :].startswith('"sub.x"')
    assert TOML[spots["many", 1].key - 2 :].startswith("[[many]]\nn = 3")


def test_nearest_goes_outwards() -> None:
    spots: dict[tuple[str | int, ...], Spot] = {(): Spot(0, 0), ("a",): Spot(1, 2)}
    assert nearest(spots, ("a", 1, "b")) == Spot(1, 2)
    assert nearest(spots, ("b",)) == Spot(0, 0)


def test_tokens_that_no_valid_document_has_still_end() -> None:
    for text in ("a = [1", "a = {", "[a", "a", "=", "a = {b", "a.", "a = ", "[[", "[[a]", "\x0b"):
        assert locate(tokenise(text))[()] == Spot(0, 0)


keys = st.text(max_size=4).map(lambda text: '"' + "".join(f"\\U{ord(char):08x}" for char in text) + '"')
bare_keys = st.sampled_from([*KEYS, "a", "b", "job", "type", "options", "from_output", "series"])
scalars = st.sampled_from(["1", "0x1f", "1.5", "nan", "true", '"a"', "'/b'", '"""c\n"""', "2026-01-01"])
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda found: "[" + ",\n".join(found) + "]")
        | st.dictionaries(bare_keys | keys, inner, max_size=3).map(
            lambda found: "{" + ", ".join(f"{key} = {value}" for key, value in found.items()) + "}"
        )
    ),
    max_leaves=6,
)
dotted = st.lists(bare_keys | keys, min_size=1, max_size=3).map(".".join)
statements = st.one_of(
    st.tuples(dotted, values).map(" = ".join),
    dotted.map("[{}]".format),
    dotted.map("[[{}]]".format),
    st.just("# note"),
)
documents = st.lists(statements, max_size=8).map("\n".join)


@settings(deadline=None)
@given(documents)
def test_every_path_of_any_document_has_a_spot(text: str) -> None:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    assert set(locate(tokenise(text))) == paths(document)


def check(source: str | bytes) -> None:
    """Parsing ends in a job file or in problems that stand inside the text."""
    found = parse(source, "a.sh")
    if isinstance(found, JobFile):
        problems: tuple[Problem, ...] = ()
    else:
        problems = found.items
        assert problems
        assert list(problems) == sorted(problems, key=lambda one: (one.line, one.column))
    text = source if isinstance(source, str) else source.decode("utf-8", "replace")
    lines = text.split("\n")
    for problem in problems:
        assert 1 <= problem.line <= len(lines)
        assert 1 <= problem.column <= len(lines[problem.line - 1]) + 1
        assert str(problem).startswith(f"a.sh:{problem.line}:{problem.column}: ")


@settings(deadline=None)
@given(st.text() | st.binary())
def test_any_text_and_any_bytes(source: str | bytes) -> None:
    check(source)


@settings(deadline=None)
@given(documents, st.booleans())
def test_any_header(toml: str, named: bool) -> None:
    start = '#!/bin/sh\n#: name = "n"\n#: variety = "basic"\n' if named else "#!/bin/sh\n"
    check(start + "\n".join(f"#:{line}" for line in toml.split("\n")) + "\necho")


lines = st.sampled_from(["", " ", "#", "#:", "#:#:", "#: ", "#!", "\ufeff", "\r", "cat <<E", "E", " #:", "x"])


@settings(deadline=None)
@given(st.lists(st.tuples(lines, st.text(alphabet="a.=[]{}\"'\\,# \r1é\ud800", max_size=12)).map("".join), max_size=8))
def test_any_lines(found: list[str]) -> None:
    check("#!/bin/sh\n" + "\n".join(found))
    check("\n".join(found))


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "unit",
    [
        "[",
        "{a=",
        "a.",
        '"""\n\\',
        '"\\',
        "'''\n",
        "'",
        "[a]\n",
        "[[a]]\n",
        "k",
        "<<A ",
        "<<A\n",
        "#: <<A\n",
        "a=1\n",
        "a.b.c.d=1\n",
        "[a.b]\n[a]\n",
        "1_",
        ",",
        '"\\u00',
        "\n\r",
        "# x\n",
        "resources=[",
        "a={b={c=",
    ],
)
@pytest.mark.parametrize("mark", ["#:", ""])
def test_the_biggest_hostile_files_take_no_long_time(unit: str, mark: str) -> None:
    body = "".join(f"{mark}{line}\n" for line in (unit * (60_000 // len(unit))).split("\n"))
    start = time.process_time()
    parse("#!/bin/sh\n" + body[:250_000], "a.sh")
    assert time.process_time() - start < 5
