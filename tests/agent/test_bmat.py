"""`bmat`, asked by a job."""

import subprocess

import pytest

from tests.agent.conftest import PYTHON
from tests.agent.control_plane import WORKER

ADDRESSES = [
    {"name": "extra", "cidr": "10.0.0.0/28", "routed": False, "gateway": "10.0.0.1"},
    {"name": "other", "cidr": "fd00::/126"},
]
RESOURCES = {
    "db": {
        "type": "database",
        "metadata": {"url": "postgres://x", "it's": "a 'b' $c", "n": 5, "list": [1]},
        "public": ["url", "it's"],
    },
    "net": {"type": "network", "metadata": {"addresses": ADDRESSES}, "public": ["addresses"]},
}


@pytest.fixture
def bmat(worker):
    """Run a script in a job that holds resources; return the lines of its stdout and stderr."""

    def run(script):
        job = worker(script=script, resources=RESOURCES)
        assert job.finish()["result"] == "succeeded", job.plane.lines()
        return job.plane.lines("stdout", "stderr")

    return run


def test_resources(bmat):
    lines = bmat(
        "set -e; bmat resource list; bmat resource ls -H | wc -l\n"
        "bmat resource get db url; bmat resource get db n\n"
        'bmat resource get db | grep postgres; env -i "$(command -v bmat)" resource get db list'
    )
    assert lines[:3] == ["NAME  TYPE", "db    database", "net   network"]
    assert [line.strip() for line in lines[3:]] == ["2", "postgres://x", "5", '"url": "postgres://x"', "[1]"]


def test_what_is_not_there(bmat):
    lines = bmat(
        "bmat resource get bench; echo $?; bmat resource get db password; echo $?\nbmat resource env x; echo $?"
    )
    assert lines[:2] == ["bmat: there is no resource 'bench'; there is: db, net", "1"]
    assert lines[2:4] == [
        "bmat: there is no key of resource 'db': 'password'; there is: it's, list, n, url",
        "1",
    ]
    assert lines[5] == "1"


def test_env_can_be_evaluated(bmat):
    assert bmat('eval "$(bmat resource env db)"; echo "$DB_URL|$DB_IT_S|$DB_N|$DB_LIST"') == [
        "postgres://x|a 'b' $c|5|[1]"
    ]


def test_factory_and_addresses(bmat):
    lines = bmat(
        "bmat factory name; bmat factory id; bmat factory private\n"
        "bmat address ls -f extra -Ho first,last,count\n"
        "bmat address list -H -o name,cidr,family,network,mask,routed,gateway\n"
        "bmat address list -f none; bmat address ls -o x || true"
    )
    assert lines[:4] == ["local", "local", WORKER, "10.0.0.1  10.0.0.14  14"]
    assert lines[4].split() == [
        "extra",
        "10.0.0.0/28",
        "inet",
        "10.0.0.0",
        "255.255.255.240",
        "false",
        "10.0.0.1",
    ]
    assert lines[5].split()[:4] == ["other", "fd00::/126", "inet6", "fd00::"]
    assert lines[6].split() == ["NAME", "CIDR", "FIRST", "LAST", "COUNT"]
    assert lines[7].startswith("bmat: there is no column 'x'; there is: cidr, ")


def test_what_is_not_available_yet(bmat):
    lines = bmat("for c in store process cache post; do bmat $c get -W x; echo $?; done")
    assert lines == [x for c in ("store", "process", "cache", "post") for x in (f"bmat {c} is not available yet", "2")]


def test_a_long_root_has_a_socket_too(worker, tmp_path):
    job = worker(script="bmat factory name", **{})
    job.root = tmp_path / ("long-" * 20) / "root"
    config = (tmp_path / "agent.json").read_text().replace(str(tmp_path / "root"), str(job.root))
    (tmp_path / "agent.json").write_text(config)
    assert job.finish()["result"] == "succeeded"
    assert job.plane.lines("stdout") == ["local"]


def test_outside_of_a_job(agent, tmp_path):
    done = subprocess.run([PYTHON, agent, "bmat", "resource", "list"], capture_output=True, text=True, env={})
    assert done.returncode == 1
    assert "bmat works in the tasks of a running job" in done.stderr
    (tmp_path / "bmat").symlink_to(agent)
    usage = subprocess.run([PYTHON, tmp_path / "bmat", "resource", "get", "-h"], capture_output=True, text=True)
    assert usage.stdout.startswith("usage: bmat resource get [-h] NAME [KEY]")
