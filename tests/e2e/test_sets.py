"""Jobs that depend on each other and on files, end to end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import Local

pytestmark = pytest.mark.xdist_group("jobs")

SET = Path(__file__).parents[2] / "examples" / "set"


def test_three_builds_are_signed_by_a_job_that_waits_for_them(local: Local, tmp_path: Path) -> None:
    done = local.cli("job", "run", str(SET))
    assert done.returncode == 0, done.stderr + done.stdout
    jobs = {job["name"]: job for job in local.json("job", "list", "--limit", "6")}
    assert set(jobs) == {"build board-a", "build board-b", "build board-c", "sign", "report", "notes"}
    sign = jobs["sign"]
    assert sorted(each["name"] for each in sign["dependencies"]) == ["board-a", "board-b", "board-c"]
    ends = [jobs[f"build board-{board}"]["times"]["settled"] for board in "abc"]
    assert sign["times"]["ready"] >= max(ends)
    assert jobs["report"]["times"]["ready"] >= sign["times"]["settled"]
    copied = local.cli("job", "copy", sign["id"], "/work/sums.txt", str(tmp_path / "sums"))
    assert copied.returncode == 0, copied.stderr
    signed = [line.split()[1] for line in (tmp_path / "sums").read_text().splitlines()]
    assert signed == [f"board-{board}/work/image.bin" for board in "abc"]
    local.put_back()


def test_a_failed_build_fails_what_waits_for_it_and_a_file_is_sent(local: Local, tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("sent along\n")
    script = local.job_file('cat "$PENSTOCK_INPUT/data.txt"; echo evidence > "$PENSTOCK_WORK/why.txt"; exit 1\n')
    words = ["-i", str(tmp_path / "data.txt"), "-O", "/work/*.txt"]
    first = local.json("job", "run", script, "--no-wait", *words)["id"]
    second = local.submit("true\n", "-d", f"build={first}")
    last = local.submit('cat "$PENSTOCK_INPUT/build/work/why.txt"\n', "-d", f"build={first},on=failure")
    assert local.settled(first)["outcome"] == "failed"
    assert [line["payload"] for line in local.log(first) if line["stream"] == "stdout"] == ["sent along"]
    found = local.settled(second)
    assert found["outcome"] == "failed"
    assert found["reason"].endswith("completing, but it has failed; failing job")
    assert local.settled(last)["outcome"] == "succeeded"
    assert [line["payload"] for line in local.log(last) if line["stream"] == "stdout"] == ["evidence"]
    local.put_back()


BUILT = {
    1: [f"{board}{lab}" for board in ("gimlet-c", "gimlet-d", "gimlet-e", "gimlet-f") for lab in ("", "-lab")],
    2: ["sidecar-b", "sidecar-b-lab", "sidecar-c", "sidecar-c-lab", "sidecar-d", "sidecar-d-lab", "psc-b", "psc-c"],
}
"""What is built for each of two jobs that sign, as firmware of servers is. Two more boards are not signed."""
BUILD = """\
#!/bin/bash
#:
#: name = "build {board}"
#: variety = "basic"
#: target = "ubuntu-24.04"
#: output_rules = ["=/work/*.zip", "/work/*.log"]
#:
#: [[publish]]
#: series = "{board}"
#: name = "{board}.zip"
#: from_output = "/work/build-{board}.zip"
#:
set -o errexit -o pipefail -o xtrace
echo "built {board}" | tee "$PENSTOCK_WORK/build.log"
head -c 100000 /dev/urandom > "$PENSTOCK_WORK/build-{board}.zip"
"""
SIGN = """\
#!/bin/bash
#:
#: name = "sign sp-{number}"
#: variety = "basic"
#: target = "ubuntu-24.04"
#: output_rules = ["=/work/signed.txt"]
#:
{tables}
set -o errexit -o pipefail
cd "$PENSTOCK_INPUT"
sha256sum */work/build-*.zip > "$PENSTOCK_WORK/signed.txt"
"""
TABLE = '#: [dependencies.{board}]\n#: job = "build {board}"\n#:\n'


@pytest.mark.long
def test_a_set_of_twenty_fans_in_to_two_that_sign(local: Local, tmp_path: Path) -> None:
    for board in [*BUILT[1], *BUILT[2], "observer-a", "rot"]:
        (tmp_path / f"{board}.sh").write_text(BUILD.format(board=board))
    for number, boards in BUILT.items():
        tables = "".join(TABLE.format(board=board) for board in boards)
        (tmp_path / f"sign-sp{number}.sh").write_text(SIGN.format(number=number, tables=tables))
    done = local.cli("job", "run", str(tmp_path))
    assert done.returncode == 0, done.stderr + done.stdout
    jobs = {job["name"]: job for job in local.json("job", "list", "--limit", "20")}
    assert len(jobs) == 20
    assert {job["outcome"] for job in jobs.values()} == {"succeeded"}
    for number, boards in BUILT.items():
        sign = jobs[f"sign sp-{number}"]
        assert sign["times"]["ready"] >= max(jobs[f"build {board}"]["times"]["settled"] for board in boards)
        signed = tmp_path / f"signed-{number}"
        assert local.cli("job", "copy", sign["id"], "/work/signed.txt", str(signed)).returncode == 0
        sums = dict(reversed(line.split("  ")) for line in signed.read_text().splitlines())
        assert sums == {
            f"{board}/work/build-{board}.zip": _kept(local, jobs[f"build {board}"]["id"]) for board in boards
        }
    local.put_back()


def _kept(local: Local, job: str) -> str:
    (found,) = [each for each in local.json("job", "outputs", job) if each["path"].endswith(".zip")]
    return str(found["sha256"])
