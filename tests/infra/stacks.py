"""The stacks that tests look at, all made by one process: for `make test` the one without settings, for `make e2e` all.

`cdk` starts a process for each. What that process does first, loading the CDK, takes ten times as long as a stack.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

from penstock.sources import ROOT as SOURCES

ROLE = "arn:aws:iam::123456789012:role/workers"
CLUSTER = "arn:aws:ecs:eu-west-1:123456789012:cluster/jobs"
PULL, LOGS = "arn:aws:iam::123456789012:role/pull", "/penstock/workers"
JOBS, SCRATCH = (f"arn:aws:iam::000000000000:role/{name}" for name in ("jobs", "scratch"))
BOUNDARY = "arn:aws:iam::000000000000:policy/jobs-at-most"
CLEANER = "arn:aws:lambda:eu-west-1:123456789012:function:clean-sandboxes"
OTHER = "arn:aws:lambda:eu-west-1:123456789012:function:clean-racks"
SUBNETS, GROUPS = ["subnet-0a", "subnet-0b"], ["sg-0a"]
NETWORK = {"well_subnets": ",".join(SUBNETS), "well_security_groups": ",".join(GROUPS)}
DRIVERS = "shelf/drivers.txt"
DOMAIN = "penstock.example.com"
CERTIFICATE = "arn:aws:acm:us-east-1:123456789012:certificate/0a1b2c3d-0000-1111-2222-333344445555"

CONSOLE = {"index.html": "<!doctype html>", "icon.svg": "<svg/>", "assets/index-0a1B2c3D.js": "1", "assets/x-1.css": ""}
"""A build of the console: `make web` needs the registry of npm, and has tests of its own."""

SETTINGS: Mapping[str, Mapping[str, str]] = {
    "plain": {},
    "bare": {"console": "false"},
    "own-name": {"console_domain": DOMAIN, "console_certificate": CERTIFICATE},
    "trial": {"ephemeral": "true", "name": "Trial"},
    "ec2": {"ec2": "true", "ec2_role": ROLE},
    "fargate": {"fargate": CLUSTER, "fargate_role": PULL, "fargate_logs": LOGS},
    "libcloud": {"libcloud": "true"},
    "network": {"well_secrets": "penstock/postgres, /penstock/pg/password", **NETWORK},
    "machines-and-network": {"ec2": "true", **NETWORK},
    "wells": {
        "well_secrets": "penstock/rack, /penstock/boards/key",
        "factory_secrets": "penstock/lab, /penstock/propolis/key",
        "accounts_lambdas": f"{CLEANER},{OTHER}",
    },
    "lending": {"sts_roles": f"{JOBS}, {SCRATCH}", "sts_boundary": BOUNDARY, "s3_well": "lent/jobs"},
    "lent": {"sts_roles": JOBS, "sts_boundary": BOUNDARY, "s3_well": "lent"},
    "keys": {"identity_keys": "2,1"},
    "github": {"github": "true"},
    "drivers": {},
    "uncompiled": {},
    "few": {"at_once": "40", "agents_at_once": "300"},
    "snapshots": {"snapstart": "api, schedule"},
    "told": {"alarm_email": "ops@example.com", "metrics": "off"},
    **{f"watched-{level}": {"name": "Watched", "metrics": level} for level in ("off", "site", "pools")},
}
"""What `cdk deploy -c …` is given. "drivers" is brought a list of them, which is made first; "uncompiled" is made as on
a machine without the functions' Python.
"""

OWN_LAYER = ("libcloud", "drivers", "uncompiled")
"""Those with a layer of their own."""

WITH_FILES = ("plain", *OWN_LAYER)
"""Those whose uploaded files tests look at. Of the others they look at templates: the files stay where they are."""

IN_PLACE = {"aws:cdk:disable-asset-staging": "true"}
"""The context by which files are not copied: each stack has some two thousand."""


def synthesised(folder: Path, names: Collection[str]) -> Mapping[str, Path]:
    """Make some of them, each in a folder of its name. The security rules check every one, or it would not come out."""
    settings = {name: dict(SETTINGS[name]) for name in names}
    if "drivers" in settings:
        settings["drivers"]["drivers"] = str(shelf(folder / DRIVERS))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCES), str(SOURCES / "functions")])}
    command = [sys.executable, "-m", "tests.infra.stacks", str(folder), json.dumps(settings)]
    made = subprocess.run(command, cwd=SOURCES, env=environment, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return {name: folder / name for name in names}


def shelf(drivers: Path) -> Path:
    """Somebody else's package with a driver, as a wheel, and the list that names it."""
    info = "shelf-1.2.dist-info"
    files = {
        "shelf.py": "class ShelfWell:\n    reusable = True\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: shelf\nVersion: 1.2\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[penstock.wells]\nshelf = shelf:ShelfWell\n",
        f"{info}/RECORD": "",
    }
    drivers.parent.mkdir(parents=True)
    with zipfile.ZipFile(drivers.parent / "shelf-1.2-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            wheel.writestr(zipfile.ZipInfo(name), text)  # of no date: the layer that it is in is made once
    drivers.write_text("./shelf-1.2-py3-none-any.whl  # shelves\n")
    return drivers


def main() -> None:
    """Make the stacks that the command line names with their settings."""
    import app  # which loads the CDK
    from infra import bytecode
    from penstock.console import build

    console = Path(sys.argv[1]) / "console"
    for file, text in CONSOLE.items():
        (console / file).parent.mkdir(parents=True, exist_ok=True)
        (console / file).write_text(text)
    build.built = lambda report: console
    for name, context in json.loads(sys.argv[2]).items():
        with patch.object(bytecode, "compiler", lambda: None) if name == "uncompiled" else nullcontext():
            files = {} if name in WITH_FILES else IN_PLACE
            app.build(str(Path(sys.argv[1]) / name), {**context, **files}).synth()


if __name__ == "__main__":
    main()
