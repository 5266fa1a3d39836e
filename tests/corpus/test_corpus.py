"""Both readers say the same of every job file that there is: where the files are; and of any that could be."""

from __future__ import annotations

import inspect
import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.corpus import blobs, oracle, ours, table

MIRROR = os.environ.get("PENSTOCK_CORPUS", "")
"""A folder of git directories; docs/internals/corpus.md says of which."""

ACCEPTED, REFUSED = 2054, 30


def test_the_table_has_each_content_once() -> None:
    kept = table.kept()
    assert kept == sorted(kept)
    assert len({line.sha256 for line in kept}) == len(kept)
    assert all((line.verdict == oracle.ACCEPTED) == (line.parse != "-") for line in kept)
    found = table.counts(kept)
    assert (found[oracle.ACCEPTED], len(kept) - found[oracle.ACCEPTED]) == (ACCEPTED, REFUSED)


@pytest.mark.skipif(not MIRROR, reason="the files are other people's: PENSTOCK_CORPUS names a folder that has them")
def test_every_file_that_is_there_is_read_as_the_table_says() -> None:
    lines, differences = table.judged(blobs.distinct(blobs.git_directories(Path(MIRROR))))
    assert differences == []
    told = {line.sha256: (line.verdict, line.parse) for line in table.kept()}
    assert [
        line for line in lines if told.get(line.sha256, (line.verdict, line.parse)) != (line.verdict, line.parse)
    ] == []


FILES = sorted((Path(__file__).parent / "files").glob("*.sh"))
"""Job files of our own. Each says at its end what buildomat says of it."""


def said(file: Path, who: str) -> str:
    """What a file says at its end after `# WHO: `; nothing if it does not."""
    found = re.findall(rf"^# {who}: (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return found[0] if found else ""


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_of_ours_is_read_as_it_says(file: Path) -> None:
    """By the rules as buildomat reads it; by us in the same way, unless it says how we read it."""
    asked, (found, rules) = oracle.read(file.read_bytes()), ours.read(file.read_bytes())
    assert asked.rule == said(file, "buildomat")
    assert json.loads(said(file, "values") or json.dumps(asked.parse)) == asked.parse
    if differs := said(file, "penstock"):
        assert not ours.agree(asked, found, rules) or differs in rules
        assert differs == oracle.ACCEPTED == found.rule or any(differs in rule for rule in rules)
    else:
        assert ours.agree(asked, found, rules), rules


def test_there_is_a_file_of_ours_for_each_rule() -> None:
    rules = {re.sub(r"\{.*?\}", ".*", rule) for rule in re.findall(r'Broken\(f?"([^"]+)"\)', inspect.getsource(oracle))}
    stated = [said(file, "buildomat") for file in FILES]
    assert {rule for rule in rules if not any(re.fullmatch(rule, each) for each in stated)} == {"not text"}
    assert stated.count(oracle.ACCEPTED) > 10


def test_the_page_says_what_the_table_says() -> None:
    page = (Path(__file__).parents[2] / "docs" / "internals" / "corpus.md").read_text(encoding="utf-8")
    kept = table.kept()
    whole = f"{len(kept):,} contents of {len({line.repository for line in kept})} repositories"
    assert whole in page
    for rule, many in table.counts(kept).items():
        assert f"| {rule} | {many:,} |" in page


WORD = st.text("abz-_/ ().ä%", min_size=1, max_size=6).filter(str.strip)
PATH = st.sampled_from(["/a", "/work/*.log", "/x y"])
RULE = st.builds(str.__add__, st.sampled_from(["", "", "=", "%", "!", "=%", "%=", "==", "!=", "x", "%!"]), PATH)
RULES = st.lists(st.one_of(RULE, st.sampled_from(["work", "=", "!"])), max_size=3)
PART = st.text("abZ09._-", min_size=2, max_size=8).filter(lambda text: text.strip("."))  # of a published name
PUBLISH = st.fixed_dictionaries({"from_output": PATH, "series": PART, "name": PART})
REPOSITORY = st.sampled_from(["o/r", "oxide/hubris", "a-b/c.d"])
NAME = st.text("abz-_ .", min_size=1, max_size=6).filter(lambda text: text.strip() and text not in (".", ".."))
GOOD = {
    "name": WORD,
    "variety": st.just("basic"),
    "enable": st.booleans(),
    "target": WORD,
    "output_rules": RULES,
    "rust_toolchain": st.one_of(st.booleans(), WORD),
    "access_repos": st.lists(REPOSITORY, max_size=2),
    "skip_clone": st.booleans(),
    "publish": st.lists(PUBLISH, max_size=2),
    "dependencies": st.dictionaries(NAME, st.fixed_dictionaries({"job": WORD}), max_size=3),
}
"""What each of the ten keys may be."""

BAD = st.one_of(
    st.sampled_from(
        [1, 1.5, True, "x", ["x"], [1], {"x": 1}, [{"x": "y"}], {"x": {"job": 1}}, {"x": {}}, {"x": {"y": 1}}]
    ),
    st.fixed_dictionaries({"x": st.fixed_dictionaries({"job": WORD, "copy": st.booleans()})}),
)
EXTRA = st.sampled_from(["enabled", "disable", "disabled", "taget", "publishes", "Name"])


def toml(value: object) -> str:
    """A value as TOML writes it; a table in one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


@st.composite
def headers(draw: st.DrawFn) -> list[str]:
    """Lines of TOML: all keys or some, in any order, some of them wrong, tables in either form, some line torn."""
    keys = draw(st.lists(st.sampled_from(list(GOOD)), unique=True))
    keys = list(dict.fromkeys([*(["name", "variety"] if draw(st.integers(0, 9)) else []), *keys]))
    wrong = draw(st.sets(st.sampled_from(list(GOOD)), max_size=1)) if draw(st.booleans()) else set()
    tables: list[str] = []
    lines: list[str] = []
    for key in keys:
        value = draw(BAD if key in wrong else GOOD[key])
        if key in ("publish", "dependencies") and key not in wrong and value and draw(st.booleans()):
            tables += list(_tables(key, value))
        else:
            lines.append(f"{key} = {toml(value)}")
    if not draw(st.integers(0, 7)):
        lines.append(f"{draw(EXTRA)} = {draw(st.sampled_from(['true', '1', '[]']))}")
    lines = [*draw(st.permutations(lines)), *tables]
    if not draw(st.integers(0, 9)) and lines:
        at = draw(st.integers(0, len(lines) - 1))
        lines[at] = draw(st.sampled_from([lines[at][:-1], lines[at] + "]", f"{lines[at]}\n{lines[at]}", "x y"]))
    return [part for line in lines for part in line.split("\n")]


def _tables(key: str, value: object) -> list[str]:
    found: list[str] = []
    for each in value if isinstance(value, list) else []:
        found += [f"[[{key}]]", *(f"{name} = {toml(text)}" for name, text in each.items())]
    for name, each in value.items() if isinstance(value, dict) else ():
        found += [f"[{key}.{json.dumps(name, ensure_ascii=False)}]", f"job = {toml(each['job'])}"]
    return found


@st.composite
def files(draw: st.DrawFn) -> str:
    """A whole file: what may stand before and between the lines of the header, and how it ends."""
    lines = [
        draw(st.sampled_from(["#!/bin/bash", "#!/bin/ksh", "#!", "# no", ""]))
        if not draw(st.integers(0, 9))
        else "#!/bin/bash"
    ]
    for line in draw(headers()):
        lines += draw(st.sampled_from([[], [], ["#"], ["# a comment"], ["#:"]]))
        lines.append(draw(st.sampled_from(["#:", "#: ", "#:#:"])) + line)
    return "\n".join([*lines, *draw(st.sampled_from([[], ["#"], [""], ["", "echo"], ["set -e", "# x"]]))])


def compare(text: str) -> None:
    """Both say the same, except where docs/internals/corpus.md says that we know more, or are stricter.

    We refuse names in `access_repos` that are not `owner/name`, which buildomat accepts.
    """
    asked, (found, rules) = oracle.read(text.encode()), ours.read(text.encode())
    if asked.rule in ("no name", "no variety") and "#:" not in text:
        assert found.rule == oracle.ACCEPTED, "a plain script"
        return
    if asked.parse and any("/" not in name for name in asked.parse.get("access_repos", [])):
        assert found.rule != oracle.ACCEPTED
        assert all("`access_repos`" in rule for rule in rules), rules
        return
    assert ours.agree(asked, found, rules), (asked, found, rules)


@given(files())
@example("#!/bin/bash\n#: name = 'a'\n#: variety = 'basic'\n#: [dependencies.x]\n#: job = 'a'\n")
@example("#!/bin/bash\n#: name = 'a'\n#: variety = 'basic'\n#: publish = [{from_output='x', series='s', name='n'}]\n")
@example("#!/bin/bash\n#: name = 'a'\n#: variety = 'basic'\n#: enable = false\n#: target = 3\n#: taget = 1\n")
@example("#!/bin/bash\n#: name = 'a'\n#: variety = 'basic'\n#: target = 'a'\n#: access_repos = ['x']\n")
@example("#!/bin/bash\necho\n")
@example("")
def test_both_say_the_same_of_whatever_could_be_a_file(text: str) -> None:
    compare(text)


def test_the_generator_makes_good_and_bad_ones() -> None:
    """What is not made is not compared. The same files each time: a hundred random ones may all be of a few kinds."""
    seen: set[str] = set()

    @settings(derandomize=True, max_examples=500, database=None)
    @given(files())
    def look(text: str) -> None:
        seen.add(oracle.read(text.encode()).rule)

    look()
    assert {oracle.ACCEPTED, "not TOML"} <= seen
    assert len(seen) > 5


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("echo", "no interpreter line"),
        ("#!/bin/sh\n#: name = 'a'\n", "no variety"),
        ("#!/bin/sh\n#: variety = 'basic'\n", "no name"),
        ("#!/bin/sh\n\n#: name = 'a'\n#: variety = 'basic'\n", "no name"),
        ("#!/bin/sh\n#: name = 'a'\n#: variety = 'Basic'\n", "wrong variety"),
        ("#!/bin/sh\n#: name = 'a'\n#: variety = 'basic'\n#: disabled = true\n", "a word for enable"),
        ("#!/bin/sh\n#: name = 'a'\n#: variety = 'basic'\n#: x = 1\n", "unknown key"),
        ("#!/bin/sh\n#: name = 'a'\n#: variety = 'basic'\n#: disabled = 1\n#: enable = false", oracle.ACCEPTED),
        ("#!/bin/sh\n#: name = 'a'\n#: variety = 'basic'\n#: x = 1\n#: enable = false", oracle.ACCEPTED),
        ("#!/bin/sh\n#: name = 1\n#: variety = 'basic'\n", "wrong type of name"),
        ("#!/bin/sh\n#: name = 'a'\n#: variety = 'basic'\n#: output_rules = ['a']\n", "wrong output rule"),
        ("#!/bin/sh\n#: name = 'a'\n#: variety = 'basic'\n#: dependencies.b = {}\n", "no job in dependencies"),
        ("#!/bin/sh\n#: name = 'a'\n#: variety = 'basic'\n#: publish = [{}]\n", "no from_output in publish"),
        ("#!/bin/sh\n#: name = \n", "not TOML"),
    ],
)
def test_the_oracle_knows_its_rules_and_we_theirs(text: str, rule: str) -> None:
    assert oracle.read(text.encode()).rule == rule
    compare(text)


def test_what_we_parse_otherwise_is_noticed() -> None:
    """A reader that lost a key, or a rule, would be caught."""
    text = "#!/bin/sh\n#: name = 'a'\n#: variety = 'basic'\n#: target = 'b'\n"
    asked, (found, _) = oracle.read(text.encode()), ours.read(text.encode())
    assert asked.parse
    other = oracle.Verdict(oracle.ACCEPTED, {**asked.parse, "target": "c"})
    assert ours.agree(asked, found, frozenset())
    assert not ours.agree(other, found, frozenset())
    assert not ours.agree(oracle.Verdict("unknown key"), found, frozenset())
    assert not ours.agree(oracle.Verdict("unknown key"), oracle.Verdict("refused"), frozenset({"not TOML"}))
