"""`bmat resource env`, of a resource whose well tells variables that programs know."""

RESOURCES = {
    "my-db": {
        "type": "database",
        "metadata": {
            "PGHOST": "db.internal",
            "PGPASSWORD": "it's $(id)",
            "host": "db.internal",
            "9LIVES": 1,
            "Path": "x",
        },
    }
}
SCRIPT = """
set -e
before=$PATH
bmat resource env my-db | cut -d= -f1 | tr '\\n' ' '
echo
eval "$(bmat resource env my-db)"
echo "$PGHOST|$PGPASSWORD|$MY_DB_PGHOST|$MY_DB_HOST|${HOST-}"
[ "$PATH" = "$before" ]
"""


def test_keys_in_capitals_are_variables_by_themselves(worker):
    job = worker(script=SCRIPT, resources=RESOURCES)
    assert job.finish()["result"] == "succeeded", job.plane.lines()
    names, values = job.plane.lines("stdout", "stderr")
    assert names.replace("export ", "").split() == [
        "MY_DB_9LIVES", "MY_DB_PGHOST", "PGHOST", "MY_DB_PGPASSWORD", "PGPASSWORD", "MY_DB_PATH", "MY_DB_HOST"
    ]  # fmt: skip
    assert values == "db.internal|it's $(id)|db.internal|db.internal|"
