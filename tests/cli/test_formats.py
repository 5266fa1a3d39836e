"""Lists in other columns, another order, other formats; and queries."""

import csv
import io
import json
from typing import Any

import pytest

from penstock.cli.errors import Refused
from penstock.cli.formats import as_csv, fields, fill, form, named, ordered, query
from penstock.cli.tables import Column
from tests.cli.conftest import Run
from tests.cli.service import SHARES, SUBMITTED, Service

LIST = ("job", "list")


@pytest.fixture
def jobs(service: Service) -> Service:
    """Three jobs: j1 that succeeded, j2 and j3 that wait."""
    for name, tags in (("b", {"k": "v, w"}), ("C", {}), ("a", {})):
        service.add(name=name, tags=tags)
    service.jobs["j1"].read = 9
    return service


def lines(penstock: Run, *words: str) -> list[str]:
    result = penstock(*words)
    assert result.exit_code == 0, result.stderr
    return [" ".join(line.split()) for line in result.stdout.splitlines()]


def test_columns(penstock: Run, jobs: Service) -> None:
    assert lines(penstock, *LIST, "--columns", "name,ID") == ["NAME ID", "b j1", "C j2", "a j3"]
    assert lines(penstock, *LIST, "--columns", "id, times.settled")[0] == "ID TIMES.SETTLED"
    assert lines(penstock, *LIST, "--columns", "state")[1:] == ["succeeded", "queued", "queued"]
    assert lines(penstock, *LIST, "--columns", "resources.0.slot")[1:] == ["bench-1"] * 3
    assert lines(penstock, *LIST, "--columns", "resources.1.slot,tags.k")[1:] == ["- v, w", "- -", "- -"]
    assert lines(penstock, "share", "list", "--columns", "slot_hours")[0] == "SLOT HOURS"


def test_unknown_columns(penstock: Run, jobs: Service) -> None:
    for words in (("--columns", "id,nmae"), ("--sort", "nmae"), ("--format", "template={nmae}")):
        result = penstock(*LIST, *words)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(
            "error: there is no column `nmae`\nhint: columns: ID, STATE, WAITS FOR, TARGET,"
        )
        assert "; or a key of the JSON: attempt, attempts," in result.stderr


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("name", ["j3", "j1", "j2"]),
        ("-NAME", ["j2", "j1", "j3"]),
        ("state", ["j2", "j3", "j1"]),
        ("-state", ["j1", "j2", "j3"]),
        ("times.settled", ["j1", "j2", "j3"]),
        ("tags.k", ["j1", "j2", "j3"]),
    ],
)
def test_sort(penstock: Run, jobs: Service, sort: str, order: list[str]) -> None:
    assert lines(penstock, *LIST, "--sort", sort, "--columns", "id")[1:] == order
    assert [job["id"] for job in json.loads(penstock(*LIST, "--sort", sort, "--json").stdout)] == order
    assert lines(penstock, *LIST, "--sort", sort, "--format", "jsonl", "--query", "[].id") == order


def test_sizes_are_sorted_by_their_bytes() -> None:
    column = Column("SIZE", lambda one: f"{one['size']} B", "size")
    items: list[dict[str, Any]] = [{"size": 900}, {"size": 1024}, {"size": 10}, {"size": None}]
    assert [one["size"] for one in ordered(items, [column], "size")] == [10, 900, 1024, None]
    assert [one["size"] for one in ordered(items, [column], "-size")] == [1024, 900, 10, None]
    mixed: list[dict[str, Any]] = [{"a": "x"}, {"a": 3}, {"a": 2.5}]
    assert [one["a"] for one in ordered(mixed, [Column("A", "a")], "a")] == [2.5, 3, "x"]


def test_shares_are_sorted_by_their_numbers(penstock: Run) -> None:
    assert lines(penstock, "share", "list", "--sort", "weight", "--columns", "owner")[1:] == ["alice", "oxide:hubris"]
    assert lines(penstock, "share", "list", "--sort", "used", "--columns", "owner")[1:] == ["oxide:hubris", "alice"]
    assert json.loads(penstock("share", "list", "--json", "--sort", "-share").stdout) == SHARES[::-1]


def test_json_lines(penstock: Run, jobs: Service) -> None:
    said = penstock(*LIST, "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line) for line in said] == [job.json() for job in jobs.jobs.values()]
    assert json.loads(penstock(*LIST, "--format", "json").stdout) == json.loads(penstock(*LIST, "--json").stdout)
    assert penstock("worker", "list", "--format", "jsonl").stdout == ""


def test_csv(penstock: Run, jobs: Service) -> None:
    said = penstock(*LIST, "--format", "csv", "--columns", "id,submitted,tags,times.settled").stdout
    head, first, second, _ = csv.reader(io.StringIO(said))
    assert head == ["ID", "SUBMITTED", "TAGS", "TIMES.SETTLED"]
    assert (first[:3], second) == (["j1", SUBMITTED, "k=v, w"], ["j2", SUBMITTED, "", ""])
    assert penstock("worker", "list", "--format", "csv").stdout.startswith("ID,TARGET,")
    assert as_csv(["A"], [['x"y\n']]) == 'A\n"x""y\n"\n'


def test_template(penstock: Run, jobs: Service) -> None:
    assert lines(penstock, *LIST, "--format", "template={id}: {state} {times.settled}!")[1] == "j2: queued !"
    assert (
        penstock(*LIST, "--format", r"template={{{id}}}\t{SUBMITTED}").stdout.splitlines()[0] == f"{{j1}}\t{SUBMITTED}"
    )
    assert penstock("worker", "list", "--format", "template={id}").stdout == ""


def test_values_of_a_template_are_not_read_as_one() -> None:
    assert fields("{a}{{b}}{c.d}") == ["a", "c.d"]
    assert fill(r"{a}{{b}}\n", {"a": r"{c}\t"}) == "{c}\\t{b}\n"


@pytest.mark.parametrize("text", ["xml", "template", "table=x", "template={id", "template=id}", "template={}", ""])
def test_wrong_formats(penstock: Run, text: str) -> None:
    result = penstock(*LIST, "--format", text)
    assert (result.exit_code, result.stderr.startswith("error: --format: ")) == (2, True)
    with pytest.raises(Refused):
        form(text)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--json", "--format", "csv"), "--json prints JSON"),
        (("--query", "[]", "--format", "template={id}"), "--query prints JSON"),
        (("--json", "--columns", "id"), "for JSON, --query chooses keys"),
        (("--format", "jsonl", "--columns", "id"), "for JSON, --query chooses keys"),
        (("--format", "template={id}", "--columns", "id"), "a template names its fields itself"),
    ],
)
def test_options_that_do_not_go_together(penstock: Run, service: Service, words: tuple[str, ...], said: str) -> None:
    result = penstock(*LIST, *words)
    assert (result.exit_code, said in result.stderr, service.asked) == (2, True, [])


def test_queries(penstock: Run, jobs: Service) -> None:
    assert penstock(*LIST, "--query", "[?state=='queued'] | length(@)").stdout == "2\n"
    assert json.loads(penstock(*LIST, "--query", "[].{id: id}").stdout) == [{"id": f"j{at}"} for at in (1, 2, 3)]
    assert penstock("--query", "[0].id", *LIST).stdout == "j1\n"
    assert penstock(*LIST, "--query", "[].id", "--format", "jsonl").stdout == "j1\nj2\nj3\n"
    assert penstock("job", "show", "j2", "--query", "target").stdout == "default\n"
    assert penstock("job", "show", "j2", "--query", "nothing").stdout == "null\n"


@pytest.mark.parametrize("text", ["[", "nope(@)", "length(`1`)", ""])
def test_wrong_queries(penstock: Run, jobs: Service, text: str) -> None:
    result = penstock(*LIST, "--query", text)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: --query `{text}`: ")
    assert result.stderr.endswith("\nhint: https://jmespath.org says how to write one\n")
    with pytest.raises(Refused):
        query(text)([])


def test_a_column_of_an_empty_list_may_be_anything() -> None:
    assert named("times.settled", [], []).title == "TIMES.SETTLED"
