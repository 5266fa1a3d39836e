"""Hosts whose agent runs as root, and whose jobs run as a user of their own: `--user`. [SEC-2]"""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from penstock.agent import account, hostuser, prepare
from penstock.agent.account import Account
from penstock.agent.machine import Machine
from tests.agent import layered
from tests.agent.attack import ATTACK, OTHERS, TRIES, tries
from tests.agent.control_plane import PATIENCE_SECONDS
from tests.agent.lab import TOKEN, WORKERS, Lab

STATE, TOKEN_FILE, UID = "/var/lib/penstock", "/etc/penstock-token", 12399
BEFORE = f"""
chroot $ROOT groupadd -g {UID} bench
chroot $ROOT useradd -u {UID} -g {UID} -d /nonexistent -M bench
echo {TOKEN} > $ROOT{TOKEN_FILE}; chmod 600 $ROOT{TOKEN_FILE}; mkdir -m 755 $ROOT/srv/jobs
"""
HOST_ATTACK = (
    ATTACK.replace("/opt/penstock/agent.json", f"{STATE}/worker/agent.json")
    .replace("/opt/penstock", f"{STATE}/worker")
    .replace("/usr/local/lib/penstock/job.pyz", "$PROGRAM")
    .replace("/usr/local/bin/bmat", '"$(command -v bmat)"')
    + f"""
tried "read the host's token" cat {TOKEN_FILE}
tried "list the host's state" ls {STATE}
tried "replace the host's state" mv {STATE} /var/lib/other
for each in /proc/[0-9]*; do
  tr '\\0' ' ' < $each/cmdline 2>/dev/null | grep -q 'agent.pyz host' && host=${{each#/proc/}}
done
tried "read the host's environment" cat /proc/$host/environ
tried "signal the host" /bin/kill -CONT $host
"""
)
HOST_TRIES = TRIES + 5


class Bench:
    """A machine with a host's agent."""

    def __init__(self, agent, folder, stack):
        self.agent, self.folder, self.stack = agent, folder, stack
        self.layer = layered.layer(folder)
        (folder / "agent.json").write_text("{}")

    def start(self, *words, before="", **changes):
        self.lab = self.stack.enter_context(Lab(**changes))
        told = ("host", "--url", self.lab.url, "--host", "bench-7", "--token-file", TOKEN_FILE, "--state", STATE)
        started = layered.start(self.layer, self.agent, self.folder, BEFORE + before, told + words)
        self.stack.callback(started.kill)
        return started

    def log(self):
        return (self.folder / "agent.log").read_text()


@pytest.fixture
def bench(agent, tmp_path):
    with ExitStack() as stack:
        yield Bench(agent, tmp_path, stack)


@pytest.mark.e2e
@pytest.mark.parametrize("root", ["/", "/srv/jobs"])
def test_no_way_leads_from_a_job_to_the_hosts_agent(bench, root):
    """SEC-2, SEC-1: nor to its token."""
    program = "/usr/local/lib/penstock/job.pyz" if root == "/" else f"{root}/bin/job.pyz"
    script = f"""id -un; stat -c '%U %a' $PENSTOCK_WORK ~; touch ~/x $PENSTOCK_WORK/y $PENSTOCK_INPUT/z && echo mine
bmat factory name; PROGRAM={program}; {HOST_ATTACK}
pfexec true || echo no root"""
    rules = ["/work/y", TOKEN_FILE, f"{STATE}/**", f"{STATE}/session"]
    started = bench.start("--root", root, "--user", "bench", before=OTHERS, script=script, output_rules=rules)
    bench.lab.wait_until_clean(WORKERS[0])
    bench.lab.refusal = 403
    assert started.wait(PATIENCE_SECONDS) == 1, bench.log()
    said = bench.lab.lines("stdout")
    assert said[:4] == ["bench cannot become root", "bench", "bench 700", "bench 700"], said
    assert {"mine", "local", "no root"} <= set(said)
    assert tries(bench.lab, "did") == []
    assert len(tries(bench.lab, "not")) == HOST_TRIES
    assert bench.lab.outputs() == {"/work/y": b""}
    assert TOKEN not in "\n".join(bench.lab.lines())
    where = "/work, /input, /tmp" if root == "/" else "its root"
    assert bench.lab.proofs[WORKERS[0]] == (
        f"no process of worker {WORKERS[0]} is left; nothing is in {where}; "
        "nothing of bench is in shared folders, IPC or spools"
    )


@pytest.mark.e2e
@pytest.mark.parametrize("root", ["/", "/srv/jobs"])
def test_nothing_of_a_job_is_left_for_the_next(bench, root):
    """UNIT-2: wherever it hides it."""
    script = """ls -A $PENSTOCK_WORK ~ /tmp /var/tmp /dev/shm | grep mine && echo FOUND
pgrep -f 'sleep 4712' && echo FOUND
touch $PENSTOCK_WORK/mine ~/mine /tmp/mine /var/tmp/mine /dev/shm/mine
env -i setsid sleep 4712 > /dev/null 2>&1 &"""
    bench.start("--root", root, "--user", "bench", script=f"{script}\necho ran")
    bench.lab.left = WORKERS[:2]
    bench.lab.wait_until_clean(*WORKERS[:2])
    assert [told["result"] for told in bench.lab.finishes] == ["succeeded"] * 2
    assert "FOUND" not in bench.lab.lines("stdout")
    assert "ran" in bench.lab.lines("stdout")


SETUPS = [
    ("--user bench", "", "--user needs a --root"),
    ("--user nobody-here --root /", "", "this machine has no user nobody-here"),
    ("--user root --root /", "", "the user root is root"),
    (
        "--user bench --root /",
        f"chmod 644 $ROOT{TOKEN_FILE}",
        f"bench must not be able to use {TOKEN_FILE}: chown root",
    ),
    ("--user bench --root /", f"chown {UID} $ROOT{TOKEN_FILE}", f"bench must not be able to use {TOKEN_FILE}"),
    ("--user bench --root /", f"mkdir -m 711 $ROOT{STATE}", f"bench must not be able to use {STATE}: chown root"),
    ("--user bench --root /", "chmod 777 $ROOT/opt", "bench must not be able to change /opt: chown root /opt"),
    ("--user bench --root /srv/jobs", f"chown {UID} $ROOT/srv/jobs", "bench must not be able to change /srv/jobs"),
    ("--user bench --root /srv/jobs", "chmod 700 $ROOT/srv", "bench cannot enter the --root /srv/jobs"),
    (
        "--user bench --root /",
        f"mkdir $ROOT/home/bench; chown {UID} $ROOT/home/bench; chroot $ROOT usermod -d /home/bench bench",
        "jobs of bench could leave something in its home /home/bench",
    ),
    ("--user bench --root /", "chroot $ROOT usermod -aG disk bench", "bench can become root: it is in the group disk"),
    (
        "--user bench --root /",
        "echo bench:0:1 > $ROOT/etc/subuid",
        "bench can become root: its ranges in /etc/subuid contain ids of others: 0 (root). Take this away from it",
    ),
]


@pytest.mark.e2e
@pytest.mark.parametrize(("words", "before", "why"), SETUPS)
def test_a_host_whose_user_could_reach_the_agent_does_not_start(bench, words, before, why):
    """SEC-2: it says what to do."""
    started = bench.start(*words.split(), before=before, script="true")
    assert started.wait(PATIENCE_SECONDS) == 2, bench.log()
    assert f"this host cannot be served: {why}" in bench.log()


@pytest.mark.e2e
@pytest.mark.skipif(not shutil.which("sudo"), reason="there is no sudo on this machine")
def test_a_user_who_becomes_able_to_be_root_gets_no_job(bench):
    """SEC-2: what was true at the start is tried again before each job."""
    rule = "echo 'bench ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/x"
    health = {"before": rule, "after": "", "timeout_seconds": 20}
    bench.start("--root", "/", "--user", "bench", script="echo never", health=health)
    bench.lab.wait_until_clean(WORKERS[0])
    (told,) = bench.lab.finishes
    assert told["result"] == "broken"
    assert "jobs must not become root here, but their user bench can: sudo" in told["broken"]
    assert "never" not in bench.lab.lines("stdout")


@pytest.mark.parametrize(
    ("users", "groups", "why"),
    [
        ("nobody-5:100000:65536", "nobody-5:100000:65536", []),
        ("other:0:65536\nnobody-5:99999:1", "other:0:65536\nnobody-5:99999:1", []),
        ("99999:0:1", "", ["its ranges in subuid contain ids of others: 0 (root)"]),
        ("nobody-5:100000:9\nnobody-5:1:1", "", ["its ranges in subuid contain ids of others: 1 (daemon)"]),
        ("", "nobody-5:0:1", ["its ranges in subgid contain ids of others: 0 (root)"]),
    ],
)
def test_an_id_of_somebody_else_among_the_users_own_is_a_way_to_root(tmp_path, monkeypatch, users, groups, why):
    """SEC-2: in a user namespace it becomes whoever has that id, root too."""
    monkeypatch.chdir(tmp_path)
    for name, lines in (("subuid", users), ("subgid", groups)):
        (tmp_path / name).write_text(lines)
        monkeypatch.setattr(account, f"SUBORDINATE_{name[-3:].upper()}S", name)
    monkeypatch.setattr(prepare.shutil, "which", lambda name: None)
    assert prepare.ways_to_root(Account("nobody-5", 99999, 99999, "/")) == why


def test_of_many_ids_of_others_three_are_named(monkeypatch):
    many = dict.fromkeys(range(5), "x")
    monkeypatch.setattr(Account, "foreign_ids", lambda user: {"/etc/subuid": many})
    monkeypatch.setattr(prepare.shutil, "which", lambda name: None)
    assert prepare.ways_to_root(Account("nobody-5", 99999, 99999, "/")) == [
        "its ranges in /etc/subuid contain ids of others: 0 (x), 1 (x), 2 (x), 2 more"
    ]


def test_only_root_can_have_a_user_for_jobs(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(OSError, match="only root can run jobs as bench: start the agent as root"):
        hostuser.host_account("bench", None)


def test_a_user_for_jobs_needs_linux(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(hostuser.sys, "platform", "darwin")
    with pytest.raises(OSError, match="--user needs Linux"):
        hostuser.host_account("bench", tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_the_agents_rights_are_back_after_it_acted_for_a_job(tmp_path):
    """SEC-2: also after an error."""
    secret = tmp_path / "secret"
    secret.touch(mode=0o600)
    machine = Machine("/", Account("bench", UID, UID, "/tmp/home"))
    with pytest.raises(PermissionError), machine.acting():
        secret.read_text()
    assert secret.read_text() == ""
    with machine.acting(), ThreadPoolExecutor(1) as pool, pytest.raises(PermissionError):
        pool.submit(secret.read_text).result()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(secret.read_text).result() == ""
