"""The job's user on a machine that was made for it: this machine's own files, with an overlay over them."""

import json
import os
import shutil
import subprocess

import pytest

from tests.agent.control_plane import PATIENCE_SECONDS, WORKER
from tests.agent.forge import REPOSITORY, TOKEN, Forge

PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin")
LAYER = """mount -t tmpfs tmpfs "$1"; mkdir "$1/up" "$1/work" "$1/all"
for each in work input tmp; do mknod "$1/up/$each" c 0 0; done  # which is how a layer says that it is not there
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/up,workdir=$1/work" "$1/all"
"""
LAYERED = f"""set -e
{LAYER}
mount -t proc proc "$1/all/proc"; mount --bind /dev "$1/all/dev"
mkdir -m 1777 "$1/all/tmp"; mkdir -p "$1/all/opt/penstock"
cp "$2" "$1/all/opt/penstock/agent.pyz"; cp "$3" "$1/all/opt/penstock/agent.json"
chmod 700 "$1/all/opt/penstock"
eval "$4"
ln -s /bin/true "$1/all/usr/bin/sudo" 2>/dev/null || :
cd "$1/all/opt/penstock"
code=0; chroot "$1/all" "$5" /opt/penstock/agent.pyz run --config /opt/penstock/agent.json || code=$?
chroot "$1/all" ls -A /home/build /work /input > "$6" 2>/dev/null || :
exit $code
"""


@pytest.fixture
def machine(agent, tmp_path, worker):
    """Run an agent as root on a machine made for it; `before` is done to that machine first."""
    if os.geteuid() or not PYTHON or not all(map(shutil.which, ("unshare", "useradd", "chroot"))):
        pytest.skip("only root can have a layered machine")
    layer = tmp_path / "layer"
    layer.mkdir()
    if subprocess.run(
        ["unshare", "-m", "sh", "-c", f"set -e\n{LAYER}", "-", str(layer)], capture_output=True
    ).returncode:
        pytest.skip("no leave to layer a machine")

    def run(before="", alone=True, prepare=lambda plane: None, **changes):
        job = worker(**changes)
        prepare(job.plane)
        config = json.loads((job.folder / "agent.json").read_text())
        told = {**config, "root": "/", "alone": alone}
        (job.folder / "agent.json").write_text(json.dumps(told))
        before = before.replace("ROOT", str(layer / "all"))
        command = ["unshare", "-m", "--propagation", "private", "sh", "-c", LAYERED, "-", str(layer), str(agent)]
        with open(job.folder / "agent.log", "ab") as log:
            started = subprocess.Popen(
                [*command, str(job.folder / "agent.json"), before, PYTHON, str(job.folder / "left")],
                env={"PATH": os.environ["PATH"], "PENSTOCK_WORKER_ID": WORKER}, stdout=log, stderr=log,
            )  # fmt: skip
        job.agents.append(started)
        job.code = started.wait(PATIENCE_SECONDS)
        return job

    return run


@pytest.mark.e2e
def test_the_script_runs_as_a_user_of_its_own(machine):
    script = """id -u; id -g; id -un; echo $HOME $USER $LOGNAME; pwd; cd; pwd
stat -c '%U %a' /work /home/build; touch ~/x /work/y /input/z && echo mine
cat /etc/sudoers.d/build 2>/dev/null || echo hidden; bmat factory name; cat /opt/penstock/agent.json || echo kept"""
    job = machine(script=script, output_rules=["/work/y"], posts=[{"name": "p", "on": "always", "script": "id -u"}])
    assert job.code == 0, job.log()
    said = job.plane.lines("stdout")
    assert said[-13:] == [
        "12345", "12345", "build", "/home/build build build", "/work", "/home/build", "build 700", "build 700", "mine",
        "hidden", "local", "kept", "12345",
    ]  # fmt: skip
    assert "made the user build, uid 12345" in said
    assert list(job.plane.outputs()) == ["/work/y"]
    began = [line for line in job.plane.lines("detail") if line.startswith("starting")]
    assert began[:2] == ['starting task 0: "setup"', 'starting task 1: "build"']


@pytest.mark.e2e
@pytest.mark.skipif(not shutil.which("sudo"), reason="there is no sudo on this machine")
def test_a_job_can_become_root(machine):
    script = """sudo -n id -u; pfexec id -u; pfexec sh -c 'echo $0 $1' a b; sudo -n -u build id -un
pfexec false || echo $?; pfexec install -d /etc/mine && stat -c %U /etc/mine"""
    job = machine(script=script)
    assert job.code == 0, job.log()
    assert "build may become root by sudo" in job.plane.lines("stdout")
    assert job.plane.lines("stdout")[-6:] == ["0", "0", "a b", "build", "1", "root"], job.plane.lines()


@pytest.mark.e2e
def test_existing_users_and_folders_are_unchanged(machine):
    before = "chroot ROOT groupadd -g 12345 build; chroot ROOT useradd -u 12345 -g 12345 -G users -M build"
    job = machine(before, script="id -nG")
    assert job.code == 0, job.log()
    assert job.plane.lines("stdout")[-1] == "build users"
    assert "made the user build, uid 12345" not in job.plane.lines("stdout")


@pytest.mark.e2e
def test_a_machine_with_another_user_of_that_name_is_broken(machine):
    job = machine("chroot ROOT useradd -u 4711 -M build", script="echo never")
    assert job.code == 1, job.log()
    told = job.outcome()
    assert (told["result"], told["failure"]["kind"]) == ("broken", "machine_broken")
    assert told["broken"].startswith("the machine could not be set up: this machine has a user build with uid 4711")
    assert "never" not in job.plane.lines("stdout")


@pytest.mark.e2e
def test_the_job_owns_its_inputs_and_caches(machine, tmp_path):
    script = """find /work /home/build /input ! -user build; cat a
bmat cache save deps ~/.deps/x --key k; rm -rf ~/.deps
bmat cache restore deps ~/.deps/x --key k; find ~/.deps ! -user build; cat ~/.deps/x/y
bmat process start it sh -c 'id -u > ~/who'; until [ -s ~/who ]; do :; done; cat ~/who"""

    def prepare(plane):
        plane.store["GITHUB_TOKEN"] = (TOKEN, True)
        plane.keep("/input/lib/out/a", b"input")

    with Forge(tmp_path / "forge") as forge:
        tasks = [{"name": "build", "script": f"mkdir -p ~/.deps/x; echo y > ~/.deps/x/y; {script}"}]
        tasks[0]["workdir"] = f"/work/{REPOSITORY}"
        job = machine(prepare=prepare, tasks=tasks, repository=forge.told(), inputs=True)
    assert job.code == 0, job.log()
    assert job.plane.lines("stdout")[-5:] == ["two", "saved", "hit", "y", "12345"]


@pytest.mark.e2e
def test_a_shared_machine_is_not_changed(machine):
    job = machine(
        alone=False, script="id -u; grep -c ^build: /etc/passwd; ls /etc/sudoers.d 2>/dev/null | grep -c build"
    )
    assert job.code == 0, job.log()
    assert job.plane.lines("stdout") == ["0", "0", "0"]


@pytest.mark.e2e
def test_nothing_of_a_job_is_left_for_the_next(machine, tmp_path):
    """UNIT-2: also not in the home, where its token was."""
    with Forge(tmp_path / "forge") as forge:
        told = {"script": "touch ~/x; ls -A ~", "repository": forge.told(clone=False), "reuse": True}

        def prepare(plane):
            plane.store["GITHUB_TOKEN"] = (TOKEN, True)
            first = plane._hello

            def hello(body):
                if "previous" in body:
                    plane.hellos.append(body)
                    return 410, {"detail": "no longer wanted"}
                return first(body)

            plane._hello = hello

        job = machine(prepare=prepare, **told)
    assert job.code == 0, job.log()
    assert (
        job.plane.hellos[-1]["cleaned"]
        == "no process of job job-1 is left; nothing is in /work, /input, /tmp, /home/build"
    )
    assert (job.folder / "left").read_text().split() == ["/home/build:", "/input:", "/work:"]
