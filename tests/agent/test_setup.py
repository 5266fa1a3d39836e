"""The job's user on a machine that was made for it."""

import shutil

import pytest

from tests.agent.forge import REPOSITORY, TOKEN, Forge


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
    before = "chroot $ROOT groupadd -g 12345 build; chroot $ROOT useradd -u 12345 -g 12345 -G users -M build"
    job = machine(before, script="id -nG")
    assert job.code == 0, job.log()
    assert job.plane.lines("stdout")[-1] == "build users"
    assert "made the user build, uid 12345" not in job.plane.lines("stdout")


@pytest.mark.e2e
def test_a_machine_with_another_user_of_that_name_is_broken(machine):
    job = machine("chroot $ROOT useradd -u 4711 -M build", script="echo never")
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
        == "no process of job job-1 is left; nothing is in /work, /input, /tmp, /home/build; "
        "nothing of build is in shared folders, IPC or spools"
    )
    assert (job.folder / "left").read_text().split() == ["/home/build:", "/input:", "/work:"]
