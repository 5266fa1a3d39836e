"""`make prove` goes on where it was ended, records only what passed whole, and adds up what it tried."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.prove import __main__ as prove
from tests.prove import parts, proved
from tests.prove.parts import Part
from tests.prove.proved import Begun, Proved

HEAD = "a" * 40
CODE = "c" * 40
WHO = ["-c", "user.name=a", "-c", "user.email=a"]
OTHER = Begun("e" * 40, {"a": {}, "b": {"small_things": 2, "large_things": 1}})
COUNTS = "print('{piece} tried 1200 things'); raise SystemExit('{piece}' == '2:3')"


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder in which two parts are proved: one of them has a piece that fails."""
    monkeypatch.chdir(tmp_path)
    good = Part("good", "it counts", ("-c", COUNTS), ("0:1", "1:2"), r"tried (?P<small_things>\d+)")
    bad = Part("bad", "it fails", ("-c", COUNTS), ("1:2", "2:3", "3:4"))
    monkeypatch.setattr(parts, "load", lambda: {"good": good, "bad": bad})
    monkeypatch.setattr(proved, "commit", lambda: HEAD)
    monkeypatch.setattr(proved, "code", lambda of, commit="HEAD": CODE)
    path = tmp_path / "record.toml"
    monkeypatch.setattr(proved, "read", lambda: proved_of(path))
    monkeypatch.setattr(proved, "write", lambda record: write(record, path))
    begun = tmp_path / "begun.toml"
    monkeypatch.setattr(proved, "read_begun", lambda: read_begun(begun))
    monkeypatch.setattr(proved, "write_begun", lambda parts: write_begun(parts, begun))
    return path


proved_of, write = proved.read, proved.write
read_begun, write_begun = proved.read_begun, proved.write_begun


def test_what_passes_whole_is_recorded_with_its_figures(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prove.main([]) == 1
    assert {name: (each.commit, each.figures) for name, each in proved_of(record).items()} == {
        "good": (HEAD, "2,400 small things")
    }
    said = capsys.readouterr().out
    assert "bad 2:3: FAILED with 1, see build/prove/" in said
    assert said.endswith("prove: 1 of 2 parts passed: not bad\n")


def test_it_goes_on_with_what_did_not_pass(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prove.main([])
    capsys.readouterr()
    assert prove.main(["bad"]) == 1
    assert [line for line in capsys.readouterr().out.splitlines() if line.endswith("...")] == ["bad 2:3 (1 of 1) ..."]
    assert prove.main(["good", "--again"]) == 0
    assert "good 1:2 (2 of 2) ..." in capsys.readouterr().out


def began(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The pieces that were run since it was asked last."""
    return [line.partition(" (")[0] for line in capsys.readouterr().out.splitlines() if line.endswith("...")]


def test_it_goes_on_elsewhere_with_what_is_recorded(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another machine has the files that are committed, and no outputs."""
    prove.main([])
    shutil.rmtree("build")
    capsys.readouterr()
    assert prove.main(["--list"]) == 0
    assert "bad            3  2 passed with this code " in capsys.readouterr().out
    assert prove.main([]) == 1
    assert began(capsys) == ["bad 2:3"]
    assert prove.main(["bad", "--again"]) == 1
    assert began(capsys) == ["bad 1:2", "bad 2:3", "bad 3:4"]


def test_what_passed_in_two_places_adds_up(
    record: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = record.with_name("begun.toml")
    proved.write_begun({"good": Begun(CODE, {"0:1": {"small_things": 34}, "8:9": {}}), "other": OTHER})
    assert prove.main(["good"]) == 0
    assert began(capsys) == ["good 1:2"]
    assert proved_of(record)["good"].figures == "1,234 small things"
    assert read_begun(begun) == {"other": OTHER}


def test_what_passed_with_other_code_is_proved_anew(
    record: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prove.main([])
    shutil.rmtree("build")
    capsys.readouterr()
    monkeypatch.setattr(proved, "code", lambda of, commit="HEAD": "d" * 40)
    prove.main([])
    assert began(capsys) == ["good 0:1", "good 1:2", "bad 1:2", "bad 2:3", "bad 3:4"]


MEETS = """
import pathlib, sys, time
pathlib.Path("{piece}").touch()
until = time.monotonic() + 120
while not pathlib.Path("b" if "{piece}" == "a" else "a").exists():
    if time.monotonic() > until: sys.exit("the other piece does not run")
    time.sleep(0.01)
"""
ALONE = """
import pathlib, time
pathlib.Path("busy").mkdir()
time.sleep(0.1)
pathlib.Path("busy").rmdir()
"""


def test_pieces_run_at_once_unless_each_uses_all_processes(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meet = Part("meet", "they wait for each other", ("-c", MEETS), ("a", "b"))
    alone = Part("alone", "each uses two", ("-c", ALONE, "{processes}"), ("1", "2", "3"))
    monkeypatch.setattr(parts, "load", lambda: {"meet": meet, "alone": alone})
    assert prove.main(["meet", "alone", "--processes", "2"]) == 0


def test_another_commit_is_proved_anew_and_what_is_not_committed_is_not_recorded(
    record: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prove.main(["good"])
    monkeypatch.setattr(proved, "commit", lambda: f"{HEAD}-0123")
    record.unlink()
    capsys.readouterr()
    assert prove.main(["good"]) == 0
    assert "good 0:1 (1 of 2) ..." in capsys.readouterr().out
    assert not record.exists()


def test_what_it_writes_itself_does_not_change_the_commit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (["init", "-q"], [*WHO, "commit", "-q", "--allow-empty", "-m", "it"]):
        subprocess.run(["git", *words], check=True)
    clean = proved.commit()
    assert len(clean) == 40
    for path in proved.WRITTEN:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text("it")
    assert proved.commit() == clean
    Path("other").write_text("it")
    assert proved.commit().startswith(f"{clean}-")


def test_an_unknown_part_is_refused_and_all_parts_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        prove.main(["nothing"])
    assert ended.value.code == 2
    assert "there is no nothing; there are models, crashes" in capsys.readouterr().err
    assert prove.main(["--list"]) == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()[:3]] == [
        ["models", str(len(parts.NAMED["configurations"]))],
        ["crashes", str(len(parts.NAMED["scenarios"]))],
        ["simulation", "40"],
    ]


def test_the_list_says_what_passed_with_the_code_as_it_is_now(
    record: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prove.main(["good"])
    day = proved_of(record)["good"].day
    capsys.readouterr()
    prove.main(["--list"])
    monkeypatch.setattr(proved, "code", lambda of: "d" * 40)
    prove.main(["--list", "good"])
    assert [line.split(None, 2)[2].split("  ")[0] for line in capsys.readouterr().out.splitlines()] == [
        f"passed on {day} with this code",
        "not yet passed",
        f"passed on {day}, functions/ changed since",
    ]


def test_a_commit_that_leaves_the_code_alone_has_the_same_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    Path("functions").mkdir()
    found = []
    for path in ("functions/a.py", "notes", "functions/a.py"):
        with Path(path).open("a") as file:
            file.write("it\n")
        for words in (["init", "-q"], ["add", "."], [*WHO, "commit", "-q", "-m", "it"]):
            subprocess.run(["git", *words], check=True)
        found.append(proved.code("functions"))
    assert found[0] == found[1] != found[2]


def test_pieces_are_names_or_ranges() -> None:
    assert parts.split("0:10:4") == ("0:4", "4:8", "8:10")
    assert parts.split("readers") == parts.NAMED["readers"]
    sites = parts.load()["simulation"]
    assert sites.command("0:250", 3) == ["-m", "simulation", "--seeds", "0:250", "--processes", "3"]


def test_what_was_skipped_is_told() -> None:
    tests = parts.load()["long"]
    told = ["== 190 passed in 2s ==", "== 1 passed, 12 skipped, 1 warning in 9s =="]
    assert parts.figures(map(tests.count, told)) == "191 tests, 12 skipped"


def test_of_random_sites_the_last_line_counts_which_has_those_before() -> None:
    told = [f"{done} of 250 seeds, {done} jobs, {2 * done} commits, 0.33 s a seed\n" for done in (100, 200, 250)]
    sites = parts.load()["simulation"]
    assert parts.figures(map(sites.count, ["".join(told)] * 2)) == "500 sites, 500 jobs, 1,000 commits"


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    told = {"b": Proved(HEAD, "2026-01-31", "3 things", CODE), "a": Proved(HEAD, "2026-01-30", "", CODE)}
    proved.write(told, tmp_path / "record.toml")
    assert proved.read(tmp_path / "record.toml") == told
