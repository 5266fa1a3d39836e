"""What each page of the documentation assumes: files, jobs, users, in place of its placeholders.

A command that a page gains and that fails in test_examples.py needs a word in the function of its page here; one that
cannot run on a machine without an account needs a reason in LEFT_OUT.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.docs.shell import ROOT
from tests.e2e.pages import Reader, Setup, Words, World, fenced

LEFT_OUT = {
    "penstock deploy": "it changes an AWS account; the options of all pages are tried together, with --diff",
    "penstock agent": "it makes this machine one of the site's, and does not end; tests/e2e/test_hosts.py runs it",
    "penstock github redeliver": "GitHub delivered nothing; tests/e2e/test_github.py has a GitHub",
}
"""Beginnings of lines that are not typed, and why."""

CODES: dict[tuple[str, str], tuple[int, str]] = {
    ("docs/users/cli.md", "penstock config diff site.toml --exit-code"): (1, "the files differ, and that is the code"),
}
"""By page and line: the exit code of a command that does not exit with 0, and why."""

SAYS = {
    "penstock driver test shelf:ShelfWell --settings shelf.toml": "12 checks, 0 failed",
    "penstock job run flash.sh": "/work/report.txt  17 B",
    "penstock job copy JOB /work/report.txt -": "flashing",
    "penstock job tail JOB --grep 'error|warning'": "an error",
}
"""By line: what its page says that it prints."""

DEPLOYED = {
    "ARN,ARN": "arn:aws:lambda:eu-west-1:123456789012:function:one,arn:aws:lambda:eu-west-1:123456789012:function:two",
    "arn:…": "arn:aws:iam::123456789012:policy/jobs-at-most",
    "subnet-…,subnet-…": "subnet-0123456789abcdef0,subnet-0123456789abcdef1",
    "sg-…": "sg-0123456789abcdef0",
}
"""What stands in place of placeholders in options of a deployment."""

FETCHED = {
    "libcloud": "the functions' layer is made anew, with libraries from the package registry",
    "drivers": "the same; the file is the reader's",
}
"""Options of a deployment that are not tried, and why."""

JOB = '#!/bin/bash\n#: name = "{name}"\n#: variety = "basic"\n{more}{script}\n'
HOUR = "sleep 3600"
SITE = Path(__file__).with_name("examples.toml")
APPLIED = SITE.read_text() + '\n[targets.gpu]\nfactory = "aws"\nlimit = 1\n'
"""The site.toml of readers: one target more than the site has, so that something is applied."""


READDRESS = "sed -i 's,http://[^\"]*,{0.local.running.url},' ~/.config/penstock/config.toml"
"""The emulator's gateways have names that no resolver here knows, and the one address that reaches them."""


def job(name: str, script: str = "echo done", more: str = "") -> str:
    """A job file."""
    return JOB.format(name=name, script=script, more=more)


def template(folder: Path) -> Path:
    """A folder with the files that pages name, in a branch of a git repository."""
    files = {
        "build.sh": job("build", 'echo built > "$PENSTOCK_WORK/out.tar"', '#: output_rules = ["/work/out.tar"]\n'),
        "test.sh": job("test"),
        "report.sh": job("report"),
        "ci/build.sh": job("build", more='#: paths = ["src/**"]\n'),
        "ci/test.sh": job("test", more='#: [dependencies.build]\n#: job = "build"\n'),
        "hello.sh": (ROOT / "examples/hello.sh").read_text(),
        "site.toml": APPLIED,
        "data.csv": "1,2\n",
        "big/model.bin": "model\n",
        "token.txt": "a-token-of-nobody\n",
        "src/a.rs": "",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git = ["git", "-c", "user.name=ada", "-c", "user.email=ada@example.com"]
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "all"], ["switch", "-qc", "topic"]):
        subprocess.run([*git, *words], cwd=folder, check=True)
    (folder / "src/a.rs").write_text("changed")
    return folder


def everybody(world: World) -> Words:
    """Names that several pages use: each page has its own. And the address of the service, where AWS would say it."""
    names = {"oxide:hubris": f"oxide:{world.name}", "gate": f"gate-{world.name}"}
    return names | {
        f"--save {each}": f"--save {each} && {READDRESS.format(world)}" for each in ("prod", "rescue", "root")
    }


def settled(world: World, script: str = "echo done", more: str = "", *words: str) -> str:
    """A job that succeeded."""
    id = submitted(world, script, more, *words)
    found = world.local.settled(id)
    assert found["outcome"] == "succeeded", found
    return id


def submitted(world: World, script: str, more: str = "", *words: str) -> str:
    """A job."""
    return world.local.submit(job(world.name, script, more).removeprefix("#!/bin/bash\n"), *words)


def running(world: World, script: str = HOUR, more: str = "", *words: str) -> str:
    """A job whose script runs until the page has been read."""
    id = submitted(world, script, more, *words)
    world.ends.callback(world.local.cli, "job", "cancel", id)
    world.local.until(lambda: world.local.job(id)["state"] == "running")
    return id


def repository(world: World, *privileges: str) -> str:
    """The page's repository, and a user `gate` who may submit for it. Returns a token of that user."""
    names = everybody(world)
    gate = str(names["gate"])
    for name in (str(names["oxide:hubris"]), gate):
        world.good("user", "create", name)
    for each in privileges:
        world.good("user", "grant", gate, each)
    return token(world, gate)


def token(world: World, user: str) -> str:
    """A new token of a user."""
    return str(json.loads(world.good("token", "create", "--user", user, "--json"))["token"])


def first_steps(world: World) -> Words:
    """docs/users/README.md: its own job file, a job that it ran, and one that still runs."""
    (flash,) = fenced(world.page, "bash")
    (world.folder / "flash.sh").write_text(flash)
    report = '#: output_rules = ["=/work/report.txt"]\n'
    return login(world) | {
        "job cancel JOB": lambda: f"job cancel {running(world)}",
        "JOB": settled(world, 'echo "flashing" > "$PENSTOCK_WORK/report.txt"', report),
    }


def caches(world: World) -> Words:
    """An entry of a cache."""
    repository(world)
    return {"ID": entry(world)}


def entry(world: World) -> str:
    """An entry of a cache, which a job saved."""
    world.good("job", "run", str(ROOT / "examples/cache.sh"))
    found: list[dict[str, str]] = json.loads(world.good("cache", "list", "--json"))
    return found[0]["id"]


def dependencies(world: World) -> Words:
    """A set that was submitted, jobs to depend on, and one that depends on one of them."""
    ended = settled(world)
    text = {"script": job("test"), "dependencies": {"build": {"job": ended}}}
    dependent = world.local.call("POST", "/v1/jobs", json=text)
    assert dependent.status_code == 201, dependent.text
    return {
        "BUILD": ended,
        "TEST": dependent.json()["id"],
        "01KG...": ended,
        "3f2a91c07b44": world.name[-12:],
        "01KE...": ended,
        "01KF...": ended,
        "job run ci/ --since main": "job run ci/ --no-wait --since main",
        "job run ci/ --since main --plan": "job run ci/ --since main --plan",
        "job run ci/ --changed": "job run ci/ --no-wait --changed",
    }


def environments(world: World) -> Words:
    """Two jobs that wait for a reviewer. What is asked is answered."""
    world.good("user", "create", "carla")
    text = job("deploy", more='#: target = "signer"\n#: environment = "production"\n')
    head = {"authorization": f"Bearer {token(world, 'carla')}"}
    one, other = (world.local.call("POST", "/v1/jobs", json={"script": text}, headers=head).json() for _ in range(2))
    return {"job approve JOB --refuse": f"job approve {other['id']} --refuse", "JOB": one["id"]}


def logs(world: World) -> Words:
    """Jobs that ended, a job of tasks, and a set."""
    one, other = settled(world, "echo an error"), settled(world)
    tasks = {"tasks": [{"name": "build", "script": "#!/bin/bash\necho built"}], "name": "tasks", "target": "default"}
    answer = world.local.call("POST", "/v1/jobs", json=tasks)
    assert answer.status_code == 201, answer.text
    world.local.settled(answer.json()["id"])
    set = world.name[-12:]
    world.good("job", "run", "ci/", "--set", set)
    return {
        "JOB": one,
        "JOB1": one,
        "JOB2": other,
        "3f2a91c07b44": set,
        "tail JOB --task": f"tail {answer.json()['id']} --task",
    }


def vouched(world: World) -> Words:
    """A job that asks for a token as the page says, and a user who may submit for the repository, and does."""
    asks, *_ = fenced(world.page, "bash")
    settled(world, asks)
    return {"penstock job run": f"penstock --token {repository(world)} job run"}


def github(world: World) -> Words:
    """A repository that was known, and a user to link. github.com is not asked who that is."""
    repository(world)
    linked = "penstock user link ada --github ada-l"
    return {linked: linked.replace(" ada ", f" {everybody(world)['gate']} ") + " --id 4242"}


def provenance(world: World) -> Words:
    """A job of a repository whose commit somebody vouches for."""
    gate = repository(world, "as", "identity.vouch")
    (world.folder / "app.sh").write_text(
        job("app", 'echo app > "$PENSTOCK_WORK/app.tar.gz"', '#: output_rules = ["=/work/app.tar.gz"]\n')
    )
    owner = str(everybody(world)["oxide:hubris"])
    of = ["--owner", owner, "-T", "ref=refs/heads/main", "-T", "sha=" + "4c371f0a" * 5]
    made = json.loads(world.good("--token", gate, "job", "run", "app.sh", "--no-wait", "--json", *of))["id"]
    assert world.local.settled(made)["outcome"] == "succeeded"
    return {"JOB": made}


def publishing(world: World) -> Words:
    """A job of a repository with an output to publish."""
    repository(world)
    owner = str(everybody(world)["oxide:hubris"])
    rules = '#: output_rules = ["=/work/image.tar"]\n'
    return {"JOB": settled(world, 'echo image > "$PENSTOCK_WORK/image.tar"', rules, "--owner", owner)}


def retention(world: World) -> Words:
    """A job with an output."""
    made = settled(world, 'echo kept > "$PENSTOCK_WORK/kept.txt"', '#: output_rules = ["=/work/kept.txt"]\n')
    (output,) = world.local.json("job", "outputs", made)
    return {"ID": output["id"], "JOB": made}


def store(world: World) -> Words:
    """A job that says what the page's scripts say."""
    made = running(world, "\n".join([*fenced(world.page, "bash"), HOUR]))
    world.local.until(lambda: world.type(f"penstock job store get {made} url").returncode == 0)
    return {"JOB": made}


def waiting(world: World) -> Words:
    """A job that waits for a resource that another one has."""
    running(world, more='#: resources = ["axle"]\n')
    waits = submitted(world, "true", '#: resources = ["axle"]\n')
    world.ends.callback(world.local.cli, "job", "cancel", waits)
    return {"JOB": waits} | ({} if shutil.which("dot") else {"| dot -Tsvg > site.svg": "> site.dot"})


def leases(world: World) -> Words:
    """The newest lease; what the page forgets is released when it has been read."""

    def newest() -> str:
        found = world.type("penstock lease list --query '[0].id'").stdout.strip()
        world.ends.callback(world.local.cli, "lease", "release", found)
        return str(found)

    return {"LEASE": newest}


def prices(world: World) -> Words:
    """A job that ended."""
    return {"01J5K3M8Q2V7X9Z4B6D8F0H1A3": settled(world)}


def job_files(world: World) -> Words:
    """Some of them."""
    return {"FILE...": "hello.sh build.sh"}


def operations(world: World) -> Words:
    """A job that runs on a worker, and a worker that is gone: what follows its log comes to an end."""
    job, gone = running(world), settled(world)
    worker = world.local.job(gone)["worker"]
    return {
        "w-01…": world.local.job(job)["worker"],
        "01…": job,
        "worker tail w-01…": f"worker tail {worker}",
    }


def privileges(world: World) -> Words:
    """A user who submits for others, and a token to revoke. Ada asks for privileges, with a token of hers."""
    world.good("user", "create", str(everybody(world)["gate"]))
    made = json.loads(world.good("token", "create", "--json"))
    removed, asks = "penstock user remove adele", "penstock privilege request"
    adas = "$(penstock token create --user ada --json --query token)"
    return {"ID": made["id"], removed: patiently(removed), asks: asks.replace(" ", f" --token {adas} ", 1)}


def patiently(text: str) -> str:
    """A command that succeeds some minutes after those before it, as its page says. Who types it waits for that."""
    return f"until {text}; do sleep 1; done"


def incident(world: World) -> Words:
    """The thief has a token of root, and two users."""
    stolen = json.loads(world.good("user", "bootstrap", "--user", "root", "--json"))["token"]
    for name in ("mallory", "bob"):
        world.good("--token", stolen, "user", "create", name, "--privilege", "admin")
    world.good("--token", stolen, "pool", "pause", "target/linux")
    removed = "penstock user remove mallory"
    return {"ID": stolen.split("_")[2], removed: patiently(removed)}


def shelf(world: World) -> Words:
    """The driver that a page makes, and its settings."""
    code = next(each for each in fenced("docs/drivers/writing-a-driver.md", "python") if "class ShelfWell" in each)
    (world.folder / "shelf.py").write_text(code)
    (world.folder / "shelf.toml").write_text(f'path = "{world.folder}/units"\n')
    return {}


def rack(world: World) -> Words:
    """The example service, as the page starts it, and its settings."""
    return program(world, "http_well.py", "WELL_SECRET", "rack")


def lab(world: World) -> Words:
    """The example controller, as the page starts it, and its settings."""
    return program(world, "http_factory.py", "FACTORY_SECRET", "lab", str(world.folder / "lab"))


def program(world: World, example: str, variable: str, name: str, *words: str) -> Words:
    """An example that serves until the page was read, and the settings for its driver."""
    secret = "a secret of at least thirty-two characters"
    (world.folder / f"{name}.secret").write_text(secret)
    serves = subprocess.Popen(
        [sys.executable, "-S", str(ROOT / "examples" / example), "0", *words],
        env={variable: secret, "PYTHONPATH": str(ROOT / "functions"), "PATH": os.environ["PATH"]},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    world.ends.callback(serves.wait)
    world.ends.callback(serves.terminate)
    assert serves.stdout
    url = serves.stdout.readline().strip()
    (world.folder / f"{name}.toml").write_text(f'url = "{url}"\nsecret = "file:{world.folder}/{name}.secret"\n')
    return {}


def reference(world: World) -> Words:
    """The examples of many commands' help, typed by an operator of their own: `-` is the newest of their jobs."""
    world.good("user", "create", "reader", "--privilege", "admin")
    world.environment["PENSTOCK_TOKEN"] = token(world, "reader")
    app = str(provenance(world)["JOB"])
    world.good("job", "copy", app, "/work/app.tar.gz")
    (world.folder / "app.json").write_text(world.good("job", "provenance", app))
    (world.folder / "penstock.pem").write_text(world.good("job", "provenance", "--key"))
    shelf(world)
    (world.folder / "shelf").mkdir()
    (world.folder / "shelf.py").rename(world.folder / "shelf" / "well.py")
    image = settled(world, 'echo image > "$PENSTOCK_WORK/image.tar"', '#: output_rules = ["=/work/image.tar"]\n')
    canary = "penstock canary send target/ubuntu-24.04"  # which the site sent itself when it began
    return login(world) | {
        canary: patiently(canary),
        "job publish ID": f"job publish {image}",
        "artifact pin ID": f"artifact pin {world.local.json('job', 'outputs', image)[0]['id']}",
        "JOB": app,
        "01KDVDNA02G83EFRTNJJN6PQ8A": entry(world),
    }


LOGIN = "penstock login https://penstock.example.com"


def login(world: World) -> Words:
    """Somebody who is signed in already approves the code that the command shows."""
    return {LOGIN: f"{shows(world)}; {approves(world)} && wait $!"}


def shows(world: World) -> str:
    """The command, in the background, and a look for its code."""
    return f"penstock login {world.local.running.url} > said 2>&1 & until grep -q approve said; do sleep 0.2; done"


def approves(world: World) -> str:
    """The other command, where somebody is signed in."""
    there = f"--url {world.local.running.url} --token {world.local.running.token}"
    return f"penstock {there} login $(grep -o 'approve [A-Z-]*' said) --yes"


def sign_in(world: World) -> Words:
    """A token in a file. The page has both commands that sign in with a code."""
    (world.folder / "token.txt").write_text(token(world, "admin"))
    url = world.local.running.url
    return {
        LOGIN: shows(world),
        "penstock login approve BCDF-GHJK": approves(world),
        f"{LOGIN} --with-token": f"penstock login {url} --with-token",
        "https://lab.example.com --profile lab": f"{url} --with-token --profile lab < token.txt",
        "--profile team": "--profile lab",
    }


def lent(world: World) -> Words:
    """The cloud that is up already is shown."""
    return {"local up --config examples/lent.toml": f"local up --detach --config {ROOT}/examples/lent.toml"}


SETUPS: dict[str, Setup] = {
    "docs/operators/wells/sts.md": lent,
    "docs/users/sign-in.md": sign_in,
    "docs/users/cli.md": reference,
    "docs/operators/operations.md": operations,
    "docs/users/dependencies.md": dependencies,
    "docs/users/events.md": logs,
    "docs/users/README.md": first_steps,
    "docs/drivers/writing-a-driver.md": shelf,
    "docs/operators/wells/http.md": rack,
    "docs/operators/http.md": lab,
    "docs/operators/privileges.md": privileges,
    "docs/users/caches.md": caches,
    "docs/users/environments.md": environments,
    "docs/users/github.md": github,
    "docs/users/identity.md": vouched,
    "docs/users/job-files.md": job_files,
    "docs/users/provenance.md": provenance,
    "docs/users/prices.md": prices,
    "docs/users/publishing.md": publishing,
    "docs/users/retention.md": retention,
    "docs/users/store.md": store,
    "docs/users/leases.md": leases,
    "docs/users/waiting.md": waiting,
    "docs/operators/incident.md": incident,
}
"""Pages that are not here need only the files. The first take longest, and begin first."""

LAST = (
    "docs/operators/README.md",
    "docs/operators/operations.md",
    "docs/operators/site.md",
    "docs/operators/incident.md",
)
"""They apply another site and disable users, so no other page is read meanwhile."""

READER = Reader(SETUPS, everybody, LEFT_OUT, LAST)
