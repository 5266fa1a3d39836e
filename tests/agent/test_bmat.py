"""`bmat`, called by a job."""

import argparse
import shlex
import subprocess

import pytest

from penstock.agent import bmat as command
from tests.agent.conftest import PYTHON
from tests.agent.control_plane import ONE_STREAM, WORKER

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
    """Run a script in a job that holds resources; return what it prints, in order."""

    def run(script):
        job = worker(script=f"{ONE_STREAM}\n{script}", resources=RESOURCES)
        assert job.finish()["result"] == "succeeded", job.plane.lines()
        return job.plane.lines("stdout")

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
        job = worker(script=f"{ONE_STREAM}\n{script}", resources={"4th-db": told})
        assert job.finish()["result"] == "succeeded", job.plane.lines()
        assert not (job.root / "work" / "hacked").exists()
        return job.plane.lines("stdout")

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
        "bmat address ls -f extra -Hpo first,last,count\n"
        "bmat address list -H -o name,cidr,family,network,mask,routed,gateway\n"
        "bmat address list; set -- $(bmat address ls -f other -Ho first,count); echo $2 $1\n"
        "bmat address ls -f none; echo $?; bmat address ls -o x; echo $?"
    )
    assert lines[:4] == ["local", "local", WORKER, "10.0.0.1\t10.0.0.14\t14"]
    assert lines[4].split("\t") == ["extra", "10.0.0.0/28", "inet", "10.0.0.0", "255.255.255.240", "no", "10.0.0.1"]
    assert lines[5].split("\t")[:4] == ["other", "fd00::/126", "inet6", "fd00::"]
    assert lines[5].split("\t")[5:] == ["-", "-"]
    assert lines[6].split() == ["NAME", "CIDR", "FIRST", "LAST", "COUNT"]
    assert lines[8].split() == ["other", "fd00::/126", "fd00::", "fd00::3", "4"]
    assert lines[9:12] == ["4 fd00::", "bmat: there is no address range 'none'; there is: extra, other", "1"]
    assert lines[12].startswith("bmat: there is no column 'x'; there is: cidr, ")
    assert lines[13:] == ["1"]


LAB = {"name": "lab", "cidr": "172.20.3.0/26", "first": "172.20.3.32", "count": 31, "routed": True, "gateway": None}


def addresses(monkeypatch, ranges, *words):
    """Run `bmat address list` in this process."""
    told = {"resources": {"net": {"metadata": {"addresses": list(ranges)}}}}
    monkeypatch.setattr(command, "facts", lambda: told)
    return command.bmat(["address", "list", *words])


@pytest.mark.parametrize(
    ("changes", "row"),
    [
        ({}, "lab 172.20.3.0/26 172.20.3.32 172.20.3.62 31 inet 172.20.3.0 255.255.255.192 yes -"),
        ({"count": 1}, "lab 172.20.3.0/26 172.20.3.32 172.20.3.32 1 inet 172.20.3.0 255.255.255.192 yes -"),
        (
            {"cidr": "172.20.3.5/26"},
            "lab 172.20.3.5/26 172.20.3.32 172.20.3.62 31 inet 172.20.3.0 255.255.255.192 yes -",
        ),
        (
            {"first": "172.20.3.0", "routed": False, "gateway": "172.20.3.1", "last": "x", "mask": "x"},
            "lab 172.20.3.0/26 172.20.3.0 172.20.3.30 31 inet 172.20.3.0 255.255.255.192 no 172.20.3.1",
        ),
    ],
)
def test_a_range_has_the_columns_that_buildomat_gives_it(monkeypatch, capsys, changes, row):
    assert addresses(monkeypatch, [{**LAB, **changes}], "-Ho", ",".join(command.ADDRESS_COLUMNS).upper()) == 0
    assert capsys.readouterr() == ("\t".join(row.split()) + "\n", "")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"count": 32}, "172.20.3.32 to 172.20.3.63 is not within the hosts of 172.20.3.0/26"),
        ({"count": 33}, "172.20.3.32 to 172.20.3.64 is not within the hosts of 172.20.3.0/26"),
        ({"count": 0}, "172.20.3.0/26 from 172.20.3.32 with 0 addresses: it needs at least 1"),
        ({"count": "5"}, "172.20.3.0/26 from 172.20.3.32 with '5' addresses: it needs at least 1"),
        ({"first": "172.20.2.255", "count": 9}, "172.20.2.255 to 172.20.3.7 is not within the hosts of 172.20.3.0/26"),
        ({"first": "fd00::1"}, "fd00::1 to fd00::1f is not within the hosts of 172.20.3.0/26"),
        ({"first": "172.20.3.0", "count": 1}, "172.20.3.0 to 172.20.3.0 is not within the hosts of 172.20.3.0/26"),
        (
            {"cidr": "10.0.0.1/32", "first": "10.0.0.1", "count": 1},
            "10.0.0.1 to 10.0.0.1 is not within the hosts of 10.0.0.1/32",
        ),
        ({"cidr": "x"}, "'x' does not appear to be an IPv4 or IPv6 network"),
    ],
)
def test_a_range_that_buildomat_leaves_out_is_left_out_and_told(monkeypatch, capsys, changes, why):
    good = {**LAB, "name": "good"}
    assert addresses(monkeypatch, [good, {**LAB, **changes}], "-Ho", "name") == 0
    assert capsys.readouterr() == ("good\n", f"bmat: `addresses`[1] of resource 'net' is left out: {why}\n")
    assert addresses(monkeypatch, [good, {**LAB, **changes}], "-f", "lab") == 1
    assert "there is no address range 'lab'; there is: good" in capsys.readouterr().err


def test_what_a_range_lacks_is_told_and_what_is_none(monkeypatch, capsys):
    assert addresses(monkeypatch, [{"name": "lab"}, "lab"]) == 0
    said = capsys.readouterr()
    assert said.out.split() == ["NAME", "CIDR", "FIRST", "LAST", "COUNT"]
    assert "is left out: there is no 'cidr'\n" in said.err
    assert "bmat: `addresses`[1] of resource 'net' is left out: string indices must be integers" in said.err


def test_a_range_of_one_address_or_from_some_address_on(monkeypatch, capsys):
    """Metadata that buildomat does not have: without `first` or `count`."""
    one, rest = {"name": "one", "cidr": "10.9.8.7/32"}, {"name": "rest", "cidr": "10.9.8.0/24", "first": "10.9.8.250"}
    assert addresses(monkeypatch, [one, rest, {"cidr": "10.0.0.0/8", "count": 2}], "-Ho", "name,first,last,count") == 0
    assert capsys.readouterr().out.splitlines() == [
        "one\t10.9.8.7\t10.9.8.7\t1",
        "rest\t10.9.8.250\t10.9.8.254\t5",
        "-\t10.0.0.1\t10.0.0.2\t2",
    ]


def test_one_range_must_have_the_name(monkeypatch, capsys):
    assert addresses(monkeypatch, [LAB, LAB], "-f", "lab") == 1
    assert capsys.readouterr().err == "bmat: 2 address ranges have the name 'lab'; there must be one\n"


def test_ranges_are_sorted_by_columns(monkeypatch, capsys):
    ranges = [{**LAB, "name": name, "count": count} for name, count in (("b", 9), ("a", 10), ("c", 9))]
    said = {}
    for words in (["-s", "count,name"], ["-S", "count"], []):
        assert addresses(monkeypatch, ranges, "-Ho", "name", *words) == 0
        said[words[0] if words else ""] = capsys.readouterr().out.split()
    assert said == {"-s": ["b", "c", "a"], "-S": ["a", "b", "c"], "": ["b", "a", "c"]}
    assert addresses(monkeypatch, ranges, "-s", "size") == 1


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
