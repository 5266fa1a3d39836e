"""What systemd recorded of a job's user, and lets that user read, does not reach the user's next job. [UNIT-2]"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from penstock.agent import records
from penstock.agent.account import Uids

UIDS = Uids(12345, (range(100000, 165536),))
DUMPS = {
    "core.sleep.12345.0123.99.1700000000000000.zst": True,
    r"core.a\x2eb.12345.0123.99.1700000000000000": True,
    ".#core.sleep.12345.0123.99.1700000000000000a5b6": True,
    "core.sleep.100005.0123.99.1700000000000000.lz4": True,
    "core.sleep.0.0123.12345.1700000000000000.zst": False,
    "core.12345.1.0123.99.1700000000000000.zst": False,
    "core.sleep.99999.0123.99.1700000000000000.zst": False,
    "12345": False,
}
JOURNALS = {
    "user-12345.journal": True,
    "user-12345@0005f0-0123.journal": True,
    "user-12345@0005f0-0123.journal~": True,
    "user-100005.journal": True,
    "user-99999.journal": False,
    "user-.journal": False,
    "system.journal": False,
    "system@12345.journal": False,
}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without processes, and with these files."""
    for folder, names in {"cores": DUMPS, "log/0123": JOURNALS, "run/0123": JOURNALS, "proc": {}}.items():
        (tmp_path / folder).mkdir(parents=True)
        for name in names:
            (tmp_path / folder / name).touch()
    (tmp_path / "log" / "user-12345.journal").touch()
    monkeypatch.setattr(records, "CORES", str(tmp_path / "cores"))
    monkeypatch.setattr(records, "JOURNALS", (str(tmp_path / "log"), str(tmp_path / "run"), str(tmp_path / "none")))
    monkeypatch.setattr(records, "JOURNAL_SOCKET", str(tmp_path / "socket"))
    monkeypatch.setattr(records, "PROC", str(tmp_path / "proc"))
    monkeypatch.setattr(records, "ROUND_SECONDS", 0)
    return tmp_path


ROOT, SET_USER_ID = "0\t0\t0\t0", "12346\t0\t0\t0"


def process(machine: Path, pid: int, name: str, uids: str = ROOT) -> None:
    (machine / "proc" / str(pid)).mkdir()
    (machine / "proc" / str(pid) / "status").write_text(f"Name:\t{name}\nState:\tS (sleeping)\nUid:\t{uids}\n")


def test_dumps_and_journals_of_the_user_are_removed_and_those_of_others_stay(machine: Path) -> None:
    records.remove_records(UIDS)
    for folder, names in {"cores": DUMPS, "log/0123": JOURNALS, "run/0123": JOURNALS}.items():
        assert set(os.listdir(machine / folder)) == {name for name, is_users in names.items() if not is_users}


def test_a_machine_without_systemd_has_none(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CORES", "PROC"):
        monkeypatch.setattr(records, name, str(machine / "none"))
    monkeypatch.setattr(records, "JOURNALS", ())
    records.remove_records(UIDS)


def test_a_dump_that_is_being_stored_is_waited_for(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file has no place yet, and would be there when the next job begins. Later ones are of others."""
    process(machine, 4711, "systemd-coredum")
    process(machine, 4712, "sleep")

    def store(seconds: float) -> None:
        (machine / "proc" / "4711" / "status").unlink(missing_ok=True)
        (machine / "cores" / "core.late.12345.0123.99.1700000000000000.zst").touch()
        process(machine, 4713, "systemd-coredum")

    monkeypatch.setattr(records.time, "sleep", store)
    records.remove_records(UIDS)
    assert not list((machine / "cores").glob("core.late.*"))


def test_a_dump_that_is_stored_without_end_makes_the_machine_unclean(machine: Path) -> None:
    process(machine, 4711, "systemd-coredum")
    with pytest.raises(OSError, match=r"systemd-coredump \(processes \[4711\]\) is still storing"):
        records.remove_records(UIDS)


@pytest.mark.parametrize("uids", ["12346\t12346\t12346\t12346", SET_USER_ID])
def test_a_neighbours_process_that_is_called_so_is_not_waited_for(machine: Path, uids: str) -> None:
    """Not even a program of root's under that name, which another job on a shared host started. [UNIT-1]"""
    process(machine, 4711, "systemd-coredum", uids)
    records.remove_records(UIDS)


def test_journald_writes_what_it_was_sent_before_the_journal_is_removed(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def run(command: list[str], **_: object) -> None:
        asked.append(command)
        (machine / "log" / "0123" / "user-12345@late.journal").touch()
        raise subprocess.TimeoutExpired(command, 1)

    monkeypatch.setattr(records.subprocess, "run", run)
    (machine / "socket").touch()
    records.remove_records(UIDS)
    assert asked == [["journalctl", "--sync"]]
    assert not list((machine / "log" / "0123").glob("user-12345*"))
