"""Caches: the next job restores what one job saved, wherever its root is, and no trouble with them fails a job."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.agent.control_plane import PATIENCE_SECONDS

MAKE = """set -e; cd "$PENSTOCK_WORK"
mkdir -p deps/sub deps/empty; echo one > deps/a; echo two > "deps/sub/b c"; chmod 750 deps/a
ln -s sub/b\\ c deps/link; ln deps/a deps/hard; touch -d @1234567890.123456789 deps/a deps/sub
"""
SAVE = MAKE + "bmat cache save deps deps --key k1; echo $?"
SHOW = 'bmat cache restore deps deps --key k1; echo $?; cd "$PENSTOCK_WORK"; find deps -type f | sort'


def again(worker, plane, script="true", **changes):
    """The next job: another worker, that finds what the first has kept."""
    made = worker(script=script, **changes)
    shutil.rmtree(made.root, ignore_errors=True)
    made.plane.caches, made.plane.kept = plane.caches, plane.kept
    return made


def said(job, word):
    return [line for line in job.plane.lines("worker", "stderr") if word in line]


def fresh(job) -> None:
    """Forget that this folder had a job, for the next one."""
    for name in ("token", "progress"):
        (job.folder / name).unlink(missing_ok=True)


@pytest.fixture
def saved(worker):
    """A job that has saved `deps`."""
    job = worker(script=SAVE)
    assert job.finish()["result"] == "succeeded"
    assert job.plane.lines("stdout") == ["saved", "0"], job.plane.lines()
    fresh(job)
    return job


def test_another_job_restores_a_cache_with_modes_times_and_links(worker, saved):
    assert saved.plane.caches["c1"]["paths"] == ["/work/deps"], "where it is in the job, not on the machine"
    (line,) = said(saved, "saved as")
    assert line.startswith("bmat: cache deps: saved as c1, key 'k1', scope trunk: 7 entries, ")
    job = again(worker, saved.plane, SHOW + '; readlink deps/link; stat -c "%a %Y %y %h" deps/a deps/sub')
    assert job.finish()["result"] == "succeeded"
    hit, code, *files, link, first, second = job.plane.lines("stdout")
    assert (hit, code, files, link) == ("hit", "0", ["deps/a", "deps/hard", "deps/sub/b c"], "sub/b c")
    assert first == "750 1234567890 2009-02-13 23:31:30.123456789 +0000 2"
    assert second.split()[1] == "1234567890"
    assert (job.root / "work/deps/empty").is_dir()
    (line,) = said(job, "restored")
    assert line.startswith("bmat: cache deps: restored from c1, key 'k1', scope trunk: 7 entries, ")
    assert not list((job.root / "work/deps").glob(".penstock*"))
    assert not list((job.root / "tmp").glob("cache-*"))


def test_an_archive_has_no_owners(saved, tmp_path):
    import tarfile

    path = tmp_path / "a.tar.gz"
    path.write_bytes(saved.plane.kept["c1"])
    with tarfile.open(path) as tar:
        assert {(each.uid, each.gid, each.uname, each.gname) for each in tar} == {(0, 0, "", "")}
        assert tar.getnames()[0] == "work/deps"


def test_a_script_sees_a_miss(worker):
    job = worker(
        script="bmat cache restore deps deps --key k --restore-key j; echo $?\n"
        "bmat cache restore deps >&- 2>&-; echo $?"
    )
    assert job.finish()["result"] == "succeeded"
    assert job.plane.lines("stdout") == ["1", "2"]
    assert said(job, "miss") == [
        "bmat: cache deps: miss: there is no entry with the key 'k', and none that starts with 'j'"
    ]


def test_a_match_by_a_restore_key_is_partial(worker, saved):
    job = again(worker, saved.plane, "bmat cache restore deps deps --key k2 --restore-key x --restore-key k")
    assert job.finish()["result"] == "succeeded"
    assert job.plane.lines("stdout") == ["partial"]
    assert "restored by a restore key from c1, key 'k1'" in said(job, "restored")[0]


def test_a_key_that_has_an_entry_is_neither_packed_nor_sent(worker, saved):
    job = again(worker, saved.plane, SAVE)
    assert job.finish()["result"] == "succeeded"
    assert job.plane.lines("stdout") == ["there", "0"]
    assert "save" not in job.plane.calls
    assert said(job, "already") == [
        "bmat: cache deps: c1 has the key 'k1' in the scope trunk already; nothing was saved"
    ]


def test_the_second_of_two_writers_overwrites_nothing(worker):
    job = worker(script=SAVE)
    other = {
        "name": "deps",
        "paths": ["/work/deps"],
        "key": "k1",
        "id": "c9",
        "scope": "trunk",
        "size": 1,
        "sha256": "0",
    }

    def meanwhile(body):
        job.plane.caches["c9"] = other
        return type(job.plane)._save(job.plane, body)

    job.plane._save = meanwhile
    assert job.finish()["result"] == "succeeded"
    assert job.plane.lines("stdout") == ["there", "0"]
    assert said(job, "nothing was overwritten")
    assert list(job.plane.caches) == ["c9"]


def declared(key="k1", **more):
    return {"caches": [{"name": "deps", "paths": ["deps"], "key": key, "restore_keys": [], **more}]}


def test_a_declared_cache_is_restored_before_the_script_and_saved_after_success(worker):
    job = worker(script=MAKE, **declared())
    assert job.finish()["result"] == "succeeded"
    miss, kept = job.plane.lines("worker")
    assert miss == "cache deps: miss: there is no entry with the key 'k1'"
    assert kept.startswith("cache deps: saved as c1, key 'k1', scope trunk: 7 entries, ")
    fresh(job)
    following = again(worker, job.plane, 'cat "$PENSTOCK_WORK/deps/a"', **declared())
    assert following.finish()["result"] == "succeeded"
    assert following.plane.lines("stdout") == ["one"]
    (line,) = following.plane.lines("worker")
    assert line.startswith("cache deps: restored from c1")
    assert "save" not in following.plane.calls


def test_a_job_that_fails_saves_nothing(worker):
    job = worker(script=MAKE + "false", **declared())
    assert job.finish()["result"] == "failed"
    assert "save" not in job.plane.calls


def test_a_job_with_a_missing_output_saves_no_cache(worker):
    job = worker(script=MAKE, output_rules=["=/work/none"], **declared())
    assert job.finish()["result"] == "failed"
    assert "save" not in job.plane.calls


def test_keys_contain_digests_of_files(worker):
    key = '{{ hash "lock" }}-{{ hash "crates/*/x" "/input/y" }}'
    script = (
        'cd "$PENSTOCK_WORK"; mkdir -p crates/a crates/b; echo 1 > lock; echo 2 > crates/a/x; echo 2 > crates/b/x\n'
        f"echo 3 > \"$PENSTOCK_INPUT/y\"; bmat cache save a lock --key '{key}'; echo 2 > lock\n"
        f"bmat cache save a lock --key '{key}'; mv crates/b crates/c; bmat cache save a lock --key '{key}'\n"
        f'cd /; cd "$PENSTOCK_WORK/crates"; bmat cache save a ../lock --key \'{{{{ hash "../lock" }}}}-k\''
    )
    job = worker(script=script)
    assert job.finish()["result"] == "succeeded"
    assert job.plane.lines("stdout") == ["saved"] * 4, job.plane.lines()
    one, two, three, four = [each["key"] for each in job.plane.caches.values()]
    assert (len(one), one[:64] == two[:64], one[64:] == two[64:], two[64:] == three[64:]) == (129, False, True, False)
    assert four == f"{two[:64]}-k"
    assert {tuple(each["paths"]) for each in job.plane.caches.values()} == {("/work/lock",)}


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ('{{ hash "none" }}', "there is no file 'none' to hash"),
        ("{{ date }}", "'{{ date }}' has an unknown placeholder; the only one is {{ hash \"FILE\" }}"),
    ],
)
def test_a_key_that_cannot_be_computed_is_a_miss(worker, key, why):
    job = worker(script="mkdir -p $PENSTOCK_WORK/deps", **declared(key))
    assert job.finish()["result"] == "succeeded"
    assert job.plane.lines("worker") == [f"cache deps: miss: {why}", f"cache deps: not saved: {why}"]
    assert "find" not in job.plane.calls


def test_a_truncated_or_altered_archive_is_a_miss_and_leaves_nothing(worker, saved):
    data = saved.plane.kept["c1"]
    for wrong in (data[:-20], data[:-1] + b"x", data + b"x"):
        saved.plane.kept["c1"] = wrong
        job = again(worker, saved.plane, "bmat cache restore deps deps --key k1; echo $?; ls -A $PENSTOCK_WORK")
        assert job.finish()["result"] == "succeeded"
        assert job.plane.lines("stdout") == ["1"]
        assert "c1 could not be fetched: " in said(job, "miss")[0]
        fresh(job)


def test_an_entry_that_is_evicted_during_the_download_is_a_miss(worker, saved):
    job = again(worker, saved.plane, **declared())
    job.plane.misbehave = lambda endpoint, count: 404 if endpoint == "kept" else None
    assert job.finish()["result"] == "succeeded"
    assert "cache deps: miss: c1 could not be fetched: storage answered HTTP 404" in job.plane.lines("worker")


@pytest.mark.parametrize("endpoint", ["find", "save", "commit", "store"])
def test_a_service_that_refuses_caches_fails_no_job(worker, endpoint):
    job = worker(lambda each, count: 409 if each == endpoint else None, script=SAVE, **declared())
    assert job.finish()["result"] == "succeeded"
    assert job.plane.lines("stdout") == ["failed", "0"]
    assert len(said(job, "not saved: ")) == 2
    assert job.plane.caches == {}


def test_missing_paths_are_reported_and_not_saved(worker):
    job = worker(script='cd "$PENSTOCK_WORK"; bmat cache save a x y; touch x; mkfifo z; bmat cache save a x y z')
    assert job.finish()["result"] == "succeeded"
    assert job.plane.lines("stdout") == ["failed", "saved"]
    assert said(job, "not saved") == ["bmat: cache a: not saved: none of /work/x, /work/y exists"]
    (line,) = said(job, "saved as")
    assert "; missing: /work/y; 1 devices, pipes and sockets left out in " in line


def test_an_archive_over_the_limit_is_not_sent(worker):
    job = worker(
        script="head -c 300000 /dev/urandom > $PENSTOCK_WORK/deps", limits={"cache_bytes": 100000}, **declared()
    )
    assert job.finish()["result"] == "succeeded"
    assert "not saved: the archive has more than 100000 bytes, the site's limit" in said(job, "not saved")[0]
    assert "save" not in job.plane.calls


def test_a_path_out_of_the_root_is_not_saved(worker, tmp_path):
    job = worker(
        script=f'ln -s {tmp_path} "$PENSTOCK_WORK/out"; bmat cache save a "$PENSTOCK_WORK/out/agent.json"\n'
        "bmat cache save a /"
    )
    assert job.finish()["result"] == "succeeded"
    assert job.plane.lines("stdout") == ["failed", "failed"]
    assert said(job, "not saved") == [
        "bmat: cache a: not saved: /work/out/agent.json leads out of the job's root",
        "bmat: cache a: not saved: the whole machine cannot be a cache",
    ]


def test_no_secret_is_part_of_a_key(worker):
    secret = "Tr0ub4dor&3/+x"
    job = worker(
        script=f"bmat store put -s s '{secret}'; cd \"$PENSTOCK_WORK\"; touch x; bmat cache save a x --key '{secret}'"
    )
    assert job.finish()["result"] == "succeeded"
    assert said(job, "not saved") == ["bmat: cache a: not saved: its name, key or paths contain a secret of the job"]
    assert "find" not in job.plane.calls


def test_existing_files_stay_except_those_in_the_archive(worker, saved):
    script = (
        'cd "$PENSTOCK_WORK"; mkdir deps; echo mine > deps/mine; echo other > deps/a; '
        + SHOW
        + "; cat deps/a deps/mine"
    )
    job = again(worker, saved.plane, script)
    assert job.finish()["result"] == "succeeded"
    assert job.plane.lines("stdout")[-2:] == ["one", "mine"]


def test_an_archive_that_does_not_fit_is_a_miss_and_changes_nothing(worker, saved):
    script = 'cd "$PENSTOCK_WORK"; mkdir -p deps/a; ' + SHOW.replace("-type f ", "")
    job = again(worker, saved.plane, script)
    assert job.finish()["result"] == "succeeded"
    assert job.plane.lines("stdout") == ["1", "deps", "deps/a"]
    assert "is a folder, but the archive's entry is not" in said(job, "miss")[0]


def test_a_link_that_leads_out_is_not_followed(worker, saved, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    job = again(worker, saved.plane, f'cd "$PENSTOCK_WORK"; ln -s {outside} deps; ' + SHOW)
    assert job.finish()["result"] == "succeeded"
    assert os.listdir(outside) == []
    assert (job.root / "work/deps/a").read_text() == "one\n"
    assert not (job.root / "work/deps").is_symlink()


def test_a_folder_in_the_home_is_restored_on_any_machine(worker):
    job = worker(
        script="mkdir -p ~/.cache/x; touch ~/.cache/x/y; bmat cache save h ~/.cache/x",
        **declared(paths=["~/.cache/x"], key="d"),
    )
    assert job.finish()["result"] == "succeeded"
    assert {tuple(each["paths"]) for each in job.plane.caches.values()} == {("/home/.cache/x",)}


def test_a_job_that_is_cancelled_does_not_wait_for_its_cache(worker):
    job = worker(
        script='cd "$PENSTOCK_WORK"; mkdir deps; (cd deps; for i in $(seq 3000); do echo > $i; done)\n'
        "echo made; bmat cache save a deps; sleep 60"
    )
    agent = job.start()
    job.plane.wait_for_line("made")
    job.plane.cancel = True
    assert agent.wait(PATIENCE_SECONDS) == 0
    assert job.outcome()["result"] == "cancelled"


def test_a_job_past_its_timeout_saves_no_cache(worker):
    job = worker(script=MAKE, output_rules=["/work/deps/*"], timeout_seconds=4, **declared())
    slow = type(job.plane)._outputs

    def outputs(body):
        import time

        time.sleep(4)
        return slow(job.plane, body)

    job.plane._outputs = outputs
    assert job.finish()["result"] == "succeeded"
    assert job.plane.lines("worker")[-1] == "cache deps: not saved: the job's time is over"


def test_a_refused_url_is_replaced_by_a_fresh_one(worker, saved):
    job = again(worker, saved.plane, **declared())
    job.plane.misbehave = lambda endpoint, count: 403 if (endpoint, count) == ("kept", 1) else None
    assert job.finish()["result"] == "succeeded"
    assert job.plane.calls.count("find") == 2
    assert Path(job.root, "work/deps/a").exists()


BIG = "mkdir deps; head -c 300000 /dev/urandom > deps/a; sha256sum < deps/a; "
SMALL = {"part_bytes": 65536}


def test_a_big_archive_is_sent_in_parts(worker):
    job = worker(script=BIG + "bmat cache save deps deps --key k1", limits=SMALL)
    assert job.finish()["result"] == "succeeded"
    digest, word = job.plane.lines("stdout")
    assert word == "saved"
    assert job.plane.calls.count("store") == len(job.plane.arrived) == 5
    fresh(job)
    then = again(worker, job.plane, "bmat cache restore deps deps --key k1; sha256sum < deps/a")
    assert then.finish()["result"] == "succeeded"
    assert then.plane.lines("stdout") == ["hit", digest]


@pytest.mark.parametrize("limits", [SMALL, {}])
def test_a_cancelled_job_stops_sending_its_archive(worker, limits):
    def misbehave(endpoint, count):
        if endpoint == "store":
            job.plane.cancel = True
            return 503
        return None

    wanted = {"name": "deps", "paths": ["deps"], "key": "k", "restore_keys": []}
    job = worker(misbehave, script=BIG, caches=[wanted], limits=limits)
    assert job.finish()["result"] == "succeeded", "its script had ended"
    assert job.plane.lines("worker")[-1] == "cache deps: not saved: the work is stopped"
    assert job.plane.calls.count("store") <= 16
    assert "commit" not in job.plane.calls
