"""Rust is installed before the script of a job that wants it. A server of the test stands for its mirror."""

import shutil

import pytest

from penstock.agent import prepare
from penstock.agent.machine import BASE_PATH
from tests.agent.forge import REPOSITORY, RUSTUP, TOKEN, Forge

FILE = "rust-toolchain.toml"


@pytest.fixture
def forge(tmp_path, monkeypatch):
    if shutil.which("rustup", path=BASE_PATH):
        pytest.skip("this machine has a rustup of its own, which would be used")
    with Forge(tmp_path / "forge") as made:
        made.serve_rustup(prepare._host_triple())
        monkeypatch.setenv("RUSTUP_UPDATE_ROOT", f"{made.url}/rustup")
        monkeypatch.delenv("CARGO_HOME", raising=False)
        yield made


def lines(job):
    return [line for line in job.plane.lines("stdout") if not line.startswith("fetching")]


def test_a_channel_is_installed_and_cargo_is_on_the_path(worker, forge):
    job = worker(script="cargo; command -v cargo; echo $RUSTUP_UPDATE_ROOT", toolchain="1.85")
    assert job.finish()["result"] == "succeeded", job.plane.lines()
    assert lines(job) == [
        "init -y --no-modify-path --profile default --default-toolchain none",
        "rustup toolchain install 1.85 --profile default --no-self-update",
        "rustup default 1.85",
        "cargo of 1.85",
        str(job.root / "home/.cargo/bin/cargo"),
        f"{forge.url}/rustup",
    ]
    began = [line for line in job.plane.lines("detail") if line.startswith("starting")]
    assert began == ['starting task 0: "rust-toolchain"', 'starting task 1: "build"']


def test_the_machines_own_rustup_is_used(worker, forge):
    job = worker(script="cargo", toolchain="stable")
    (job.root / "bin").mkdir(parents=True)
    (job.root / "home/.cargo/bin").mkdir(parents=True)
    own = job.root / "bin/rustup"
    own.write_text(RUSTUP)
    own.chmod(0o755)
    assert job.finish()["result"] == "succeeded", job.plane.lines()
    assert job.plane.lines("stdout")[0] == f"this machine has rustup: {own}"
    assert job.plane.lines("stdout")[-1] == "cargo of stable"
    assert forge.requests == []


def test_the_toolchain_file_is_read_after_the_clone(worker, forge):
    told = {"name": "build", "script": "cargo", "workdir": f"/work/{REPOSITORY}"}
    job = worker(tasks=[told], toolchain=FILE, repository=forge.told())
    job.plane.store["GITHUB_TOKEN"] = (TOKEN, True)
    assert job.finish()["result"] == "succeeded", job.plane.lines()
    assert job.plane.lines("stdout")[-1] == "cargo of 1.85"
    began = [line.split('"')[1] for line in job.plane.lines("detail") if line.startswith("starting")]
    assert began == ["authentication", "clone repository", "rust-toolchain", "build"]
    assert "rustup toolchain install --no-self-update" in lines(job)


def test_the_toolchain_file_is_read_without_a_clone(worker, forge):
    job = worker(script="cargo; ls", toolchain=FILE, repository=forge.told(clone=False))
    job.plane.store["GITHUB_TOKEN"] = (TOKEN, True)
    assert job.finish()["result"] == "succeeded", job.plane.lines()
    assert job.plane.lines("stdout")[-1] == "cargo of 1.85"


def failed(job):
    told = job.finish()
    assert told["failure"]["kind"] == "toolchain_failed"
    assert told["failure"]["task_name"] == "rust-toolchain"
    assert "cargo of" not in str(job.plane.lines("stdout"))
    return told


@pytest.mark.parametrize("clone", [True, False])
def test_a_repository_without_a_toolchain_file(worker, forge, clone):
    told = forge.told(sha=forge.first, clone=clone)
    job = worker(script="cargo", toolchain=FILE, repository=told)
    job.plane.store["GITHUB_TOKEN"] = (TOKEN, True)
    told = failed(job)
    why = "the repository has no rust-toolchain.toml, which `rust_toolchain = true` needs"
    assert told["result"] == "failed"
    assert told["reason"] == f"the Rust toolchain {FILE} could not be installed: {why}"


def test_an_unknown_channel_fails_at_once(worker, forge):
    told = failed(worker(script="cargo", toolchain="9.9"))
    assert (told["result"], told["exit_code"]) == ("failed", 1)
    error = "error: could not download nonexistent rust version '9.9'"
    assert told["reason"] == f"the Rust toolchain 9.9 could not be installed: {error}"
    assert told["failure"]["evidence"] == {"toolchain": "9.9", "error": error, "exit_code": 1}


def test_an_invalid_channel_is_not_passed_to_rustup(worker, forge):
    told = failed(worker(script="cargo", toolchain="--help"))
    assert told["result"] == "failed"
    assert "'--help' is no channel" in told["reason"]
    assert forge.requests == []


def test_broken_connections_are_retried(worker, forge):
    forge.misbehave = lambda path, count: 503 if count == 1 and path.endswith("init") else None
    job = worker(script="cargo", toolchain="flaky")
    assert job.finish()["result"] == "succeeded", job.plane.lines()
    tried = [line for line in job.plane.lines("stdout") if line.startswith("try 1 of 5")]
    assert ["503" in tried[0], "connection reset" in tried[1], len(tried)] == [True, True, 2]
    assert job.plane.lines("stdout")[-1] == "cargo of flaky"


def test_an_installer_with_another_digest_is_not_run(worker, forge):
    forge.serve_rustup(prepare._host_triple(), wrong=True)
    told = failed(worker(script="cargo", toolchain="1.85"))
    assert told["result"] == "unprepared"
    assert "SHA-256" in told["reason"]
    assert "init" not in str(told["failure"]["lines"]).split()


def test_without_a_mirror_the_agents_own_digest_counts(tmp_path, monkeypatch):
    """A server that answers for the one place with other bytes, and their digest beside them, deceives nobody."""
    monkeypatch.delenv("RUSTUP_UPDATE_ROOT", raising=False)
    monkeypatch.setattr(prepare, "_read_url", lambda url: b"other bytes")
    monkeypatch.setattr(prepare, "_host_triple", lambda: "x86_64-unknown-linux-gnu")
    with pytest.raises(prepare.Failed, match="expected was 20a06e64"):
        prepare._fetch_rustup(str(tmp_path / "rustup-init"))
    assert not (tmp_path / "rustup-init").exists()


def test_a_mirror_without_the_installer_is_not_retried(worker, forge):
    forge.served.clear()
    told = failed(worker(script="cargo", toolchain="1.85"))
    assert told["result"] == "failed"
    assert "HTTP 404" in told["reason"]
    assert len(forge.requests) == 1
