"""Jobs that must not become root (`sudo = false`): whatever they try, their agent is out of their reach. [SEC-2]"""

import json
import os
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest

from penstock.agent import tasks
from penstock.agent.account import Account
from penstock.agent.job import Task
from penstock.agent.machine import Machine
from tests.agent.attack import ATTACK, OTHERS, TRIES, tries
from tests.agent.control_plane import KEY, order

NEEDS_SUDO = pytest.mark.skipif(not shutil.which("sudo"), reason="there is no sudo on this machine")


@pytest.mark.e2e
@NEEDS_SUDO
def test_no_way_leads_to_the_agent(machine):
    """SEC-2: so nothing but the agent can say `finish` or `broken` in its name."""
    script = f"sudo -n true && AS='sudo -n'; {ATTACK}"
    job = machine(OTHERS, script=script, sudo=False)
    assert job.code == 0, job.log()
    assert tries(job.plane, "did") == []
    assert len(tries(job.plane, "not")) == TRIES
    assert "build cannot become root" in job.plane.lines("stdout")
    assert job.outcome()["result"] == "succeeded"


@pytest.mark.e2e
@NEEDS_SUDO
def test_the_same_attack_succeeds_where_jobs_may_become_root(machine):
    """The attack is real: this is what `sudo = true` means."""
    job = machine(OTHERS, script=f"AS='sudo -n'; {ATTACK}", sudo=True)
    assert job.code == 0, job.log()
    assert tries(job.plane, "not") == []


@pytest.mark.e2e
@NEEDS_SUDO
def test_the_agent_does_not_read_or_write_for_a_job_what_the_job_may_not(machine):
    """SEC-2: as outputs, in caches, in their keys, and through links to other folders."""
    script = r"""
ln -s /opt/penstock/agent.json stolen; ln -s /opt/penstock folder; echo mine > mine
bmat cache save a /opt/penstock/agent.json --key a || echo refused
bmat cache save b ~/b --key '{{ hash "/opt/penstock/token" }}' || echo refused
mkdir ~/.d ~/b; echo evil > ~/.d/evil; bmat cache save c ~/.d/evil --key c
rm -r ~/.d; ln -s /usr/local/bin ~/.d; bmat cache restore c ~/.d/evil --key c; cat /usr/local/bin/evil
rm ~/.d; bmat cache restore c ~/.d/evil --key c; cat ~/.d/evil
"""
    rules = ["/work/*", "/opt/penstock/*", "/work/folder/token", "/etc/shadow"]
    job = machine(script=script, output_rules=rules, sudo=False)
    assert job.code == 0, job.log()
    assert job.plane.outputs() == {"/work/mine": b"mine\n"}
    said = [line for line in job.plane.lines("stdout") if line in ("saved", "hit", "evil", "failed")]
    assert said == ["failed", "failed", "saved", "hit", "evil"]
    assert "cat: /usr/local/bin/evil: No such file or directory" in job.plane.lines("stderr")
    assert all(KEY not in str(each) for each in (job.plane.kept, job.plane.lines()))


@pytest.mark.e2e
def test_an_input_of_the_next_job_is_not_written_through_a_link_of_this_one(machine):
    """SEC-2, UNIT-2: not even where a link has the name that folders of services have."""
    name = "/input/systemd-private-x"
    plant = (
        f"ln -s /etc/evil {name}.part-of-penstock; mkdir /work/systemd-private-y; echo x > /work/systemd-private-y/x"
    )
    look = f"cat {name}; [ ! -e /etc/evil ] && ls -A /input /work"

    def prepare(plane):
        plane.keep(name, b"input\n")
        plane.answer_next_hellos(order(job="job-2", script=look, reuse=True, sudo=False, inputs=True), 410)

    job = machine(prepare=prepare, script=plant, reuse=True, sudo=False)
    assert job.code == 0, job.log()
    said = [line for line in job.plane.lines("stdout") if line]
    assert said == ["build cannot become root", "input", "/input:", "systemd-private-x", "/work:"]


CLOSED = """
mkdir -p $ROOT/srv/closed/open; echo secret > $ROOT/srv/closed/open/file; chmod 700 $ROOT/srv/closed
"""
PEEK = r"""
cat > ask.py <<'PY'
import json, re, socket, sys
path = re.search(r"PENSTOCK_SOCKET=(\S+)", open("/usr/local/bin/bmat").read())[1]
asked = {"do": "process", "name": sys.argv[2], "command": ["/bin/sh", "-c", "cat file"], "cwd": sys.argv[1], "env": {}}
with socket.socket(socket.AF_UNIX) as bmat:
    bmat.connect(path)
    bmat.sendall(json.dumps(asked).encode() + b"\n")
    print(bmat.makefile().read(), flush=True)
PY
echo mine > file; python3 ask.py /srv/closed/open peek; python3 ask.py /work own; sleep 0.5
"""


@pytest.mark.e2e
def test_no_background_process_starts_in_a_folder_that_the_job_may_not_enter(machine):
    """SEC-2: the agent, which starts it, is root and could."""
    job = machine(CLOSED, script=PEEK, sudo=False)
    assert job.code == 0, job.log()
    said = [json.loads(line) for line in job.plane.lines("stdout") if line.startswith("{")]
    assert said == [{"error": "/bin/sh cannot be started: [Errno 13] Permission denied: '/srv/closed/open'"}, {}]
    assert job.plane.lines("bg.peek.stdout") == []
    assert job.plane.lines("bg.own.stdout") == ["mine"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run a job as another user")
def test_no_script_starts_in_a_folder_that_the_job_may_not_enter(tmp_path, monkeypatch):
    """SEC-2: not even if a process of the job puts a link in the folder's place after the agent has looked at it."""
    (tmp_path / "closed" / "open").mkdir(parents=True)
    (tmp_path / "closed").chmod(0o700)
    account = Account("nobody-5", 99999, 99999, "/")
    monkeypatch.setattr(Machine, "make_folder", lambda self, path, owner: None)
    monkeypatch.setattr(tasks, "task_environment", lambda job, task: {})
    job = SimpleNamespace(machine=Machine("/", account), processes=SimpleNamespace())
    task = Task(0, "task", "", {}, env_clear=False, workdir=str(tmp_path / "closed" / "open"))
    with pytest.raises(PermissionError, match="closed/open"):
        tasks.launch_script(job, task, "/dev/null")
    child = tasks.launch_script(job, replace(task, workdir="/"), "/dev/null")
    child.communicate()
    assert child.returncode == 0


@pytest.mark.e2e
def test_pfexec_says_that_there_is_no_root(machine):
    job = machine(script="pfexec id -u; echo $?", sudo=False)
    assert job.code == 0, job.log()
    assert job.plane.lines("stdout")[-1] == "1"
    assert job.plane.lines("stderr")[-1] == "pfexec: jobs cannot become root on this target (it has no sudo): id -u"


@pytest.mark.e2e
@NEEDS_SUDO
def test_an_old_rule_of_the_agents_own_is_removed(machine):
    """SEC-2: an image may have been made from a machine whose jobs could become root."""
    rule = "echo 'build ALL=(ALL:ALL) NOPASSWD: ALL' > $ROOT/etc/sudoers.d/build; chmod 440 $ROOT/etc/sudoers.d/build"
    job = machine(rule, script="sudo -n id -u || echo none; ls /etc/sudoers.d", sudo=False)
    assert job.code == 0, job.log()
    said = job.plane.lines("stdout")
    assert "removed /etc/sudoers.d/build: build may not become root" in said
    assert "none" in said
    assert "build" not in said


RULE = "echo '{}' > $ROOT/etc/sudoers.d/mine; chmod 440 $ROOT/etc/sudoers.d/mine"
USER = "chroot $ROOT groupadd -g 12345 build; chroot $ROOT useradd -u 12345 -g 12345 {} -M build"


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("before", "why"),
    [
        pytest.param(RULE.format("build ALL=(ALL:ALL) NOPASSWD: ALL"), "sudo allows it something", marks=NEEDS_SUDO),
        pytest.param(RULE.format("ALL ALL=(root) NOPASSWD: /bin/cat"), "sudo allows it something", marks=NEEDS_SUDO),
        pytest.param(RULE.format("build ALL=(ALL:ALL) ALL"), "sudo allows it something", marks=NEEDS_SUDO),
        (USER.format("-G shadow"), "it is in the group shadow"),
        (f"chroot $ROOT groupadd -f docker; {USER.format('-G docker')}", "it is in the group docker"),
        (f"chroot $ROOT groupadd -f wheel; {USER.format('-G wheel,users')}", "it is in the group wheel"),
        (
            "echo build:0:65536 >> $ROOT/etc/subuid",
            "its ranges in /etc/subuid contain ids of others: 0 (root), 1 (daemon), 2 (bin), ",
        ),
        ("echo build:0:1 >> $ROOT/etc/subgid", "its ranges in /etc/subgid contain ids of others: 0 (root)"),
    ],
)
def test_a_machine_that_gives_root_by_another_way_is_broken(machine, before, why):
    """SEC-2: nothing is trusted that was not tried."""
    job = machine(before, script="echo never", sudo=False)
    assert job.code == 1, job.log()
    told = job.outcome()
    assert (told["result"], told["failure"]["kind"]) == ("broken", "machine_broken")
    assert f"jobs must not become root here, but their user build can: {why}" in told["broken"]
    assert "never" not in job.plane.lines("stdout")


@pytest.mark.e2e
def test_a_machine_without_a_user_for_jobs_runs_none_that_must_not_become_root(worker):
    """SEC-2: such a job would run as the agent's own user, and so reach the agent."""
    job = worker(script="echo never", sudo=False)
    assert job.run() == 1, job.log()
    assert "start the agent of a host as root, with --user" in job.outcome()["broken"]
    assert job.plane.lines("stdout") == []


@pytest.mark.e2e
def test_a_machine_whose_jobs_could_become_root_runs_none_that_must_not(machine):
    """SEC-2: the site took root away from a target while one of its machines was warm."""

    def prepare(plane):
        first = plane._hello

        def hello(body):
            if "previous" in body:
                plane.reply = {**plane.reply, "sudo": False, "job": "job-2"}
                plane.token = None
            return first(body)

        plane._hello = hello

    job = machine(prepare=prepare, script="echo ran", reuse=True)
    assert job.code == 1, job.log()
    assert [told["result"] for told in job.plane.finishes] == ["succeeded", "broken"]
    assert "an earlier job of this machine could" in job.plane.finishes[-1]["broken"]


def test_the_config_has_the_users_name(tmp_path):
    from penstock.agent.machine import Config

    path = tmp_path / "agent.json"
    path.write_text(json.dumps({"url": "http://x/", "worker": "w", "key": "k", "user": "bench"}))
    assert Config.load(path).user == "bench"
