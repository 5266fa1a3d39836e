"""A folder of job files: submitted in order, gone on with, followed, and ended as a whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.cli import joined
from tests.cli.conftest import Run
from tests.cli.jobsets import submitted, write_job
from tests.cli.service import Service


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three builds, and a job that waits for all of them."""
    monkeypatch.setattr(joined, "PAGE_SECONDS", 0.0)
    made = tmp_path / "jobs"
    made.mkdir()
    for name in ("a", "b", "c"):
        write_job(made, name, f'tags.end = "{"failed" if name == "b" else "succeeded"}"')
    write_job(made, "sign", *(f'dependencies.{name} = {{ job = "{name}" }}' for name in ("a", "b", "c")))
    (made / "common.txt").write_text("not a job")
    return made


def end_all(service: Service, *ends: str) -> None:
    """Have jobs settle as soon as they are looked at."""
    for number, end in enumerate(ends, 1):
        service.jobs[f"j{number}"].end = end
        service.jobs[f"j{number}"].read = 100


def test_jobs_are_submitted_in_their_order_by_their_ids(penstock: Run, service: Service, folder: Path) -> None:
    result = penstock("job", "run", str(folder), "--no-wait", "--set", "s1", "-T", "by=me", "--priority", "3", "--json")
    assert result.exit_code == 0, result.stderr
    shown = {row["name"]: row["id"] for row in json.loads(result.stdout)}
    assert sorted(shown) == ["a", "b", "c", "sign"]
    assert shown["sign"] == "j4"
    bodies = submitted(service)
    sign, key = bodies["sign"]
    assert sign["dependencies"] == {name: {"job": shown[name]} for name in ("a", "b", "c")}
    assert (sign["tags"], sign["priority"]) == ({"by": "me", "set": "s1"}, 3)
    assert "dependencies" not in bodies["a"][0]
    assert len({key for _, key in bodies.values()}) == 4
    assert key.startswith("set-s1-")


def test_an_interrupted_set_continues(penstock: Run, service: Service, folder: Path) -> None:
    first = penstock("job", "run", str(folder), "--no-wait", "--set", "s1", "--json")
    again = penstock("job", "run", str(folder), "--no-wait", "--set", "s1", "--json")
    assert first.stdout == again.stdout
    assert len(service.jobs) == 4
    penstock("job", "run", str(folder), "--no-wait")
    assert len(service.jobs) == 8


def test_a_refused_set_says_how_many_were_submitted(penstock: Run, service: Service, folder: Path) -> None:
    write_job(folder, "d", 'target = "nowhere"', 'dependencies.a = { job = "a" }')
    result = penstock("job", "run", str(folder), "-t", "nowhere", "--set", "s1")
    assert result.exit_code == 2
    assert "there is no target nowhere; 0 of 5 jobs submitted" in result.stderr
    assert f"`penstock job run {folder} --set s1` submits the rest" in result.stderr


def test_a_set_with_an_error_submits_nothing(penstock: Run, service: Service, folder: Path) -> None:
    write_job(folder, "c", 'dependencies.x = { job = "sign" }')
    result = penstock("job", "run", str(folder))
    assert result.exit_code == 2
    assert result.stderr.count("these jobs wait for each other: ") == 2
    write_job(folder, "c", 'nmae = "x"')
    assert "c.sh:4:4: unknown key `nmae`" in penstock("job", "run", str(folder)).stderr
    assert service.asked == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-d", "a=j1"], "-d is for one job"),
        (["-n", "x"], "-n is for one job"),
        (["-i", "x=y"], "-i is for one job"),
    ],
)
def test_options_that_are_for_one_job(penstock: Run, folder: Path, words: list[str], said: str) -> None:
    result = penstock("job", "run", str(folder), *words)
    assert (result.exit_code, said in result.stderr) == (2, True)


def test_a_folder_without_jobs(penstock: Run, tmp_path: Path, good: str) -> None:
    (tmp_path / "empty").mkdir()
    assert "there is no job file in" in penstock("job", "run", str(tmp_path / "empty")).stderr
    write_job(tmp_path / "empty", "a", "enable = false")
    assert "is disabled" in penstock("job", "run", str(tmp_path / "empty")).stderr
    assert "--set is for a folder" in penstock("job", "run", good, "--set", "x").stderr


def test_all_are_followed_and_the_worst_is_the_exit_code(penstock: Run, service: Service, folder: Path) -> None:
    penstock("job", "run", str(folder), "--no-wait", "--set", "s1")
    for ends, code in (
        (("succeeded",) * 4, 0),
        (("succeeded", "cancelled", "succeeded", "cancelled"), 3),
        (("succeeded", "failed", "cancelled", "failed"), 1),
        (("succeeded", "errored", "succeeded", "failed"), 4),
    ):
        end_all(service, *ends)
        result = penstock("job", "run", str(folder), "--set", "s1")
        assert result.exit_code == code, result.stderr
    assert "b: errored: the machine was lost" in result.stderr
    rows = [line.split()[:2] for line in result.stderr.splitlines()]
    assert ["NAME", "OUTCOME"] in rows
    assert ["sign", "failed"] in rows
    assert sorted(result.stdout.splitlines()) == [f"{name} | building" for name in ("a", "b", "c", "sign")]
    found = json.loads(penstock("job", "run", str(folder), "--set", "s1", "--json").stdout)
    assert [job["outcome"] for job in found] == ["succeeded", "errored", "succeeded", "failed"]


def test_ctrl_c_says_how_to_cancel_the_set(
    penstock: Run, service: Service, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(joined.time, "sleep", interrupt)
    result = penstock("job", "run", str(folder), "--set", "s1")
    assert result.exit_code == 130
    assert "stopped watching; the jobs continue" in result.stderr
    assert "`penstock job cancel --set s1` ends them" in result.stderr


def test_cancelling_a_set_cancels_dependents_first(penstock: Run, service: Service, folder: Path) -> None:
    penstock("job", "run", str(folder), "--no-wait", "--set", "s1")
    end_all(service, "succeeded")
    result = penstock("job", "cancel", "--set", "s1", "--json")
    assert result.exit_code == 0, result.stderr
    ended = [path.split("/")[3] for path in service.paths("POST") if path.endswith("/cancel")]
    assert sorted(ended) == ["j2", "j3", "j4"]
    assert len(json.loads(result.stdout)) == 3
    assert "give a JOB, or --set ID" in penstock("job", "cancel").stderr


def test_plan_of_a_job_set(penstock: Run, service: Service, folder: Path) -> None:
    result = penstock("job", "run", str(folder), "--plan")
    assert result.exit_code == 0, result.stderr
    assert "4. sign" in result.stdout
    plans = json.loads(penstock("job", "run", str(folder), "--plan", "--json").stdout)
    assert plans[-1]["name"] == "sign"
    assert not service.jobs


def test_a_file_with_a_matrix_is_several_jobs(penstock: Run, service: Service, folder: Path) -> None:
    write_job(folder, "a", "[matrix]", 'board = ["x", "y"]')
    result = penstock("job", "run", str(folder / "a.sh"), "--no-wait", "--json")
    assert [row["name"] for row in json.loads(result.stdout)] == ["a (x)", "a (y)"], result.stderr
    assert [body["matrix"] for _, _, _, body in service.asked] == [{"board": "x"}, {"board": "y"}]
    assert penstock("job", "run", str(folder), "--no-wait").exit_code == 0
    (sign,) = [body for _, _, _, body in service.asked if Path(body["path"]).stem == "sign"]
    assert set(sign["dependencies"]) == {"a/x", "a/y", "b", "c"}


def test_a_set_is_listed_with_what_each_job_depends_on(penstock: Run, service: Service) -> None:
    job = service.add(name="test", tags={"set": "s1"})
    service.add(name="other", tags={"set": "s2"})
    said = penstock("job", "list", "--set", "s1", "--owner", "oxide:hubris")
    assert [line.split()[:2] for line in said.stdout.splitlines()] == [["ID", "NAME"], [job, "test"]]
    assert "build" in said.stdout
    assert service.paths("GET")[-1].partition("?")[::2] == ("/v1/sets/s1", "owner=oxide%3Ahubris&limit=50")
    assert [each["id"] for each in json.loads(penstock("job", "list", "--set", "s1", "--json").stdout)] == [job]


@pytest.mark.parametrize("words", [["--all"], ["-T", "a=b"], ["--state", "running"], ["--name", "x"]])
def test_a_set_is_listed_as_a_whole(penstock: Run, service: Service, words: list[str]) -> None:
    said = penstock("job", "list", "--set", "s1", *words)
    assert (said.exit_code, service.asked) == (2, [])
    assert "only --owner goes with it" in said.stderr
