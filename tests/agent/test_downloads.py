"""Copies of downloaded files: only the next jobs of the same owner use them. [ART-2] [SEC-2]"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.agent import downloads
from penstock.agent.downloads import COPIES_CHECK_SECONDS, MOST_COPIES, UNUSED_SECONDS, Copies
from penstock.agent.worker import copies_for
from tests.agent.control_plane import IDLE, order

A, B = (f"01HX000000000000000000000{number}.01HW0000000000000000000000" for number in range(2))
SEE = 'cat "$PENSTOCK_INPUT/a"'
TOUCH = 'cat "$PENSTOCK_INPUT/a"; echo more >> "$PENSTOCK_INPUT/a"'


def two_jobs(worker, first: str, **second):
    """Two jobs on one machine that both want the input `a`."""
    job = worker(script=first, inputs=True, reuse=True)
    job.plane.keep("/input/a", b"once\n", artifact=A)
    job.plane.answer_next_hellos(IDLE, order(job="job-2", script=SEE, inputs=True, reuse=True, **second), 410)
    agent = job.start()
    assert agent.wait(25) == 0, job.log()
    assert [told["result"] for told in job.plane.finishes] == ["succeeded", "succeeded"]
    assert job.plane.lines("stdout") == ["once"]
    return job


def test_the_next_job_of_the_same_owner_uses_the_copy(worker):
    job = two_jobs(worker, SEE)
    assert job.plane.calls.count("kept") == 1
    assert "fetched 1 input(s), 5 B; 1 of them from this machine's copies" in job.plane.lines("detail")
    assert "copies of downloaded files that stay for jobs of ann: 1" in job.plane.hellos[1]["cleaned"]


def test_another_owners_job_downloads_again(worker):
    job = two_jobs(worker, SEE, owner="bob")
    assert job.plane.calls.count("kept") == 2
    assert "fetched 1 input(s), 5 B" in job.plane.lines("detail")


def test_a_copy_that_a_job_has_changed_is_not_used(worker):
    job = two_jobs(worker, TOUCH)
    assert job.plane.calls.count("kept") == 2
    assert "the copy of /input/a cannot be used: expected were 5 bytes" in job.log()


def test_a_worker_that_is_not_reused_keeps_no_copies(worker):
    job = worker(script=SEE, inputs=True)
    job.plane.keep("/input/a", b"once\n", artifact=A)
    assert job.finish()["result"] == "succeeded"
    assert not (job.folder / "copies").exists()


class Kept:
    """Copies in a folder, with a clock that the test moves, and files that the jobs have."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.jobs, self.time = folder / "copies", folder / "jobs", 1000.0
        self.jobs.mkdir()
        monkeypatch.setattr(downloads, "now", lambda: self.time)
        self.all = Copies(self.folder, "ann")

    def serve(self, owner: str) -> bool:
        """Go on to a job of an owner. Return whether it has the copies of the job before."""
        return copies_for(owner, True, self.all, self.folder) is self.all

    def keep(self, id: str, data: bytes = b"x") -> None:
        path = self.jobs / id
        path.write_bytes(data)
        self.all.keep(id, str(path))

    def there(self) -> list[str]:
        return sorted(os.listdir(self.folder)) if self.folder.exists() else []


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kept:
    return Kept(tmp_path, monkeypatch)


def test_copies_that_the_service_does_not_name_are_removed(kept: Kept) -> None:
    kept.keep(A)
    kept.keep(B)
    assert kept.all.due_for_check() == []
    kept.time += COPIES_CHECK_SECONDS
    assert sorted(kept.all.due_for_check()) == [A, B]
    assert sorted(kept.all.due_for_check()) == [A, B], "until it has answered"
    kept.all.keep_only([B, "unknown"])
    assert kept.there() == [B]
    assert kept.all.due_for_check() == []


def test_a_copy_that_was_unused_for_long_is_removed(kept: Kept) -> None:
    kept.keep(A)
    kept.time += UNUSED_SECONDS - 1
    kept.keep(B)
    kept.time += 2
    assert kept.serve("ann")
    kept.all.due_for_check()
    assert kept.there() == [B]


def test_another_owners_job_finds_an_empty_folder(kept: Kept) -> None:
    kept.keep(A)
    (kept.folder / "planted").write_text("by a job")
    assert not kept.serve("bob")
    assert kept.there() == []


def test_a_link_in_place_of_the_folder_is_not_followed(kept: Kept) -> None:
    elsewhere = kept.jobs / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("of the machine")
    kept.folder.symlink_to(elsewhere)
    assert not kept.serve("bob")
    assert not kept.folder.is_symlink()
    assert (elsewhere / "file").read_text() == "of the machine"


def test_a_link_in_place_of_a_copy_is_not_followed(kept: Kept) -> None:
    kept.keep(A, b"x")
    (kept.folder / A).unlink()
    (kept.folder / A).symlink_to(kept.jobs / A)
    digest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"  # of "x"
    told = {"path": "/input/a", "artifact": A, "size": 1, "sha256": digest}
    assert not kept.all._place(A, told, str(kept.jobs / "in" / "a"))
    assert kept.there() == []


def test_the_number_of_copies_is_limited(kept: Kept) -> None:
    ids = [f"{number:026}" for number in range(MOST_COPIES + 2)]
    for id in ids:
        kept.time += 1
        kept.keep(id)
    assert kept.there() == ids[2:]


def test_copies_take_a_quarter_of_the_free_disk(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    free = type("Disk", (), {"f_bavail": 40, "f_frsize": 1})
    monkeypatch.setattr(os, "statvfs", lambda path: free)
    kept.keep(A, b"x" * 6)
    kept.keep("0" * 26, b"x" * 11)
    assert kept.there() == [A], "a quarter of what is free is 10"
    kept.time += 1
    kept.keep(B, b"x" * 5)
    assert kept.there() == [B]


def test_copies_are_removed_before_the_last_job(kept: Kept) -> None:
    kept.keep(A)
    assert copies_for("ann", False, kept.all, kept.folder) is None
    assert kept.there() == []


def test_copies_of_an_earlier_agent_are_removed_before_the_first_job(kept: Kept) -> None:
    kept.keep(A)
    first = copies_for("ann", True, None, kept.folder)
    assert first
    assert first.due_for_check() == kept.there() == []


def test_an_id_that_is_a_path_is_ignored(kept: Kept) -> None:
    path = kept.jobs / "file"
    path.write_bytes(b"x")
    for id in ("../a", "..", ".a", "a/b", ""):
        kept.all.keep(id, str(path))
    assert kept.there() == []
    assert not (kept.folder.parent / "a").exists()


@pytest.mark.parametrize("left", ["link", "file"])
def test_what_is_in_the_place_of_a_part_is_not_written_to(worker, left: str) -> None:
    """SEC-2: whoever left it. An unfinished download of an earlier agent is not used either."""
    job = worker(script=SEE, inputs=True)
    job.plane.keep("/input/a", b"once\n")
    precious = job.folder / "precious"
    precious.write_text("of the machine")
    (job.root / "input").mkdir(parents=True)
    part = job.root / "input" / "a.part-of-penstock"
    part.symlink_to(precious) if left == "link" else os.link(precious, part)
    assert job.finish()["result"] == "succeeded", job.log()
    assert job.plane.lines("stdout") == ["once"]
    assert precious.read_text() == "of the machine"
    assert os.listdir(job.root / "input") == ["a"]
    assert (job.root / "input" / "a").stat().st_mode & 0o777 == 0o644
