"""`bmat resource env`, of a resource whose well tells variables that programs know."""

import argparse
import subprocess

from penstock.agent import bmat

METADATA = {"PGHOST": "db.internal", "PGPASSWORD": "it's $(id)", "host": "db.internal", "9LIVES": 1, "Path": "x"}


def test_keys_in_capitals_are_variables_by_themselves(monkeypatch):
    monkeypatch.setattr(bmat, "facts", lambda: {"resources": {"my-db": {"metadata": METADATA}}})
    lines = list(bmat.export_resource(argparse.Namespace(name="my-db")))
    assert [line.removeprefix("export ").partition("=")[0] for line in lines] == [
        "MY_DB_9LIVES", "MY_DB_HOST", "MY_DB_PATH", "MY_DB_PGHOST", "MY_DB_PGPASSWORD", "PGHOST", "PGPASSWORD",
    ]  # fmt: skip
    script = "\n".join([*lines, 'printf "%s|%s|%s|%s" "$PGHOST" "$PGPASSWORD" "$MY_DB_PGPASSWORD" "$MY_DB_HOST"'])
    said = subprocess.run(["/bin/sh", "-c", script], env={}, capture_output=True, text=True, check=True).stdout
    assert said == "db.internal|it's $(id)|it's $(id)|db.internal"
