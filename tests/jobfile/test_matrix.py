"""`matrix`: one file for many jobs."""

from __future__ import annotations

import pytest

from penstock.domain.jobfile import JobFile, Matrix, Problems, Publish, parse, variant
from penstock.domain.jobfile.sets import arrange
from tests.jobfile.helpers import below, only


def file(*lines: str, name: str = "build") -> JobFile:
    header = [f'name = "{name}"', 'variety = "basic"', *lines]
    found = parse("\n".join(["#!/bin/sh", *(f"#: {line}" for line in header), "true"]), f"{name[:5]}.sh")
    assert isinstance(found, JobFile), str(found)
    return found


def test_every_combination_in_the_order_of_the_file() -> None:
    matrix = file("[matrix]", 'board = ["a", "b"]', 'mode = ["fast", "safe"]').matrix
    assert matrix
    assert matrix.combinations == (
        {"board": "a", "mode": "fast"},
        {"board": "a", "mode": "safe"},
        {"board": "b", "mode": "fast"},
        {"board": "b", "mode": "safe"},
    )


def test_some_are_left_out_and_some_are_added() -> None:
    matrix = Matrix({"x": ("1", "2"), "y": ("1", "2")}, ({"x": "1", "y": "2"}, {"y": "1"}), ({"x": "9", "y": "9"},))
    assert matrix.combinations == ({"x": "2", "y": "2"}, {"x": "9", "y": "9"})
    assert Matrix({"x": ("1",)}, (), ({"x": "1"},)).combinations == ({"x": "1"},)


def test_values_are_filled_in() -> None:
    found = file(
        'target = "ubuntu-${{ matrix.os }}"',
        'image = "ci/${{ matrix.board }}@sha256:${{ matrix.os }}"',
        'output_rules = ["=/work/${{matrix.board}}.bin"]',
        'env = { BOARD = "${{ matrix.board }}", OTHER = "${HOME}" }',
        'tags = { board = "${{ matrix.board }}" }',
        "[services.db]",
        'image = "pg/${{ matrix.board }}"',
        'env = { A = "${{ matrix.os }}" }',
        'ready = "test ${{ matrix.os }}"',
        "[dependencies.fetch]",
        'job = "fetch ${{ matrix.os }}"',
        "[[publish]]",
        'from_output = "/work/${{ matrix.board }}.bin"',
        'series = "${{ matrix.os }}"',
        'name = "${{matrix.board}}.bin"',
        'version = "v-${{ matrix.os }}"',
        "[matrix]",
        'board = ["a"]',
        'os = ["24.04"]',
    )
    one = variant(found, {"board": "a", "os": "24.04"})
    assert (one.name, one.target, one.matrix) == ("build (a, 24.04)", "ubuntu-24.04", None)
    assert one.image == "ci/a@sha256:24.04"
    assert [each.told for each in one.services] == [
        {"image": "pg/a", "env": {"A": "24.04"}, "ready": "test 24.04"},
    ]
    assert one.env == {"MATRIX_BOARD": "a", "MATRIX_OS": "24.04", "BOARD": "a", "OTHER": "${HOME}"}
    assert (one.tags, one.output_rules[0].path) == ({"board": "a"}, "/work/a.bin")
    assert one.dependencies[0].job == "fetch 24.04"
    assert one.publish == (Publish("/work/a.bin", "24.04", "a.bin", "v-24.04"),)
    named = file("[matrix]", 'board = ["a"]', name="build ${{ matrix.board }}")
    assert variant(named, {"board": "a"}).name == "build a"


@pytest.mark.parametrize(
    ("toml", "line", "column", "message", "hint"),
    [
        ("matrix = 1", 4, 13, "`matrix` wants a table of lists", ""),
        ("[matrix]", 4, 5, "`matrix` makes 0 jobs; it makes from 1 to 256", ""),
        ("[matrix]\nx = []", 4, 5, "`matrix` makes 0 jobs", ""),
        ("[matrix]\nx = 1", 5, 8, "`matrix.x` wants a list of strings", ""),
        ("[matrix]\nx = [1]", 5, 9, "an entry of `matrix.x` wants a string", "double quotes"),
        ("[matrix]\nx = ['a', 'a']", 5, 14, "`a` is listed twice", ""),
        ("[matrix]\n'x-y' = ['a']", 5, 4, "`matrix.x-y`: an axis is letters, digits and _", ""),
        ("[matrix]\nx = ['a']\nexclude = [1]", 6, 15, "an entry of `matrix.exclude` wants a table", "board"),
        ("[matrix]\nx = ['a']\nexclude = [{ y = 'a' }]", 6, 17, "there is no axis `y`", "known here: x"),
        ("[matrix]\nx = ['a']\nexclude = [{ x = 'a' }]", 4, 5, "`matrix` makes 0 jobs", ""),
        ("[matrix]\nx = ['a']\ny = ['b']\ninclude = [{ x = 'b' }]", 7, 15, "needs a value for each axis", "x, y"),
        (f"[matrix]\nx = {[str(n) for n in range(17)]}\ny = {[str(n) for n in range(16)]}", 4, 5, "makes 272 jobs", ""),
        (
            f"[matrix]\nx = {[str(n) for n in range(90)]}\ny = {[str(n) for n in range(90)]}",
            4,
            5,
            "makes 8100 jobs",
            "",
        ),
        ("env.A = '${{ matrix.z }}'\n[matrix]\nx = ['a']", 4, 12, "there is no axis `z`", "known here: x"),
        ("output_rules = ['/${{ matrix.z }}']\n[matrix]\nx = ['a']", 4, 20, "there is no axis `z`", ""),
    ],
)
def test_what_is_wrong_with_a_matrix(toml: str, line: int, column: int, message: str, hint: str) -> None:
    found = only(below(toml))
    assert message in found[2]
    assert hint in found[3]
    assert found[:2] == (line, column)


def test_a_job_that_depends_on_a_file_with_a_matrix_depends_on_each_of_its_jobs() -> None:
    build = file("[matrix]", 'board = ["a/x", "b"]')
    flash = file(
        "[dependencies.image]", 'job = "build (${{ matrix.board }})"', "[matrix]", 'board = ["b"]', name="flash"
    )
    found = arrange([file("[dependencies.builds]", 'job = "build"', 'on = "always"', name="sign"), flash, build])
    assert not isinstance(found, Problems), str(found)
    by_name = {member.name: member for member in found}
    assert set(by_name) == {"build (a/x)", "build (b)", "flash (b)", "sign"}
    depends = by_name["sign"].dependencies
    assert [(each.name, each.job, each.on) for each in depends] == [
        ("builds/a-x", "build (a/x)", "always"),
        ("builds/b", "build (b)", "always"),
    ]
    assert [each.job for each in by_name["flash (b)"].dependencies] == ["build (b)"]
    assert by_name["build (b)"].values == {"board": "b"}


def test_a_job_that_would_depend_on_too_many() -> None:
    build = file("[matrix]", f"n = {[str(number) for number in range(65)]}".replace("'", '"'))
    found = arrange([build, file("[dependencies.builds]", 'job = "build"', name="sign")])
    assert isinstance(found, Problems)
    assert "this job would depend on 65 others; it may on at most 64" in str(found)
