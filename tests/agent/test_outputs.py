"""What the output rules upload, and when that fails the job."""

import ctypes
import hashlib
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.agent.conftest import accepted
from tests.agent.control_plane import ControlPlane


def outputs(worker, script, rules, **changes):
    job = worker(script=script, output_rules=rules, **changes)
    return job.finish(), job.plane


def test_a_failing_script_still_uploads(worker):
    outcome, plane = outputs(worker, "echo log > a.log; exit 3", ["/work/*.log"])
    assert outcome["result"] == "failed"
    assert plane.outputs() == {"/work/a.log": b"log\n"}
    (upload,) = plane.uploads.values()
    assert (upload["size"], upload["sha256"]) == (4, hashlib.sha256(b"log\n").hexdigest())
    assert plane.lines("detail")[1:] == ["uploading /work/a.log (4 B)", "uploaded /work/a.log"]


FILES = "mkdir -p d/e .h; touch a.txt .b.txt c1 c2 c3 d/x.txt d/e/y.txt .h/z.txt empty"


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (["/work/*.txt"], "a.txt .b.txt"),
        (["/work/**/*.txt"], "a.txt .b.txt d/x.txt d/e/y.txt .h/z.txt"),
        (["/work/d/**"], "d/x.txt d/e/y.txt"),
        (["/work/c[12]", "/work/c?"], "c1 c2 c3"),
        (["/work/c[!12]"], "c3"),
        (["/work/c*", "!/work/c2"], "c1 c3"),
        (["=%/work/empty", "/work/d", "/work/none", "/work/*/nothing"], "empty"),
        (["/*/c1"], "c1"),
    ],
)
def test_globs(worker, rules, expected):
    outcome, plane = outputs(worker, FILES, rules)
    assert outcome["result"] == "succeeded"
    assert sorted(plane.outputs()) == sorted(f"/work/{name}" for name in expected.split())


def test_files_are_found_at_any_depth(worker, tmp_path):
    deep = "/".join(["d"] * 400)
    script = f"for i in 1 2 3; do mkdir -p {deep}; cd {deep}; done; touch f.txt"
    try:
        outcome, plane = outputs(worker, script, ["/work/**/*.txt"])
    finally:
        subprocess.run(["rm", "-rf", tmp_path / "root"], check=True)  # it is too deep for pytest to remove
    assert outcome["result"] == "succeeded"
    assert list(plane.outputs()) == [f"/work/{deep}/{deep}/{deep}/f.txt"]


def test_many_files_go_in_batches(worker):
    outcome, plane = outputs(worker, "touch f{1..120}", ["/work/f*"], limits={"outputs": 200})
    assert outcome["result"] == "succeeded"
    assert len(plane.outputs()) == 120
    assert plane.calls.count("commit") == 2
    assert len(outcome["outputs"]) == 20
    assert plane.lines("detail").count("uploaded /work/f120") == 1


def test_a_few_files_are_recorded_with_the_outcome(worker):
    """The service checks them, and writes them with the job's end: one call less."""
    outcome, plane = outputs(worker, "touch a b", ["=/work/a", "/work/b"])
    assert (outcome["result"], outcome["outputs"]) == ("succeeded", ["o1", "o2"])
    assert plane.outputs() == {"/work/a": b"", "/work/b": b""}
    assert "commit" not in plane.calls


@pytest.mark.parametrize(
    "more",
    [
        {"health": {"after": "true", "timeout_seconds": 5}},
        {"caches": [{"name": "c", "key": "k", "restore_keys": [], "paths": ["/work/d"]}]},
    ],
)
def test_files_are_recorded_at_once_if_something_comes_before_the_outcome(worker, more):
    """Who kills the machine meanwhile takes no output away."""
    job = worker(script="touch a", output_rules=["/work/a"], **more)
    outcome = job.finish()
    assert (outcome["result"], outcome["outputs"]) == ("succeeded", [])
    assert job.plane.calls.count("commit") >= 1
    assert job.plane.calls.index("commit") < job.plane.calls.index("finish")
    assert job.plane.outputs() == {"/work/a": b""}


def test_a_required_rule_without_a_match_fails_the_job(worker):
    outcome, _ = outputs(worker, "touch a", ["/work/a", "=/work/b*"])
    assert outcome["result"] == "failed"
    assert outcome["reason"] == 'no file was uploaded for output rule "=/work/b*", which requires one'


def test_a_failed_script_is_reported_before_failed_outputs(worker):
    outcome, _ = outputs(worker, "exit 4", ["=/work/b"])
    assert outcome["reason"] == 'task 0 "build" exited with code 4'


def test_a_fifo_is_never_opened_and_links_stay_inside(worker):
    """SEC-1: what is outside of the job is not uploaded."""
    script = "mkfifo fifo; ln -s /etc/passwd out; ln -s real in; ln -s nowhere broken; echo r > real"
    outcome, plane = outputs(worker, script, ["/work/*"])
    assert outcome["result"] == "succeeded"
    assert plane.outputs() == {"/work/in": b"r\n", "/work/real": b"r\n"}
    assert "warning: /work/out is a link that leads out of the job's root; it is not uploaded" in plane.lines("worker")


@pytest.mark.parametrize(
    "rule",
    [
        "/../secret", "../secret", "/work/../../secret", "/work/**/../../../secret", "/work/*/../../../secret",
        "/work/[.][.]/../secret", "/work/up/secret", "/work/up/**", "/work/up/../../secret", "=/../../../../etc/passwd",
    ],
)  # fmt: skip
def test_no_rule_reaches_outside_of_the_root(worker, tmp_path, rule):
    """SEC-1: what is outside of the job is not uploaded."""
    (tmp_path / "secret").write_text("secret")
    outcome, plane = outputs(worker, "mkdir d; ln -s ../.. up", [rule])
    assert outcome["result"] == ("failed" if rule.startswith("=") else "succeeded")
    outside = (b"secret", Path("/etc/passwd").read_bytes())
    assert not [data for data in plane.outputs().values() if data in outside]


def test_limits(worker):
    limits = {"outputs": 2, "output_bytes": 1024}
    outcome, plane = outputs(worker, "touch a b c; truncate -s 1025 a", ["/work/*"], limits=limits)
    assert outcome["reason"] == "the output rules match 3 files; a job may have 2 outputs"
    assert sorted(plane.outputs()) == ["/work/b"]
    assert "error: output /work/a was not uploaded: it has 1.0 KiB; the limit is 1.0 KiB" in plane.lines("worker")


def test_a_name_that_is_not_utf8(worker):
    outcome, plane = outputs(worker, "touch a $'b\\xff'", ["/work/*"])
    assert outcome["reason"] == "the name of output b'/work/b\\xff' is not UTF-8"
    assert list(plane.outputs()) == ["/work/a"]


def while_uploading(monkeypatch, change):
    """Have `change` happen to the first upload, in the middle of it."""

    def put(plane, id_, data):
        plane.uploads[id_]["data"] = data
        if len([upload for upload in plane.uploads.values() if "data" in upload]) == 1:
            change()

    monkeypatch.setattr(ControlPlane, "put", put)


def test_a_file_that_changes_fails_the_job(worker, monkeypatch, tmp_path):
    while_uploading(monkeypatch, lambda: (tmp_path / "root/work/a").write_bytes(b"longer than before"))
    outcome, plane = outputs(worker, "echo a > a", ["/work/a"])
    expected = 'output /work/a was not uploaded: it changed while it was read; a rule with "%" allows that'
    assert (outcome["result"], outcome["reason"]) == ("failed", expected)
    assert plane.outputs() == {}


def test_a_file_that_may_grow_is_uploaded_as_it_was(worker, monkeypatch, tmp_path):
    while_uploading(monkeypatch, lambda: (tmp_path / "root/work/a").write_bytes(b"a\nmore"))
    outcome, plane = outputs(worker, "echo a > a", ["=%/work/a"])
    assert outcome["result"] == "succeeded"
    assert plane.outputs() == {"/work/a": b"a\n"}


@pytest.fixture
def b_vanishes(monkeypatch, tmp_path):
    """It was measured, and is gone when it is to be sent."""
    take = ControlPlane._outputs

    def gone(plane, body):
        (tmp_path / "root/work/b").unlink(missing_ok=True)
        return take(plane, body)

    monkeypatch.setattr(ControlPlane, "_outputs", gone)


def test_a_file_that_may_vanish_is_a_warning(worker, b_vanishes):
    outcome, plane = outputs(worker, "echo a > a; echo b > b", ["%/work/*"])
    assert outcome["result"] == "succeeded"
    assert plane.outputs() == {"/work/a": b"a\n"}
    assert "warning: output /work/b was not uploaded: it vanished" in plane.lines("worker")


def test_one_refused_file_does_not_take_the_others_with_it(worker):
    job = worker(script="touch a b c", output_rules=["/work/*"])
    take = job.plane._outputs

    def picky(body):
        refused = any(file["path"] == "/work/b" for file in body["files"])
        return (422, {"detail": "not b"}) if refused else take(body)

    job.plane._outputs = picky
    expected = "output /work/b was not uploaded: the service refused it: HTTP 422: not b"
    assert job.finish()["reason"] == expected
    assert sorted(job.plane.outputs()) == ["/work/a", "/work/c"]


def test_storage_that_refuses_gets_a_fresh_url_and_then_fails_the_job(worker):
    job = worker(lambda endpoint, count: 403 if endpoint == "store" and count == 1 else None, script="touch a")
    job.plane.reply["output_rules"] = ["=/work/a"]
    assert job.finish()["result"] == "succeeded"
    assert job.plane.calls.count("outputs") == 2


def test_outputs_that_the_service_does_not_take_with_the_outcome_come_before_it(worker):
    job = worker(lambda endpoint, count: 409 if endpoint == "finish" and count == 1 else None, script="touch a")
    job.plane.reply["output_rules"] = ["=/work/a"]
    outcome = job.finish()
    assert (outcome["result"], outcome["outputs"]) == ("succeeded", [])
    called = [each for each in job.plane.calls if each in ("commit", "finish")]
    assert called == ["finish", "commit", "finish"]
    assert job.plane.outputs() == {"/work/a": b""}


def test_an_output_that_did_not_arrive_fails_the_job(worker):
    def refuse(endpoint, count):
        return 409 if endpoint == "commit" or (endpoint == "finish" and count == 1) else None

    job = worker(refuse, script="touch a", output_rules=["/work/a"])
    outcome = job.finish()
    assert (outcome["result"], outcome["reason"]) == (
        "failed",
        "outputs were not kept: HTTP 409: as the test wants",
    )
    failure = accepted(outcome["failure"])
    assert (failure["kind"], failure["evidence"]) == ("output_not_kept", {"error": "HTTP 409: as the test wants"})
    assert "error: outputs were not kept: HTTP 409: as the test wants" in job.plane.lines("worker")


def test_an_output_in_parts_that_did_not_arrive_is_sent_again_and_fails_the_job(worker):
    outcome, plane = in_parts(worker, lambda endpoint, count: 409 if endpoint == "commit" else None)
    assert outcome["reason"] == "output /work/big was not uploaded: the service refused it: HTTP 409: as the test wants"
    assert (plane.calls.count("commit"), outcome["outputs"]) == (3, [])


def test_a_report_without_outputs_that_is_refused_is_not_repeated(worker):
    job = worker(lambda endpoint, count: 422 if endpoint == "finish" else None, script="true")
    assert job.run() == 1
    assert (job.plane.calls.count("finish"), job.plane.calls.count("commit")) == (1, 0)


def test_storage_that_always_refuses(worker):
    job = worker(lambda endpoint, count: 403 if endpoint == "store" else None, script="touch a")
    job.plane.reply["output_rules"] = ["/work/a"]
    outcome = job.finish()
    assert (outcome["result"], job.plane.outputs()) == ("failed", {})
    assert outcome["reason"] == "output /work/a was not uploaded: storage answered HTTP 403"
    failure = accepted(outcome["failure"])
    assert failure["kind"] == "output_not_kept"
    assert failure["evidence"] == {"path": "/work/a", "error": "storage answered HTTP 403"}


BIG = "seq -w 9999 | head -c 45000 > big"  # in eleven parts of 4 KiB and one that is smaller


def in_parts(worker, misbehave=lambda endpoint, count: None, rule="/work/big"):
    job = worker(misbehave, script=BIG, output_rules=[rule], limits={"part_bytes": 4096})
    return job.finish(), job.plane


def whole() -> bytes:
    return b"".join(b"%04d\n" % number for number in range(1, 9001))[:45000]


def test_a_big_file_is_sent_in_parts_and_is_the_same(worker):
    outcome, plane = in_parts(worker)
    assert outcome["result"] == "succeeded"
    assert plane.outputs() == {"/work/big": whole()}
    assert sorted(number for _, number in plane.arrived) == list(range(1, 12))
    assert plane.lines("detail")[2:] == ["uploading /work/big (43.9 KiB, in 11 parts)", "uploaded /work/big"]


@pytest.mark.parametrize("fault", ["drop", "forget", 503])
def test_an_interrupted_part_is_sent_again(worker, fault):
    outcome, plane = in_parts(worker, lambda endpoint, count: fault if endpoint == "store" and count % 3 == 1 else None)
    assert outcome["result"] == "succeeded"
    assert plane.outputs() == {"/work/big": whole()}


def test_after_an_expired_url_only_missing_parts_are_sent(worker):
    """Three parts are refused: with fresh leave they are sent, and none of the others."""
    refused = (2, 5, 7)
    outcome, plane = in_parts(worker, lambda endpoint, count: 403 if endpoint == "store" and count in refused else None)
    assert outcome["result"] == "succeeded"
    assert plane.outputs() == {"/work/big": whole()}
    assert plane.calls.count("store") == 11 + len(refused)
    assert len(plane.uploads) == 1


def test_a_big_file_is_named_alone_so_that_no_other_name_expires_meanwhile(worker):
    job = worker(script=f"{BIG}; touch a b; cp big c", output_rules=["/work/*"], limits={"part_bytes": 4096})
    outcome = job.finish()
    assert job.plane.outputs() == {"/work/a": b"", "/work/b": b"", "/work/big": whole(), "/work/c": whole()}
    assert outcome["outputs"] == [], "the small ones are recorded first, and not with the outcome"
    called = [each for each in job.plane.calls if each in ("outputs", "commit", "parts")]
    assert called == ["outputs", "commit", *["outputs", "parts", "commit"] * 2]


def test_refused_parts_fail_the_job(worker):
    outcome, plane = in_parts(worker, lambda endpoint, count: 409 if endpoint == "parts" else None)
    assert outcome["reason"] == "output /work/big was not uploaded: the service refused it: HTTP 409: as the test wants"
    assert plane.calls.count("store") == 0


def test_a_big_file_that_changes_during_the_upload_is_not_mixed(worker, monkeypatch, tmp_path):
    """One part of the old and one of the new would be a file that there never was."""

    def put(plane, id_, data):
        name, _, number = id_.partition(".")
        plane.arrived[name, int(number)] = data
        if plane.calls.count("store") == 1:
            (tmp_path / "root/work/big").write_bytes(b"x" * 45000)

    monkeypatch.setattr(ControlPlane, "put", put)
    outcome, plane = in_parts(worker, rule="=%/work/big")
    assert outcome["result"] == "succeeded"
    assert plane.outputs() == {"/work/big": b"x" * 45000}
    assert len(plane.uploads) == 2


def test_names_in_every_script(worker):
    names = ["Überblick.txt", "日本語/ファイル", "with space", "new\nline", "emoji-🛠", "-dash", "quote'\""]
    made = "; ".join(
        f'mkdir -p "$(dirname -- {shlex.quote(n)})"; echo {i} > ./{shlex.quote(n)}' for i, n in enumerate(names)
    )
    outcome, plane = outputs(worker, made, ["/work/**"])
    assert outcome["result"] == "succeeded"
    assert plane.outputs() == {f"/work/{name}": f"{i}\n".encode() for i, name in enumerate(names)}


def test_a_sparse_file_is_uploaded_whole(worker):
    outcome, plane = outputs(worker, "truncate -s 700000 hole; echo end >> hole; stat -c %b hole", ["=/work/hole"])
    assert outcome["result"] == "succeeded"
    assert plane.outputs() == {"/work/hole": b"\0" * 700000 + b"end\n"}
    assert int(plane.lines("stdout")[0]) * 512 < 100000, "it was sparse"


def test_an_unreadable_file_fails_the_job_and_the_others_are_uploaded(worker):
    job = worker(script="echo a > a; echo b > b; chmod 000 b", output_rules=["/work/*"])
    assert job.start(before=without_roots_privilege).wait(25) == 0
    outcome = job.outcome()
    assert (outcome["failure"]["kind"], outcome["failure"]["evidence"]["path"]) == ("output_not_kept", "/work/b")
    assert "Permission denied" in outcome["failure"]["evidence"]["error"]
    assert job.plane.outputs() == {"/work/a": b"a\n"}


def without_roots_privilege():
    """Root reads what nobody may: from its next exec on it does not. For others nothing changes."""
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


def test_a_required_file_that_vanishes_fails_the_job(worker, b_vanishes):
    outcome, plane = outputs(worker, "echo a > a; echo b > b", ["=/work/*"])
    assert outcome["failure"]["evidence"] == {"path": "/work/b", "error": "it vanished"}
    assert plane.outputs() == {"/work/a": b"a\n"}


def test_leftover_writers_end_before_outputs_are_read(worker):
    script = "(exec setsid bash -c 'while :; do echo more; done > log' &); until [ -s log ]; do sleep 0.05; done"
    job = worker(script=script, output_rules=["%/work/log"], limits={"output_bytes": 1 << 30})
    assert job.finish()["result"] == "succeeded", "what writes has ended before outputs are read"
    assert set(job.plane.outputs()) == {"/work/log"}


def test_special_files_are_ignored(worker):
    socket = "python3 -c 'import socket as s; s.socket(1).bind(\"s\")'"
    script = f"mkdir d; mkfifo f; ln -s loop loop; ln -s /dev/zero zero; {socket}"
    outcome, plane = outputs(worker, script, ["/work/**"])
    assert outcome["result"] == "succeeded"
    assert plane.outputs() == {}
