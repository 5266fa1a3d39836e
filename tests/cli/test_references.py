"""What stands for a thing: its id, the beginning of its id, `-` for the last job."""

import json
import re
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from penstock.cli.app import cli
from penstock.cli.command import Command, Group
from penstock.cli.references import JOB, REVIEW, JobId, following
from tests.cli.conftest import Run
from tests.cli.ids import id_at
from tests.cli.service import TOKEN, WORKER, Service

OLD, SECOND, NEW = id_at(0), id_at(1), id_at(40_000_000)
"""Two jobs of the same minute, and one of another year."""

COMMANDS = [
    ("show", "GET", ""),
    ("why", "GET", "/why"),
    ("timings", "GET", "/timings"),
    ("script", "GET", "/script"),
    ("outputs", "GET", "/outputs"),
    ("provenance", "GET", "/provenance"),
    ("cancel", "POST", "/cancel"),
    ("retry", "POST", "/retry"),
    ("tail", "GET", "/events"),
]


@pytest.fixture
def jobs(service: Service) -> Service:
    """A service with three jobs, whose ids are as real ones are."""
    for id in (OLD, SECOND, NEW):
        service.add(id=id, name=f"build-{id[-1]}")
    return service


@pytest.mark.parametrize(("command", "method", "path"), COMMANDS)
@pytest.mark.parametrize("given", [NEW, NEW[:4], NEW[:25], NEW.lower(), NEW[:6].lower(), "-"])
def test_less_than_an_id_will_do(
    penstock: Run, jobs: Service, command: str, method: str, path: str, given: str
) -> None:
    result = penstock("job", command, given)
    assert result.exit_code == 0, result.stderr
    assert f"/v1/jobs/{NEW}{path}" in [asked.partition("?")[0] for asked in jobs.paths(method)]
    assert not [asked for asked in jobs.paths("POST") if NEW not in asked]


def test_what_is_printed_has_the_whole_id(penstock: Run, jobs: Service) -> None:
    jobs.jobs[NEW].end = "never"
    assert penstock("job", "cancel", NEW[:5]).stdout == f"job {NEW} cancelled: cancelled by alice\n"


def test_a_beginning_of_several_ids_names_them(penstock: Run, jobs: Service) -> None:
    result = penstock("job", "cancel", OLD[:8])
    assert (result.exit_code, jobs.paths("POST")) == (2, [])
    assert result.stderr.splitlines() == [
        f"error: more than one job has an id that begins with {OLD[:8]}",
        f"  {SECOND}  queued build-{SECOND[-1]}",
        f"  {OLD}  queued build-{OLD[-1]}",
        "hint: give more of the id",
    ]


def test_of_many_candidates_five_are_named(penstock: Run, service: Service) -> None:
    ids = [service.add(id=id_at(number)) for number in range(9)]
    shown = penstock("job", "show", ids[0][:4]).stderr
    assert [line.split()[0] for line in shown.splitlines() if line.startswith("  0")] == ids[:-6:-1]
    assert "\n  and more\n" in shown
    for id in ids[5:]:
        del service.jobs[id]
    assert "and more" not in penstock("job", "show", ids[0][:4]).stderr
    said = json.loads(penstock("job", "show", ids[0][:4], "--json").stderr)
    assert (said["code"], said["candidates"], said["more"]) == ("id-not-unique", ids[4::-1], False)


def test_candidates_are_looked_for_in_one_short_page(penstock: Run, service: Service) -> None:
    """However many jobs there are, and however old those are that the beginning fits."""
    ids = [service.add(id=id_at(number * 1_000_000)) for number in range(300)]
    assert json.loads(penstock("job", "show", ids[0][:7], "--json").stdout)["id"] == ids[0]
    listed = [path for path in service.paths("GET") if path.startswith("/v1/jobs?")]
    assert listed == [f"/v1/jobs?page={following(ids[0][:7])}&limit=6"]


def test_nothing_begins_with_that(penstock: Run, jobs: Service) -> None:
    for given in ("01ZZ", "7ZZZ", NEW[:10] + "ZZZZ"):
        result = penstock("job", "show", given)
        assert (result.exit_code, f"there is no job whose id begins with {given}" in result.stderr) == (2, True)


def test_what_no_id_begins_with_is_sent_as_it_is(penstock: Run, jobs: Service) -> None:
    assert "there is no job 8ABC" in penstock("job", "show", "8ABC").stderr
    assert jobs.paths("GET") == ["/v1/jobs/8ABC"]


def test_no_last_job(penstock: Run, service: Service) -> None:
    result = penstock("job", "show", "-")
    assert (result.exit_code, "you have none" in result.stderr) == (2, True)


def test_options_that_stand_behind_a_beginning_count(penstock: Run, jobs: Service) -> None:
    assert penstock("job", "show", "-", "--token", "wrong").stderr.startswith("error: the token is not known")


def test_dependencies(penstock: Run, jobs: Service, good: str) -> None:
    more = ("-d", f"a={NEW[:5]},on=failure", "-d", "b=-", "-d", f"c={OLD}")
    assert penstock("job", "run", good, "-W", *more).exit_code == 0
    assert jobs.asked[-1][3]["dependencies"] == {
        "a": {"job": NEW, "on": "failure"},
        "b": {"job": NEW},
        "c": {"job": OLD},
    }
    assert "`a` is not NAME=VALUE" in penstock("job", "run", good, "-d", "a").stderr


@pytest.mark.parametrize("given", [f"w-{NEW[:6]}", NEW[:6], f"w-{NEW.lower()[:6]}"])
def test_a_worker_by_the_beginning_of_its_id(penstock: Run, service: Service, given: str) -> None:
    service.workers = [WORKER | {"id": f"w-{id}"} for id in (OLD, SECOND, NEW)]
    assert penstock("worker", "drain", given).stdout == f"worker w-{NEW} is lent to no other job\n"
    shown = penstock("worker", "show", OLD[:6]).stderr
    assert f"  w-{OLD}  ready lab\n  w-{SECOND}  ready lab\n" in shown
    assert "there is no worker whose id begins with w-01ZZ" in penstock("worker", "show", "01ZZ").stderr
    assert penstock("worker", "show", f"w-{NEW}").exit_code == 0


def test_a_job_to_review_is_among_those_of_others(penstock: Run, service: Service) -> None:
    assert penstock("job", "approve", "j1", "--yes").stderr.startswith("error: there is no job j1")
    assert "there is no job to review whose id begins with 01" in penstock("job", "approve", "01", "--yes").stderr
    assert "/v1/reviews?limit=100" in service.paths("GET")


@pytest.mark.parametrize(
    ("begun", "after"),
    [
        ("0", "1" + "0" * 25),
        ("01KD", "01KE" + "0" * 22),
        ("01KZ", "01M" + "0" * 23),
        ("01H", "01J" + "0" * 23),
        ("7ZZ", "8" + "0" * 25),
        ("01KDVDNA02G83EFRTNJJN6PQ8", "01KDVDNA02G83EFRTNJJN6PQ90"),
    ],
)
def test_what_follows_all_that_begin_with_something(begun: str, after: str) -> None:
    assert following(begun) == after
    assert begun.ljust(26, "Z") < after


def test_every_command_that_takes_a_job_takes_less_than_its_id() -> None:
    """A new argument or option for jobs needs `type=JOB`."""
    found = [
        (words, param)
        for words, command in commands()
        for param in command.params
        if re.search(r"\bJOB\b", param.metavar or "")
    ]
    assert len(found) > 18
    assert [words for words, param in found if not isinstance(param.type, JobId) and param.type is not REVIEW] == []


def test_several_jobs_are_each_resolved(jobs: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_URL", jobs.url)
    monkeypatch.setenv("PENSTOCK_TOKEN", TOKEN)
    argument = click.Argument(["jobs"], nargs=-1, type=JOB)
    option = click.Option(["--after"], multiple=True, type=JOB)
    command = Command("wait", params=[argument, option], callback=lambda jobs, after: print(jobs, after))
    shown = CliRunner().invoke(command, [NEW[:5], OLD, "--after", "-"], catch_exceptions=False).stdout
    assert shown == f"{(NEW, OLD)} {(NEW,)}\n"


def commands(group: click.Command = cli, *words: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command, and its words."""
    if not isinstance(group, Group):
        yield words, group
        return
    context = click.Context(group)
    for name in group.list_commands(context):
        below = group.get_command(context, name)
        assert below
        yield from commands(below, *words, name)
