"""Exit codes and messages when something is wrong."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run, plain
from tests.cli.service import Service


def test_unreachable(home: Path) -> None:
    result = plain("--url", "http://127.0.0.1:9", "--token", "t", "job", "list")
    assert result.exit_code == 5
    assert "error: cannot reach http://127.0.0.1:9 (connection refused)" in result.stderr
    assert "hint: " in result.stderr


def test_bad_token(penstock: Run) -> None:
    result = penstock("job", "list", "--token", "wrong")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: the token is not known\nhint: the token is wrong, expired or revoked")


def test_no_token(penstock: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_TOKEN")
    assert "or give one with --token" in penstock("job", "list").stderr


def test_forbidden(penstock: Run) -> None:
    result = penstock("user", "create", "bob")
    assert (result.exit_code, "penstock whoami" in result.stderr) == (2, True)


def test_unknown_job(penstock: Run) -> None:
    result = penstock("job", "show", "nope")
    assert (result.exit_code, result.stderr) == (2, "error: there is no job nope that you may see\n")


def test_an_older_service_has_no_console(penstock: Run) -> None:
    result = penstock("console", "--print")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: this service has no console\nhint: ")


def test_service_fails(penstock: Run, service: Service) -> None:
    service.crash = True
    result = penstock("job", "list")
    assert (result.exit_code, "something broke" in result.stderr) == (4, True)


def test_not_penstock(penstock: Run, service: Service) -> None:
    result = penstock("job", "list", "--url", service.url + "/elsewhere")
    assert result.exit_code == 2


@pytest.mark.parametrize(
    "words",
    [
        ("worker", "hold", "w9", "--reason", "looking", "--for", "2h"),
        ("worker", "release", "w9"),
        ("worker", "drain", "w9"),
        ("worker", "recycle", "w9"),
        ("worker", "tail", "w9"),
        ("resource", "recycle", "r1"),
        ("job", "store", "list", "j1"),
        ("job", "store", "get", "j1", "a"),
        ("job", "store", "put", "j1", "a", "b"),
        ("well", "list"),
    ],
)
def test_unknown_names_show_the_services_message(penstock: Run, service: Service, words: list[str]) -> None:
    service.add()
    result = penstock(*words)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: th")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("jop",), "there is no command `jop`; did you mean `job`?"),
        (("job", "run"), "missing argument 'FILE|DIR'"),
        (("job", "run", "x.sh"), "can't read x.sh: No such file or directory"),
        (("job", "list", "-T", "a"), "`a` is not NAME=VALUE"),
        (("job", "run", "x.sh", "--timeout", "soon"), "`soon`: wanted a duration"),
        (("job", "run", "x.sh", "-e", "A=1", "-e", "A=2"), "-e: `A` is given twice"),
        (("job", "show", ""), "`` is not a name"),
        (("job", "show", "../users"), "`../users` is not a name"),
        (("--url", "example.com", "job", "list"), "`example.com` is not the URL of a service"),
        (("--url", "http://a:b", "job", "list"), "`http://a:b` is not the URL of a service"),
        (("pool", "resize", "target/a", "-1"), "no such option"),
    ],
)
def test_usage(penstock: Run, service: Service, words: list[str], said: str) -> None:
    result = penstock(*words)
    assert result.exit_code == 2
    assert result.stderr.lower().startswith(f"error: {said}".lower()) or said.lower() in result.stderr.lower()
    assert service.asked == []


def test_lint(home: Path, good: str, bad: str) -> None:
    assert plain("job", "lint", good).exit_code == 0
    result = plain("job", "lint", good, bad, "missing.sh")
    assert result.exit_code == 2
    assert result.stdout.startswith("bad.sh:4:4: ")
    assert "missing.sh:1:1: can't read" in result.stdout
    assert "3 problems, 1 of 3 files good" in result.stderr


def test_lint_warns_of_keys_without_effect(home: Path, good: str) -> None:
    header = '#: name = "a"\n#: variety = "basic"\n#: [dependencies.x]\n#: job = "b"\n#: target = "y"\n'
    Path("useless.sh").write_text(f"#!/bin/bash\n{header}echo\n")
    result = plain("job", "lint", good, "useless.sh")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "warning: useless.sh:6:4: the key `target` has no effect here (`target` is a key of the job" in result.stderr
    assert "0 problems, 2 of 2 files good" in result.stderr


def test_lint_json(home: Path, good: str, bad: str) -> None:
    assert json.loads(plain("job", "lint", good, "--json").stdout) == []
    result = plain("job", "lint", bad, "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, len(found)) == (2, 2)
    assert set(found[0]) == {"file", "line", "column", "message", "hint"}
    assert (found[0]["file"], found[0]["line"]) == ("bad.sh", 4)


def test_help_everywhere(home: Path) -> None:
    for words in ((), ("job",), ("job", "run"), ("local", "up"), ("resource-type",)):
        assert "Usage: penstock" in plain(*words, "-h").stdout
    assert plain("job").exit_code == 2


def test_errors_of_the_service_as_json(penstock: Run) -> None:
    """The members of its problem document, a hint, and the exit code."""
    result = penstock("job", "show", "nope", "--json")
    said = json.loads(result.stderr)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said == {
        "type": "about:blank",
        "title": "job-not-found",
        "status": 404,
        "code": "job-not-found",
        "detail": "there is no job nope that you may see",
        "errors": [],
        "hint": None,
        "exit_code": 2,
    }


@pytest.mark.parametrize(
    ("words", "code", "exit_code"),
    [
        (("job", "list", "--bogus", "--json"), "usage", 2),
        (("--json", "job", "nothing"), "usage", 2),
        (("job", "cancel", "--json"), "usage", 2),
        (("pool", "list", "--format", "jsonl", "--sort", "nope"), "usage", 2),
        (("pool", "list", "--json", "--url", "http://127.0.0.1:9"), "unreachable", 5),
        (("job", "list", "--json", "--token", "wrong"), "unauthorized", 2),
    ],
)
def test_errors_as_json(penstock: Run, words: tuple[str, ...], code: str, exit_code: int) -> None:
    result = penstock(*words)
    said = json.loads(result.stderr.splitlines()[-1])
    assert (result.exit_code, said["code"], said["exit_code"]) == (exit_code, code, exit_code)
    assert said["detail"]
    assert "hint" in said


def test_a_failing_service_as_json(penstock: Run, service: Service) -> None:
    service.crash = True
    result = penstock("job", "list", "--json")
    said = json.loads(result.stderr)
    assert (result.exit_code, said["exit_code"], said["code"], said["status"]) == (4, 4, "internal", 500)
    assert "tell its operator" in said["hint"]


def test_each_place_in_a_file_as_json(penstock: Run, good: str) -> None:
    """What people get as lines are objects, as the service sent them."""
    said = json.loads(penstock("job", "run", good, "-t", "nowhere", "--json").stderr)
    assert [each["message"] for each in said["errors"]] == ["no such target", "no file"]
    assert (said["errors"][0]["line"], "lines" in said) == (2, False)


def test_an_error_that_has_lines_as_json(penstock: Run, service: Service) -> None:
    said = json.loads(penstock("job", "copy", service.add(), "/else", "--json").stderr)
    assert (said["code"], said["lines"]) == ("usage", ["  /work/out/log.txt"])


def test_only_words_for_people_without_json(penstock: Run) -> None:
    for words in (("job", "show", "nope"), ("job", "show", "nope", "--query", "id")):
        assert penstock(*words).stderr.startswith("error: there is no job nope")
