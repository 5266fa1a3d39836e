"""Sets of which only what a change concerns is submitted."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from penstock.cli.errors import Refused
from penstock.cli.sets import since_revision
from tests.cli.conftest import Run
from tests.cli.jobsets import submitted, write_job
from tests.cli.service import Service


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "work" / "ci"
    made.mkdir()
    write_job(made, "build", 'paths = ["src/**"]')
    write_job(made, "docs", 'paths = ["docs/**"]')
    write_job(made, "test", 'dependencies.build = { job = "build" }')
    write_job(made, "tell", 'dependencies.build = { job = "build", copy_outputs = false }')
    return made


def test_changed_submits_only_affected_jobs(penstock: Run, service: Service, folder: Path) -> None:
    result = penstock("job", "run", str(folder), "--no-wait", "--changed", "docs/a.md", "--set", "s1", "--json")
    assert result.exit_code == 0, result.stderr
    assert sorted(row["name"] for row in json.loads(result.stdout)) == ["docs", "tell"]
    assert "build: left out: no changed file matches its paths" in result.stderr
    assert "test: left out: it needs build, which is left out" in result.stderr
    tell = submitted(service)["tell"][0]
    assert (tell["without"], "dependencies" in tell) == (["build"], False)
    assert "without" not in submitted(service)["docs"][0]
    penstock("job", "run", str(folder), "--no-wait", "--changed", "docs/a.md", "--changed", "src/a", "--set", "s2")
    assert len(submitted(service)) == 4


def test_plan_of_the_jobs_that_changed_files_affect(penstock: Run, service: Service, folder: Path) -> None:
    result = penstock("job", "run", str(folder), "--plan", "--changed", "docs/a.md", "--json")
    assert [row["name"] for row in json.loads(result.stdout)] == ["docs", "tell"]


def test_a_set_with_nothing_to_run_succeeds(penstock: Run, service: Service, folder: Path) -> None:
    one = str(folder / "build.sh")
    result = penstock("job", "run", one, "--changed", "docs/a.md")
    assert (result.exit_code, result.stdout) == (0, "nothing to run: no job's `paths` match a changed file\n")
    assert "build: left out" in result.stderr
    assert penstock("job", "run", one, "--changed", "docs/a.md", "--json").stdout.strip() == "[]"
    assert service.asked == []
    assert penstock("job", "run", one, "--changed", "src/a", "--no-wait").exit_code == 0
    assert len(submitted(service)) == 1


def test_stdin_has_no_paths(penstock: Run) -> None:
    result = penstock("job", "run", "-", "--changed", "a")
    assert (result.exit_code, "not for stdin" in result.stderr) == (2, True)


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(folder: Path) -> Path:
    top = folder.parent
    for name in ("src/kept", "src/gone", "docs/a", ".gitignore"):
        (top / name).parent.mkdir(exist_ok=True)
        (top / name).write_text("ignored\n" if name == ".gitignore" else name * 20)
    for words in (["init"], ["add", "."], ["commit", "-m", "first"], ["checkout", "-b", "work"]):
        git(top, *words)
    return top


def test_since_lists_changed_deleted_and_new_files(repository: Path) -> None:
    folder = str(repository / "ci")
    assert since_revision(folder, "main") == []
    git(repository, "mv", "src/gone", "src/m\u00f6ved to")
    git(repository, "commit", "-m", "second")
    (repository / "docs" / "a").write_text("not committed")
    (repository / "docs" / "new").write_text("not known")
    (repository / "ignored").write_text("not wanted")
    changed = ["docs/a", "docs/new", "src/gone", "src/m\u00f6ved to"]
    assert since_revision(folder, "main") == changed
    assert since_revision(f"{folder}/build.sh", "main") == changed
    git(repository, "stash", "-u")
    git(repository, "checkout", "main")
    (repository / "elsewhere").write_text("on main since")
    git(repository, "add", ".")
    git(repository, "commit", "-m", "third")
    git(repository, "checkout", "work")
    assert since_revision(folder, "main") == changed[2:]


def test_a_set_since_a_revision(penstock: Run, service: Service, repository: Path) -> None:
    (repository / "docs" / "a").write_text("changed")
    result = penstock("job", "run", str(repository / "ci"), "--since", "main", "--no-wait")
    assert (result.exit_code, sorted(submitted(service))) == (0, ["docs", "tell"])


@pytest.mark.parametrize(
    ("revision", "said"), [("", "is not a revision"), ("--all", "is not a revision"), ("nothing", "does not say")]
)
def test_an_unknown_revision_is_refused(repository: Path, revision: str, said: str) -> None:
    with pytest.raises(Refused) as refused:
        since_revision(str(repository), revision)
    assert said in refused.value.what


def test_without_a_repository_or_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(Refused, match="does not say what was changed"):
        since_revision(str(tmp_path), "main")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Refused, match="git cannot be run"):
        since_revision(str(tmp_path), "main")
