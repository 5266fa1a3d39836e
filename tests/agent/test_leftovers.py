"""What a job leaves outside of its folders is gone before the next job, and what is others' stays. [UNIT-2]"""

import os
import platform
import pwd
import socket
from pathlib import Path

import pytest

from penstock.agent import account, keyrings, leftovers, removal
from penstock.agent.account import Account
from penstock.agent.leftovers import remove_owned

OTHER = 23456
BEFORE = f"""
mkdir -p $ROOT/var/spool/cron/crontabs $ROOT/var/spool/cron/atjobs $ROOT/var/lib/systemd/linger $ROOT/var/mail
mkdir -p $ROOT/var/crash; chmod 1777 $ROOT/var/crash
chmod 1777 $ROOT/var/spool/cron/crontabs $ROOT/var/spool/cron/atjobs $ROOT/var/mail
mkdir -p -m 700 $ROOT/run/user/12345; touch $ROOT/run/user/12345/bus; chown -R 12345 $ROOT/run/user/12345
touch $ROOT/var/lib/systemd/linger/build $ROOT/var/lib/systemd/linger/other
mkdir -m 1777 $ROOT/var/tmp/ours $ROOT/var/tmp/closed; chmod 700 $ROOT/var/tmp/closed
for each in var/tmp/other var/tmp/ours/other dev/shm/other run/lock/other dev/mqueue/other \\
  var/spool/cron/crontabs/other var/spool/cron/atjobs/other var/mail/other; do
  echo other > $ROOT/$each || touch $ROOT/$each; chown {OTHER} $ROOT/$each
done
python3 -c "import ctypes; ctypes.CDLL(None).shmget(99, 4096, 0o1666)"
dumps=$ROOT/var/lib/systemd/coredump; mkdir -p $dumps $ROOT/var/log/journal/0123
for user in 12345 {OTHER}; do
  touch $dumps/core.sleep.$user.0123.99.1700000000000000.zst
  touch $ROOT/var/log/journal/0123/user-$user.journal $ROOT/var/log/journal/0123/user-$user@0a-1-2.journal~
done
touch $dumps/core.sh.0.0123.12345.1700000000000000.zst $ROOT/var/log/journal/0123/system.journal
"""
SYSTEM_V = """
import ctypes
libc = ctypes.CDLL(None)
assert libc.shmget(77, 4096, 0o1666) >= 0 and libc.msgget(77, 0o1666) >= 0 and libc.semget(77, 1, 0o1666) >= 0
"""
LEAVE = f"""set -e
mkdir -p /var/tmp/mine/deep; echo x > /var/tmp/mine/deep/file; echo x > /var/tmp/ours/mine; ln -s /etc /var/tmp/link
echo x > /dev/shm/mine; : > /dev/mqueue/mine; echo x > /run/lock/mine; echo x > /run/user/12345/mine
echo '* * * * * id' > /var/spool/cron/crontabs/build; echo id > /var/spool/cron/atjobs/a0001; echo x > /var/mail/build
echo x > /var/crash/mine
python3 -c '{SYSTEM_V}'
env -i setsid sleep 4711 > /dev/null 2>&1 &
set +e
"""
LOOK = """
find /var/tmp /dev/shm /dev/mqueue /run/lock /run/user /var/spool/cron /var/mail /var/crash \\
  /var/lib/systemd/linger /var/lib/systemd/coredump /var/log/journal/0123 \\
  ! -type d -exec sh -c 'echo "there: $0"' {} ';'
for kind in shm msg sem; do tail -n +2 /proc/sysvipc/$kind | sed "s/^ *\\([0-9]*\\) .*/there: $kind \\1/"; done
for each in /proc/[0-9]*; do [ "$(tr '\\0' ' ' < $each/cmdline)" != "sleep 4711 " ] || echo "there: a process"; done
"""
STAYS = {
    *("/var/tmp/other", "/var/tmp/ours/other", "/dev/shm/other", "/run/lock/other", "/dev/mqueue/other"),
    *("/var/spool/cron/crontabs/other", "/var/spool/cron/atjobs/other", "/var/mail/other"),
    *("/var/lib/systemd/linger/other", "shm 99"),
    f"/var/lib/systemd/coredump/core.sleep.{OTHER}.0123.99.1700000000000000.zst",
    "/var/lib/systemd/coredump/core.sh.0.0123.12345.1700000000000000.zst",
    *(f"/var/log/journal/0123/{name}.journal" for name in ("system", f"user-{OTHER}")),
    f"/var/log/journal/0123/user-{OTHER}@0a-1-2.journal~",
}


def there(job):
    return {line.partition(": ")[2] for line in job.plane.lines("stdout") if line.startswith("there: ")}


def two_jobs(machine, leave, sudo=False, before=BEFORE, look=LOOK):
    """Run a job on a machine, then one that looks. Return the second, and the lines of the first."""
    left = []

    def prepare(plane):
        first = plane._hello

        def hello(body):
            if "previous" not in body:
                return first(body)
            if left:
                plane.hellos.append(body)
                return 410, {"detail": "no longer wanted"}
            left.extend(plane.lines("stdout"))
            tasks = [{**plane.reply["tasks"][0], "script": look}]
            plane.reply, plane.token = {**plane.reply, "tasks": tasks}, None
            plane.events.clear()
            return first(body)

        plane._hello = hello

    job = machine(before, prepare=prepare, script=leave + look, reuse=True, sudo=sudo)
    assert job.code == 0, job.log()
    return job, left


@pytest.mark.e2e
@pytest.mark.parametrize("sudo", [True, False])
def test_nothing_of_each_kind_is_left_for_the_next_job(machine, sudo):
    """UNIT-2, SEC-2: and nothing of others is touched."""
    job, left = two_jobs(machine, LEAVE, sudo)
    before = {line.partition(": ")[2] for line in left if line.startswith("there: ")}
    assert {"/var/tmp/mine/deep/file", "/dev/shm/mine", "/dev/mqueue/mine", "/run/lock/mine"} < before
    assert {
        "/var/spool/cron/crontabs/build",
        "/var/spool/cron/atjobs/a0001",
        "/var/mail/build",
        "/var/crash/mine",
    } < before
    assert {"/run/user/12345/mine", "/var/tmp/link", "/var/tmp/ours/mine", "/var/lib/systemd/linger/build"} < before
    assert {
        "/var/lib/systemd/coredump/core.sleep.12345.0123.99.1700000000000000.zst",
        "/var/log/journal/0123/user-12345.journal",
        "/var/log/journal/0123/user-12345@0a-1-2.journal~",
    } < before
    assert {"shm 77", "msg 77", "sem 77", "a process"} < before
    assert there(job) == STAYS
    assert "nothing of build is in shared folders, IPC or spools" in job.plane.hellos[-1]["cleaned"]


SUBORDINATE = """
: > $ROOT/etc/subuid  # so that the first user who is made gets the ids from 100000 on
mkdir $ROOT/var/tmp/theirs
for at in var/tmp/theirs dev/shm run/lock; do echo x > $ROOT/$at/theirs; chown 100005 $ROOT/$at/theirs; done
chown 100005 $ROOT/var/tmp/theirs
python3 -c "import ctypes, os; os.setuid(100005); assert ctypes.CDLL(None).shmget(78, 4096, 0o1666) >= 0"
python=$(command -v python3)
env -i "$python" -c "import os; os.chdir('/'); os.setuid(100005); os.execv('/bin/sleep', ['sleep', '4711'])" &
"""


@pytest.mark.e2e
def test_nothing_of_a_subordinate_id_is_left_for_the_next_job(machine):
    """UNIT-2: `useradd` gives the jobs' user 65,536 more ids. The machine is in a chroot, where none can be used."""
    job, left = two_jobs(machine, "grep ^build: /etc/subuid\n", before=BEFORE + SUBORDINATE)
    if "build:100000:65536" not in left:
        pytest.skip(f"useradd gives other subordinate ids here, or none: {left[:3]}")
    made = {"/var/tmp/theirs/theirs", "/dev/shm/theirs", "/run/lock/theirs", "shm 78", "a process"}
    assert made < {line.partition(": ")[2] for line in left}
    assert there(job) == STAYS


FUSE = """
mkdir $ROOT/var/tmp/disk; chown 12345 $ROOT/var/tmp/disk
python3 - $ROOT/var/tmp/disk <<'PY' || :
import ctypes, os, sys
fuse = os.open("/dev/fuse", os.O_RDWR)  # closed at the end, like that of a program that was killed
options = f"fd={fuse},rootmode=40000,user_id=12345,group_id=12345".encode()
ctypes.CDLL(None).mount(b"x", sys.argv[1].encode(), b"fuse.x", 6, options)
PY
"""


@pytest.mark.e2e
def test_a_mount_of_the_users_does_not_keep_its_machine_from_being_cleaned(machine):
    """UNIT-2: not even root may look at what another user has mounted by FUSE."""
    job, left = two_jobs(machine, "grep -c ' fuse.x ' /proc/mounts\n", before=BEFORE + FUSE)
    if "0" in left:
        pytest.skip("no leave to mount by FUSE")
    assert there(job) == STAYS
    assert "nothing of build is in shared folders" in job.plane.hellos[-1]["cleaned"]


KEYS = f"""
import ctypes
libc = ctypes.CDLL(None)
libc.syscall.restype = ctypes.c_long
def keyctl(*words):
    return libc.syscall(ctypes.c_long({keyrings.CALLS.get(platform.machine(), {}).get(keyrings.KEYCTL, -1)}), *words)
rings = {{"session": -3, "user": -4, "user session": -5, "persistent": keyctl(22, -1, -1)}}
there = [name for name, ring in rings.items() if keyctl(10, ring, b"user", b"token", 0) > 0]
print("keys of an earlier job:", *there)
"""
STORE_KEYS = f"""python3 - <<'PY'
{KEYS}
import os
add = 248 if os.uname().machine == "x86_64" else 217
made = [name for name, ring in rings.items() if libc.syscall(ctypes.c_long(add), b"user", b"token", b"x", 1, ring) > 0]
keyctl(5, -4, 0x3F3F0000 & ~0x04040000)  # it may not change its own keyring any more
print("keys:", *made)
PY
"""


@pytest.mark.e2e
@pytest.mark.skipif(platform.machine() not in keyrings.CALLS, reason="keyrings of other platforms are not cleared")
def test_no_keyring_has_a_key_of_an_earlier_job(machine):
    """UNIT-2, SEC-1: neither those of the user, nor that of the session, which the agent's processes inherit."""
    keyrings.join_new_session()  # as systemd has its services do: the agent inherits it
    job, left = two_jobs(machine, STORE_KEYS, look=f"python3 - <<'PY'\n{KEYS}\nPY\n")
    (made,) = [line for line in left if line.startswith("keys:")]
    if made == "keys:":
        pytest.skip("no leave to use keyrings")
    assert {"session", "user"} <= set(made.split()), "else this shows little"
    assert "keys of an earlier job:" in job.plane.lines("stdout"), job.plane.lines()


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")


@needs_root
def test_folders_of_others_are_searched_where_the_user_can_enter(tmp_path):
    for name, mode in (("open", 0o777), ("closed", 0o700)):
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "inner" / "file").touch()
        os.chown(tmp_path / name / "inner" / "file", 12345, 12345)
        (tmp_path / name).chmod(mode)
    (tmp_path / "socket").touch()
    (tmp_path / "socket").unlink()
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "socket"))
    os.chown(tmp_path / "socket", 12345, 12345)
    assert remove_owned(str(tmp_path), {12345}) == 2
    assert sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*")) == [
        "closed", "closed/inner", "closed/inner/file", "open", "open/inner",
    ]  # fmt: skip
    assert remove_owned(str(tmp_path / "absent"), {12345}) == 0


def test_the_ids_of_a_user_are_its_own_and_its_subordinate_ones_that_nobody_else_has(tmp_path, monkeypatch):
    """UNIT-2: a list that gives it the ids of others, even root's, makes nothing of theirs the user's."""
    lines = ["nobody-5:200000:10", "99999:300000:1", "other:400000:10", "nobody-5:0:70000", "nobody-5:x:1", "nonsense"]
    (tmp_path / "subuid").write_text("\n".join(lines))
    monkeypatch.setattr(account, "SUBORDINATE_UIDS", str(tmp_path / "subuid"))
    uids = Account("nobody-5", 99999, 99999, "/").uids()
    for id in (99999, 200000, 200009, 300000, 60001):
        assert id in uids
    for id in (0, 199999, 200010, 300001, 400000, pwd.getpwnam("nobody").pw_uid):
        assert id not in uids
    monkeypatch.setattr(account, "SUBORDINATE_UIDS", str(tmp_path / "absent"))
    assert 200000 not in Account("nobody-5", 99999, 99999, "/").uids()


@needs_root
def test_a_link_is_removed_and_not_what_it_leads_to(tmp_path):
    """SEC-2: not even its mounts are looked at."""
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").touch()
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "link").symlink_to(tmp_path / "precious")
    os.lchown(tmp_path / "shared" / "link", 12345, 12345)
    assert remove_owned(str(tmp_path / "shared"), {12345}) == 1
    assert (tmp_path / "precious" / "file").exists()


@needs_root
def test_folders_that_are_too_deep_to_search_make_the_machine_unclean(tmp_path, monkeypatch):
    monkeypatch.setattr(leftovers, "DEEPEST", 3)
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert remove_owned(str(tmp_path), {12345}) == 0
    (tmp_path / "a" / "b" / "c").mkdir()
    with pytest.raises(OSError, match="a/b/c is too deep"):
        remove_owned(str(tmp_path), {12345})


def test_ipc_that_cannot_be_removed_makes_the_machine_unclean(tmp_path, monkeypatch):
    for kind, id in (("shm", "shmid"), ("msg", "msqid"), ("sem", "semid")):
        row = f"0 4711 600 {99999 if kind == 'sem' else 5} 5\n"
        (tmp_path / kind).write_text(f"key {id} perms uid cuid\n{row}")
    monkeypatch.setattr(leftovers, "SYSTEM_V", str(tmp_path))
    monkeypatch.setattr(leftovers, "SHARED", ())
    with pytest.raises(OSError, match=r"System V sem .4711. of the user nobody-5 can't be removed"):
        leftovers.remove_possessions(Account("nobody-5", 99999, 99999, "/"))


def test_a_process_that_cannot_be_ended_makes_the_machine_unclean(monkeypatch):
    monkeypatch.setattr(leftovers, "KILL_ROUNDS", 2)
    monkeypatch.setattr(leftovers, "_processes", lambda user: iter([2**22 + 1]))
    monkeypatch.setattr(leftovers, "SPOOLS", ())
    with pytest.raises(OSError, match="of the user nobody-5 can't be ended"):
        leftovers.end_user(Account("nobody-5", 99999, 99999, "/"))


def test_the_mounts_of_a_link_are_not_those_of_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/")
    assert removal._place_of(str(tmp_path / "link")) == f"{os.path.realpath(tmp_path)}/link"
    assert removal._mounts(str(tmp_path / "link"), None) == []


def test_only_mounts_of_the_user_are_unmounted_the_last_first(tmp_path: Path, monkeypatch) -> None:
    """UNIT-2: wherever they are. One that stays makes the machine unclean."""
    line = "36 35 0:50 / {} rw,nosuid shared:1 - {} x rw,user_id={},group_id=5"
    mounts = [
        line.format("/var/tmp/a\\040b", "fuse.sshfs", 12345),
        line.format("/home/other", "fuse.sshfs", 123456),
        line.format("/media", "fuseblk", 0),
        line.format("/mnt", "ext4", 12345),
        line.format("/var/tmp/a\\040b/c", "fuse", 12345),
        "36 35 98:0 / / rw,noatime - ext4 /dev/root rw",
        "nonsense",
    ]
    asked = []
    (tmp_path / "mounts").write_text("\n".join(mounts))
    monkeypatch.setattr(removal, "MOUNTS", str(tmp_path / "mounts"))
    monkeypatch.setattr(removal.subprocess, "run", lambda words, **_: asked.append(words[-1]))
    with pytest.raises(OSError, match="may not unmount it: '/var/tmp/a b'"):
        removal.unmount_owned({12345})
    assert asked == ["/var/tmp/a b/c", "/var/tmp/a b"]
    removal.unmount_owned({12346})
    assert len(asked) == 2


def a_kernel_that_answers(monkeypatch: pytest.MonkeyPatch, *answers: tuple[str, int]) -> list[tuple[str, int]]:
    """Have the kernel answer calls with these errors: the name of a call, or a command of keyctl, and the error."""
    asked: list[tuple[str, int]] = []

    def call(name: str, *words: int) -> int:
        asked.append((name, words[0]))
        for which, code in answers:
            if which in (name, str(words[0])):
                raise OSError(code, os.strerror(code))
        return 4711

    monkeypatch.setattr(keyrings, "_call", call)
    return asked


EACCES, EPERM, ENOSYS, REVOKED = 13, 1, 38, 128


@pytest.mark.parametrize(
    "answers",
    [
        [(keyrings.KEYCTL, ENOSYS)],
        [(keyrings.KEYCTL, EPERM)],
        [(keyrings.SETRESUID, ENOSYS)],
        [(str(keyrings.GET_PERSISTENT), 95)],
        [(str(keyrings.CLEAR), REVOKED)],
        [(str(keyrings.SET_PERMISSIONS), EACCES)],
    ],
)
def test_where_nobody_can_use_keyrings_there_is_nothing_to_clear(monkeypatch: pytest.MonkeyPatch, answers) -> None:
    asked = a_kernel_that_answers(monkeypatch, *answers)
    keyrings.clear_keyrings(99999)
    assert asked[0] == (keyrings.SETRESUID, 99999)


@pytest.mark.parametrize("answer", [(keyrings.SETRESUID, EPERM), (str(keyrings.CLEAR), EACCES)])
def test_keyrings_that_cannot_be_cleared_make_the_machine_unclean(monkeypatch: pytest.MonkeyPatch, answer) -> None:
    """UNIT-2: whether the agent may not become the user, or the user has forbidden itself to change them."""
    a_kernel_that_answers(monkeypatch, answer)
    with pytest.raises(OSError, match="the keyrings of the user 99999 cannot be cleared"):
        keyrings.clear_keyrings(99999)


def test_a_session_where_nobody_can_use_keyrings(monkeypatch: pytest.MonkeyPatch) -> None:
    a_kernel_that_answers(monkeypatch, (keyrings.KEYCTL, EPERM))
    keyrings.join_new_session()
    a_kernel_that_answers(monkeypatch, (keyrings.KEYCTL, 12))
    with pytest.raises(OSError, match="memory"):
        keyrings.join_new_session()
