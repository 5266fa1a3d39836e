"""What the agent sends and logs contains no secret, even of a job that prints its secrets in every way. [SEC-1]"""

from __future__ import annotations

import json
import re

from tests.agent.control_plane import KEY

PASSWORD = "Tr0ub4dor&3/+x"
KEY_FILE = "-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQ\n-----END KEY-----\n"
RESOURCES = {
    "db": {
        "type": "database",
        "metadata": {"name": "db-number-17", "password": PASSWORD, "port": 5432, "tls": KEY_FILE},
        "public": ["name"],
    }
}
SCRIPT = r"""
exec 3>&1
p=$(bmat resource get db password)
bmat resource get db
bmat resource env db
echo "the name is $(bmat resource get db name) and the port $(bmat resource get db port)"
echo "to stderr: $p" >&2
printf '%s' "${p:0:5}"; sleep 0.5; printf '%s\n' "${p:5}"
printf '%s' "$p" | base64; printf 'a%s' "$p" | base64; printf 'ab%s' "$p" | base64
head -c 45 /dev/zero | cat - <(printf '%s' "$p") | base64
printf '%s' "$p" | od -An -tx1 | tr -d ' \n'; echo
bmat resource get db tls
set -x; : "$p"; set +x
head -c 100000 /dev/zero | tr '\0' y; printf '%s' "$p"; head -c 100000 /dev/zero | tr '\0' y; echo
echo x > "$PENSTOCK_WORK/$p.txt" || echo x > "$PENSTOCK_WORK/${p//\//_}.txt"
mkdir -p "$PENSTOCK_WORK/${p%%/*}"; echo x > "$PENSTOCK_WORK/$p"
echo "of the machine: $(cat "$PENSTOCK_ROOT/../agent.json" "$PENSTOCK_ROOT/../token")"
echo end
"""


def parts(secret: str) -> list[str]:
    return [secret, re.escape(secret), json.dumps(secret)[1:-1]]


def test_nothing_that_leaves_the_machine_has_a_secret(worker):
    job = worker(
        script=SCRIPT,
        resources=RESOURCES,
        output_rules=["/work/**", "=/work/" + PASSWORD.replace("/", "_") + "-not-there"],
    )
    job.finish()
    sent = json.dumps([job.plane.lines(), job.plane.finishes, list(job.plane.uploads.values())], default=repr)
    token = (job.folder / "token").read_text()
    for secret in (PASSWORD, "MIIEvQIBADANBg", "kqhkiG9w0BAQ", KEY, token):
        for text in (sent, job.log()):
            assert not [part for part in parts(secret) if part in text], secret
    lines = job.plane.lines("stdout")
    assert "the name is db-number-17 and the port 5432" in lines
    assert lines[-1] == "end"
    assert "to stderr: ***" in job.plane.lines("stderr")
    assert job.plane.lines("stdout").count("***") >= 8
    assert [line for line in job.plane.lines("worker") if "contains a secret of the job" in line]


def test_the_reason_of_a_job_has_no_secret(worker):
    job = worker(
        tasks=[{"name": f"log in with {PASSWORD}", "script": "exit 3"}],
        resources=RESOURCES,
        output_rules=[f"=/work/{PASSWORD}"],
    )
    assert job.finish()["reason"] == 'task 0 "log in with ***" exited with code 3'
    assert PASSWORD not in json.dumps(job.plane.lines())
    assert PASSWORD not in job.log()


def test_the_reason_of_a_missing_output_has_no_secret(worker):
    job = worker(resources=RESOURCES, output_rules=[f"=/work/{PASSWORD}"])
    assert job.finish()["reason"] == 'no file was uploaded for output rule "=/work/***", which requires one'


def test_without_declared_public_keys_all_values_are_hidden(worker):
    job = worker(
        script="bmat resource get db name", resources={"db": {"type": "x", "metadata": {"name": "db-number-17"}}}
    )
    job.finish()
    assert job.plane.lines("stdout") == ["***"]
