"""Whole files that must parse, and what some of them mean."""

from pathlib import Path

import pytest

from penstock.domain.jobfile import Dependency, JobFile, Problems, Publish, ResourceAsk, parse

CORPUS = Path(__file__).parent / "corpus"
EXAMPLES = Path(__file__).parents[2] / "examples"


def read(name: str) -> JobFile:
    found = parse((CORPUS / f"{name}.sh").read_bytes(), f"{name}.sh")
    assert isinstance(found, JobFile), str(found)
    return found


@pytest.mark.parametrize("file", sorted([*CORPUS.glob("*.sh"), *EXAMPLES.glob("*.sh")]), ids=lambda file: file.stem)
def test_parses(file: Path) -> None:
    found = parse(file.read_bytes(), str(file))
    assert not isinstance(found, Problems), str(found)
    assert found.script == file.read_text()
    assert found.path == str(file)


def test_plain_script_has_defaults_only() -> None:
    found = read("plain")
    assert found == JobFile("plain.sh", found.script)
    assert (found.name, found.target, found.enable, found.priority) == (None, "default", True, 0)


def test_marks_in_a_here_document_are_no_header() -> None:
    assert read("here-document").name == "writes a job file"


def test_repeated_marks_are_removed() -> None:
    assert read("korn").name == "korn shell"


def test_comments_between_toml_lines() -> None:
    assert [rule.path for rule in read("licence-comment").output_rules] == ["/work/a", "/work/b"]


def test_disabled() -> None:
    found = read("disabled")
    assert (found.enable, found.skip_clone, found.rust_toolchain) == (False, True, False)


def test_relations() -> None:
    found = read("sign")
    assert found.dependencies == (
        Dependency("board-a", "build board-a"),
        Dependency("board-b", "build board-b"),
        Dependency("board c", "build board-c"),
    )
    assert [each.spot for each in found.dependencies] == [(7, 35), (8, 35), (9, 37)]
    assert found.access_repos == ("acme/keys", "acme/signer.rs")
    assert found.rust_toolchain is True


def test_publish() -> None:
    found = read("image")
    assert found.publish[0] == Publish("/work/image.tar.gz", "image", "image.tar.gz")
    assert found.rust_toolchain == "1.85"


def test_own_keys() -> None:
    found = read("bench")
    assert found.resources == (ResourceAsk("bench", "bench"), ResourceAsk("licence", "licence"))
    assert (found.timeout, found.priority, found.retries, found.retry_failed) == (5400, -10, 2, True)
    assert found.env == {"RUST_LOG": "info", "EMPTY": ""}
    assert found.tags == {"suite": "nightly", "git.branch": "main"}
    assert [str(rule) for rule in found.output_rules] == ["%=/work/flame.svg", "%=/work/*.json"]
    assert [rule.text for rule in found.output_rules] == ["%=/work/flame.svg", "=%/work/*.json"]


def test_resource_tables_keep_their_order() -> None:
    found = read("database")
    assert found.resources == (
        ResourceAsk("old", "database", {"version": 14, "extensions": ["hstore", "pg_trgm"]}),
        ResourceAsk("new", "database", {"version": 17, "size": {"gib": 1.5}}),
    )
    assert found.timeout == 900
    assert found.env["SQL"] == '   select 1;\n   select "#: no";\n '
