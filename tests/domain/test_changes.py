"""Which jobs a change concerns, and what becomes of those that depend on the others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pathspec import PathSpec

from penstock.domain.jobfile import JobFile, check_key, parse
from penstock.domain.jobfile.changes import choose, concerns
from penstock.domain.jobfile.sets import arrange


@pytest.mark.parametrize(
    ("paths", "changed", "matches"),
    [
        ([], [], True), ([], ["a"], True), (["src/**"], [], False),
        (["src/**"], ["src/a/b.rs"], True), (["src/**"], ["docs/a", "src/b"], True), (["src/**"], ["a/src/b"], False),
        (["src"], ["src/a/b"], True), (["src"], ["a/src"], True), (["/src"], ["a/src"], False),
        (["src/"], ["src"], False),
        (["*.md"], ["docs/a/b.md"], True), (["/*.md"], ["docs/b.md"], False), (["docs/*.md"], ["docs/a/b.md"], False),
        (["a/**/b"], ["a/b"], True), (["a/**/b"], ["a/x/y/b"], True), (["v[0-9].txt"], ["v7.txt"], True),
        (["a?c"], ["abc"], True), (["a?c"], ["a/c"], False),
        (["src/**", "!src/docs/**"], ["src/docs/a"], False),
        (["src/**", "!src/docs/**"], ["src/docs/a", "src/b"], True),
        (["src/**", "!src/docs/**", "src/docs/x"], ["src/docs/x"], True), (["!docs/**"], ["src/a"], True),
        (["!docs/**"], ["docs/a"], False), (["!docs/**", "docs/x"], ["docs/x"], True), (["A"], ["a"], False),
    ],
    ids=str,
)  # fmt: skip
def test_what_a_pattern_matches(paths: list[str], changed: list[str], matches: bool) -> None:
    assert concerns(paths, changed) is matches


def file(name: str, *lines: str) -> JobFile:
    header = [f'name = "{name}"', 'variety = "basic"', *lines]
    found = parse("\n".join(["#!/bin/sh", *(f"#: {line}" for line in header), "true"]), f"{name}.sh")
    assert isinstance(found, JobFile), str(found)
    return found


def chosen(files: list[JobFile], *changed: str) -> tuple[dict[str, tuple[list[str], tuple[str, ...]]], dict[str, str]]:
    """The jobs that are kept, each with those that it waits for and those that it goes without; and the others."""
    members = arrange(files)
    assert isinstance(members, tuple), str(members)
    found = choose(members, changed)
    return {one.name: ([each.job for each in one.dependencies], one.without) for one in found.members}, dict(
        found.left_out
    )


BUILD = file("build", 'paths = ["src/**"]')


def test_who_needs_the_files_of_one_that_is_left_out_is_left_out_too() -> None:
    files = [
        BUILD,
        file("test", 'dependencies.b.job = "build"'),
        file("sign", 'dependencies.t.job = "test"'),
        file("lint"),
    ]
    kept, left = chosen(files, "docs/a")
    assert kept == {"lint": ([], ())}
    assert left == {
        "build": "no changed file matches its paths",
        "test": "it needs build, which is left out",
        "sign": "it needs test, which is left out",
    }
    assert set(chosen(files, "src/a")[0]) == {"build", "test", "sign", "lint"}
    assert chosen(files, "src/a")[0]["test"] == (["build"], ())


@pytest.mark.parametrize(
    ("how", "is_left"),
    [
        ("copy_outputs = false", False), ('on = "always"\ncopy_outputs = false', False), ('on = "always"', True),
        ('on = "failure"\ncopy_outputs = false', True),
    ],
)  # fmt: skip
def test_who_only_waits_for_its_end_goes_without(how: str, is_left: bool) -> None:
    waits = ["[dependencies.b]", 'job = "build"', *how.split("\n"), "[dependencies.l]", 'job = "lint"']
    kept, left = chosen([BUILD, file("lint"), file("test", *waits)], "docs/a")
    assert ("test" in left) is is_left
    assert kept.get("test") == (None if is_left else (["lint"], ("b",)))


def test_a_jobs_own_paths_come_before_what_it_needs() -> None:
    files = [BUILD, file("test", 'paths = ["tests/**"]', 'dependencies.b.job = "build"')]
    assert chosen(files, "docs/a")[1]["test"] == "no changed file matches its paths"
    assert chosen(files, "tests/a")[1]["test"] == "it needs build, which is left out"


def test_of_a_matrix_some_may_be_left() -> None:
    """A file's dependency is gone when no job is left of it."""
    many = file(
        "many", 'matrix.on = ["a", "b"]', "[dependencies.x]", 'job = "${{ matrix.on }}"', "copy_outputs = true"
    )  # fmt: skip
    last = file("last", "[dependencies.m]", 'job = "many"', "copy_outputs = false")
    files = [file("a", 'paths = ["a"]'), file("b", 'paths = ["b"]'), many, last]
    kept, left = chosen(files, "a")
    assert set(left) == {"b", "many (b)"}
    assert kept["last"] == (["many (a)"], ())
    assert chosen(files, "c")[0] == {"last": ([], ("m",))}


CHARS = st.text("ab*?![]-/.# \\^", max_size=8)


@given(CHARS, st.lists(st.sampled_from(["a", "a/b", "b-a", "ab/ab"]), max_size=2))
def test_what_is_checked_can_be_matched(pattern: str, changed: list[str]) -> None:
    _, faults = check_key("paths", [pattern])
    if not faults:
        assert len(list(PathSpec.from_lines("gitignore", [pattern]).patterns)) == 1
        assert [each.include for each in PathSpec.from_lines("gitignore", [pattern]).patterns] != [None]
        assert concerns([pattern], changed) in (True, False)


@pytest.mark.parametrize(
    "good",
    [
        "a",
        "!a",
        "/a",
        "a/",
        "**",
        "a/**/b",
        "*.md",
        "[a-z]",
        "[!a]x",
        "[^a-c0]",
        "a-b",
        "a b",
        "a#",
        "a!b",
        "...",
        ".a",
    ],
)
def test_what_is_a_pattern(good: str) -> None:
    assert check_key("paths", [good]) == ((good,), ())


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("!", "is not a pattern"), ("!!a", "is not a pattern"), ("#a", "is not a pattern"), (" a", "is not a pattern"),
        ("a ", "is not a pattern"), ("! a", "is not a pattern"), ("/", "names no file"), ("a//b", "names no file"),
        ("./a", "names no file"), ("a/../b", "names no file"), ("a\\*", "holds a backslash"), ("[a", "a bracket"),
        ("a]", "a bracket"), ("[]", "a bracket"), ("[!]", "a bracket"), ("[a/b]", "a bracket"),
        ("[z-a]", "holds a range"),
        ("x[0-9][b-a]", "holds a range"), ("", "is empty"), ("x" * 257, "at most 256"), ("a\n", "control character"),
        ("[a-]", "a bracket"),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_none(bad: str, said: str) -> None:
    _, faults = check_key("paths", ["a", bad])
    assert len(faults) == 1
    assert said in faults[0].message
    assert faults[0].path == ("paths", 1)


def test_where_it_is_wrong() -> None:
    text = '#!/bin/sh\n#: name = "x"\n#: variety = "basic"\n#: paths = ["src/**", "../a"]\n'
    assert str(parse(text, "x.sh")).startswith("x.sh:4:23: an entry of `paths`: `../a` names no file")
    assert isinstance(parse(text.replace("../", ""), "x.sh"), JobFile)
    many, faults = check_key("paths", ["a"] * 101)
    assert (len(many), "at most 100" in faults[0].message) == (100, True)
