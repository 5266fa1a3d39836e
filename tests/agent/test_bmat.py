"""`bmat`, called by a job."""

import argparse
import shlex
import subprocess

import pytest

from penstock.agent import bmat as command
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

VARIABLES = {"PGHOST": "db.internal", "PGPASSWORD": "it's $(id)", "host": "db.internal", "9LIVES": 1, "Path": "x"}


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


def test_unknown_names_list_the_known_ones(bmat):
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


ODD = {
    "host name": "a b",
    "tls": {"key": "line one\nit's\n", "cert": {"pem.0": "é\ud800"}, "list": [{"a": 1}]},
    "a.b": "exact",
    "a": {"b": "inner", "c": None},
    "": "empty",
    "$(touch hacked)`x`;": '$(touch hacked) `x`; \\ "!',
    "on": True,
}


@pytest.fixture
def odd(worker):
    """Run a script in a job that holds a resource `4th-db` with some metadata, all public."""

    def run(script, metadata=ODD):
        told = {"type": "database", "metadata": metadata, "public": list(metadata)}
        job = worker(script=script, resources={"4th-db": told})
        assert job.finish()["result"] == "succeeded", job.plane.lines()
        assert not (job.root / "work" / "hacked").exists()
        return job.plane.lines("stdout", "stderr")

    return run


def test_unusual_keys_and_nested_values_can_be_read(odd):
    keys = ["host name", "a.b", "a.c", "tls.cert.pem.0", "tls.list.0.a", "", "$(touch hacked)`x`;", "on"]
    script = "\n".join(f"bmat resource get 4th-db {shlex.quote(key)}" for key in keys)
    assert odd(f"export LC_ALL=C\n{script}") == [
        *("a b", "exact", "", "é\ufffd\ufffd\ufffd", "1", "empty", '$(touch hacked) `x`; \\ "!', "true")
    ]


def test_odd_keys_and_values_are_exported_as_they_are(odd):
    metadata = {**ODD, "tls": {**ODD["tls"], "cert": {"pem.0": "é"}}}
    del metadata["a"]
    script = (
        'for shell in bash sh; do $shell -euc \'eval "$(bmat resource env 4th-db)"\n'
        'printf "%s|%s|%s|%s|%s|%s|%s\\n" "$_4TH_DB_HOST_NAME" "$_4TH_DB_TLS_KEY" "$_4TH_DB_TLS_CERT_PEM_0" '
        '"$_4TH_DB_TLS_LIST" "$_4TH_DB_A_B" "$_4TH_DB___TOUCH_HACKED__X__" "$_4TH_DB_"\'; done'
    )
    one = ["a b|line one", "it's", '|é|[{"a": 1}]|exact|$(touch hacked) `x`; \\ "!|empty']
    assert odd(script, metadata) == [*one, *one]


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        (
            {"a": {"b": "1"}, "a.b": "2"},
            "'a.b' and 'a.b' would both be _4TH_DB_A_B: use `bmat resource get 4th-db KEY`",
        ),
        ({"a-b": "1", "a_b": "2"}, "'a-b' and 'a_b' would both be _4TH_DB_A_B: use `bmat resource get 4th-db KEY`"),
        ({"ok": "1", "z": "a\0b"}, "no variable can hold the zero byte in 'z': use `bmat resource get 4th-db KEY`"),
    ],
)
def test_values_that_cannot_be_exported_export_nothing(odd, metadata, why):
    assert odd("bmat resource env 4th-db; echo $?", metadata) == [f"bmat: {why}", "1"]


def test_unknown_nested_keys_list_the_known_ones(odd):
    lines = odd(
        "bmat resource get 4th-db tls.cert.x; bmat resource get 4th-db on.x; bmat resource get 4th-db tls.list.7; true"
    )
    assert lines[0] == "bmat: there is no key of resource '4th-db': in 'tls' in 'cert' 'x'; there is: pem.0"
    assert lines[1].startswith("bmat: there is no key of resource '4th-db': 'on.x'; there is: , $(touch")
    assert lines[2] == "bmat: there is no key of resource '4th-db': in 'tls' in 'list' '7'; there is: 0"


def test_an_unwanted_worker_answers_no_more(worker):
    """SEC-1: what the lease gave, its end takes: also from what the job has left running."""
    job = worker(
        lambda endpoint, count: 410 if endpoint == "heartbeat" and count > 3 else None,
        script="trap '' TERM; cd $PENSTOCK_WORK; while true; do bmat resource get db it\\'s >out 2>err || break; done; "
        "mv err gone; sleep 20",
        resources=RESOURCES,
    )
    assert job.run() == 0
    assert (job.root / "work" / "gone").read_text().startswith("bmat: no agent answers")
    assert job.plane.finishes == []


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
    assert usage.stdout.startswith("usage: bmat resource get [-h] [--format {json,aws,aws-config}] NAME [KEY]")


def test_keys_in_capitals_are_also_exported_under_their_own_names(monkeypatch):
    monkeypatch.setattr(command, "facts", lambda: {"resources": {"my-db": {"metadata": VARIABLES}}})
    lines = list(command.export_resource(argparse.Namespace(name="my-db")))
    assert [line.removeprefix("export ").partition("=")[0] for line in lines] == [
        "MY_DB_9LIVES", "MY_DB_HOST", "MY_DB_PATH", "MY_DB_PGHOST", "MY_DB_PGPASSWORD", "PGHOST", "PGPASSWORD",
    ]  # fmt: skip
    script = "\n".join([*lines, 'printf "%s|%s|%s|%s" "$PGHOST" "$PGPASSWORD" "$MY_DB_PGPASSWORD" "$MY_DB_HOST"'])
    said = subprocess.run(["/bin/sh", "-c", script], env={}, capture_output=True, text=True, check=True).stdout
    assert said == "db.internal|it's $(id)|it's $(id)|db.internal"
