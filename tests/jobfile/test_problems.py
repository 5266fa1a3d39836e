"""One row per way to get a whole job file wrong: where it is reported, what is said, what is advised."""

import pytest

from penstock.domain.jobfile import Fault, JobFile, check_key, parse
from penstock.kernel import limits
from tests.jobfile.helpers import NAMED, below, items, only


@pytest.mark.parametrize(
    ("text", "line", "column", "message", "hint"),
    [
        ("", 1, 1, "the file is empty", "#!/bin/bash"),
        (b"", 1, 1, "the file is empty", "#!/bin/bash"),
        ("x" * (limits.SCRIPT_BYTES + 1), 1, 1, "the file has 262145 bytes", "fetch"),
        (b"#!/bin/sh\nab\xff", 2, 3, "byte 0xff", "UTF-8"),
        ("#!/bin/sh\nab\ud800", 2, 3, "byte 0xed", "UTF-8"),
        (b"\x7fELF\0\0", 1, 5, "a NUL byte", "not a program"),
        ("#!/bin/sh\n\n\0", 3, 1, "a NUL byte", "UTF-16"),
        ("\ufeff#!/bin/sh\n", 1, 1, "byte order mark", "without"),
        ("#!/bin/sh\r\necho\r\n", 1, 10, "CRLF", "Unix"),
        ("#!/bin/sh\n# a\r\n", 2, 4, "CRLF", "Unix"),
        ("echo\n", 1, 1, "must have an interpreter line", "#!/bin/bash"),
        ('#: name = "a"\n#: variety = "basic"\n', 1, 1, "must have an interpreter line", "#!/bin/bash"),
        (
            "#!/bin/sh\n#: timeout = 1\n#: name = 'a'",
            2,
            3,
            "the header has no `variety`",
            '#: variety = "basic"',
        ),
        ("#!/bin/sh\n#: variety = 'basic'\n", 2, 3, "the header has no `name`", '#: name = "build"'),
        (
            "#!/bin/sh\n\n#: name = 'a'\n#: variety = 'basic'",
            3,
            1,
            "ended at line 2; these",
            "line 2 is empty",
        ),
        (
            "#!/bin/sh\n#: name = 'a'\n\n#: variety = 'basic'",
            4,
            1,
            "ended at line 3; these",
            "line 3 is empty",
        ),
        ("#!/bin/sh\nset -e\n\n#: name = 'a'\n", 4, 1, "ended at line 2; these", "line 2 is code"),
        ("#!/bin/sh\n  #: name = 'a'\n", 2, 1, "ended at line 2; these", "spaces"),
        ("#!/bin/sh\ncat <<X\nX\n#: name = 'a'\n", 4, 1, "ended at line 2; these", "line 2 is code"),
        (NAMED + "echo $(( 1 << X ))\n#: a", 5, 1, "ended at line 4; these", "line 4 is code"),
    ],
)
def test_file(text: str | bytes, line: int, column: int, message: str, hint: str) -> None:
    found = only(text)
    assert found[:2] == (line, column)
    assert message in found[2]
    assert hint in found[3]


@pytest.mark.parametrize(
    "text",
    [
        "#!/bin/sh",
        "#!/bin/sh\n  # indented\n",
        "#!/bin/sh\necho <<X\r\n\r\nX\n",
        "#!/bin/sh\n\ncat <<-'E'\n#: x\n\tE\ncat <<\"F\"\n#: y\nF\n",
        "#!/bin/sh\n\n# cat <<E\necho '  #: x'\n",
    ],
)
def test_file_that_is_a_plain_script(text: str) -> None:
    assert parse(text, "a.sh") == JobFile("a.sh", text)


@pytest.mark.parametrize(
    ("toml", "line", "column", "message", "hint"),
    [
        ("x", 4, 5, "Expected '=' after a key", "`key = value`"),
        ("x = basic", 4, 8, "Invalid value", "double quotes"),
        ('x = "a\ntarget = 1', 4, 10, "Illegal character '\\n'", "close the string"),
        ('x = "a', 4, 10, "Unterminated string", "close the string"),
        ('x = "a" b', 4, 12, "Expected newline", "one `key = value` per line"),
        ("x = 'a", 4, 10, 'Expected "\'"', ""),
        ("x = 1\nx = 2", 5, 9, "Cannot overwrite a value", "written twice"),
        ("[env]\n[env]", 5, 8, "Cannot declare ('env',) twice", "table is written twice"),
        ("output_rules = [\n'/a'\nskip_clone = true", 6, 4, "Unclosed array", "close the list"),
        ("output_rules = ['/a',", 4, 25, "Invalid value", ""),
        ("x = " + "9" * 5000, 4, 5008, "Exceeds the limit", ""),
        ("x = " + "[" * 500, 4, 40, "nested too deeply", "three levels"),
        (".".join("a" * 500) + " = 1", 4, 69, "nested too deeply", "three levels"),
    ],
)
def test_toml(toml: str, line: int, column: int, message: str, hint: str) -> None:
    found = only(below(toml).replace("\n\necho\n", "") if column in (25, 5008) else below(toml))
    assert found[:2] == (line, column), found
    assert message in found[2]
    assert hint in found[3]


def test_variety() -> None:
    found = only("#!/bin/sh\n#: name = 'a'\n#: variety = 'matrix'\n")
    assert found == (3, 14, "`variety` cannot be `matrix`", 'the only value so far is "basic"')


def test_required_key_that_a_table_swallowed() -> None:
    found = only("#!/bin/sh\n#: variety = 'basic'\n#: [env]\n#: name = 'a'\n")
    assert found[:3] == (2, 3, "the header has no `name`")
    assert found[3] == "the one in `env` belongs to that table: write it above the table's line"


def test_all_problems_are_reported_in_the_order_of_lines() -> None:
    text = "#!/bin/sh\n#: retries = 'x'\n#: nam = 1\n#: variety = 'basic'\n#: target = 2\n"
    assert [found[:2] for found in items(text)] == [(2, 3), (2, 14), (3, 4), (5, 13)]


def test_late_lines_beside_other_problems() -> None:
    found = items("#!/bin/sh\n#: name = 'a'\r\n#: target = 1\n\n#: variety = 'basic'\n")
    assert [(line, column) for line, column, *_ in found] == [(2, 14), (3, 13), (5, 1)]


def test_disabled_job_is_checked_no_further_than_its_common_keys() -> None:
    found = parse(below("enable = false\nwhatever = 1\ntarget = 3\noutput_rules = ['x']"), "a.sh")
    assert isinstance(found, JobFile)
    assert (found.enable, found.target, found.output_rules) == (False, "default", ())
    assert only(below("enable = false\n[dependencies.x]"))[2] == "`dependencies.x` has no `job`"
    off = parse(below("enable = false\ndisabled = true\n[dependencies.x]\njob = 'a'"), "a.sh")
    assert isinstance(off, JobFile)
    assert (off.enable, [each.job for each in off.dependencies]) == (False, ["a"])


@pytest.mark.no_cover
def test_very_many_faults_are_cut_short() -> None:
    assert len(items(below("\n".join(f"k{at} = 1" for at in range(5000))))) == 50
    wrong = "[" + "nan," * 5000 + "]"
    assert len(items(below(f"[resources.db]\ntype = 'x'\noptions.a = {wrong}"))) == 50


def test_problems_read_like_a_compilers() -> None:
    found = parse("#!/bin/sh\n#: name = ''\n", "jobs/a.sh")
    assert str(found).split("\n") == [
        'jobs/a.sh:2:3: the header has no `variety` (add a line `#: variety = "basic"`)',
        "jobs/a.sh:2:11: `name` is empty",
    ]
    assert found


@pytest.mark.parametrize(
    ("key", "value", "where", "message"),
    [
        (
            "resources",
            {"db": {"type": None}},
            "resources.db.type",
            "`resources.db.type` wants a resource type, not nothing",
        ),
        (
            "resources",
            {"db": {"type": "x", "options": {"\ud800": 1}}},
            "resources.db.options.?",
            "without NUL",
        ),
        ("tags", {"a": "\ud800"}, "tags.a", "U+D800"),
        ("output_rules", ["/a", "b"], "output_rules[1]", "wanted sigil/absolute path"),
        ("timeout", None, "timeout", "wanted a duration"),
    ],
)
def test_one_key_from_elsewhere(key: str, value: object, where: str, message: str) -> None:
    _, faults = check_key(key, value)
    assert [fault.where for fault in faults] == [where]
    assert message in faults[0].message
    assert isinstance(faults[0], Fault)


def test_one_good_key_from_elsewhere() -> None:
    assert check_key("timeout", "30m") == (1800, ())
