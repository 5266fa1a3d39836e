"""What a new process of each function costs, as deployed: the built code and layer, and the functions' own Python.

    python -m tests.figures.coldstarts [--repeats N]

CPU time of one process, so other work on the machine matters little; it differs between machines, so compare ratios
within one run: `import boto3` runs in turn with the functions. AWS is a stub on this machine, by HTTP without TLS, that
has no rows. Fails if a figure is over its budget.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from infra.github import QUEUE as GITHUB
from infra.node import use_bundled
from infra.queues import NAMES
from infra.sizes import GITHUB_SIZES, SIZES
from tests.figures.report import Budgets, table

LAMBDA_BRINGS = ("boto3", "botocore", "s3transfer", "urllib3", "dateutil", "six", "jmespath")
APIS = ("api", "agent_api", "github_webhook")
OTHERS = ("schedule", "factory", "well", "settle", "sweep", "github_work")
MOST_OF_BOTO3 = {**dict.fromkeys(APIS, 2.0), **dict.fromkeys(OTHERS, 1.5)}
MOST_ABOVE_WARM = 30
"""Milliseconds of CPU by which the first call may be slower than a warm one."""
MOST_OF_MEMORY = 0.25
"""What part of a function's memory may be used by a call without rows."""

IMPORT = """
import time; start = time.process_time()
if {module!r} != "boto3":
    from penstock import bootstrap; bootstrap.prepare = lambda *_: None
import {module}
print(1000 * (time.process_time() - start))
"""

CALLS = """
import contextlib, importlib, io, json, sys, time
start = time.process_time()
handler = importlib.import_module({module!r}).handler
taken = [time.process_time() - start]
class Context:
    function_name, memory_limit_in_mb, aws_request_id = {module!r}, 512, "request"
    invoked_function_arn = "arn:aws:lambda:us-east-1:123456789012:function:measured"
    def get_remaining_time_in_millis(self): return 20000
for _ in range(12):
    start = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        handler({event!r}, Context())
    taken.append(time.process_time() - start)
ready, first, *warm = (1000 * each for each in taken)
memory = int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) / 1024
print(json.dumps([ready, first, sorted(warm)[len(warm) // 2], memory]))
"""


class Stub(BaseHTTPRequestHandler):
    """Answers every request of every service with nothing."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer."""
        self.rfile.read(int(self.headers.get("content-length") or 0))
        target = self.headers.get("x-amz-target", "")
        body = {"Items": [], "Count": 0, "ScannedCount": 0} if "Query" in target else {}
        self._reply(json.dumps({"executions": []} if "ListExecutions" in target else body).encode())

    def do_GET(self) -> None:
        """Answer S3's listing."""
        self._reply(b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>")

    def _reply(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def messages(*bodies: Any) -> dict[str, Any]:
    """A batch of SQS."""
    return {"Records": [{"messageId": "1", "body": json.dumps(body)} for body in bodies]}


def request(method: str, path: str) -> dict[str, Any]:
    """A request as API Gateway passes it on."""
    http = {"method": method, "path": path}
    context = {"http": http, "stage": "$default", "requestId": "request"}
    token = {"authorization": "Bearer pk_unknown", "x-github-delivery": "1", "x-github-event": "ping"}
    given = {"rawPath": path, "rawQueryString": "", "headers": token, "requestContext": context, "body": "{}"}
    return {"version": "2.0", "routeKey": "$default", "isBase64Encoded": False, **given}


EVENTS: Mapping[str, dict[str, Any]] = {
    "api": request("GET", "/v1/jobs"),
    "agent_api": request("POST", "/v1/agent/hello"),
    "github_webhook": request("POST", "/v1/github/webhook"),
    "schedule": messages({"do": "serve", "pools": ["target/linux"], "group": "target/linux"}),
    "factory": messages({"unit": "w-01KDVDNA02G83EFRTNJJN6PQ8A"}),
    "well": messages({"unit": "r-01KDVDNA02G83EFRTNJJN6PQ8A"}),
    "settle": {"job": "01KDVDNA02G83EFRTNJJN6PQ8A", "attempt": 1},
    "sweep": {},
    "github_work": messages({"do": "unknown"}),
}


def environment(url: str) -> dict[str, str]:
    """A function's environment, whose AWS is at a URL."""
    names = ("BUCKET", "TABLE", "SIGNING_SECRET", "METADATA_KEY", "GITHUB_TOKENS", "GITHUB_KEY", "GITHUB_SECRET")
    queues = [f"{each.upper()}_QUEUE" for each in (*NAMES, GITHUB)]
    return {
        **{name: name.lower() for name in names}, **dict.fromkeys(queues, f"{url}/queue"),
        "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1", "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_LAMBDA_FUNCTION_NAME": "measured",
        "FLOW": "arn:aws:states:us-east-1:123456789012:stateMachine:attempts", "POWERTOOLS_SERVICE_NAME": "measured",
    }  # fmt: skip


class Deployed:
    """What is deployed, and what Lambda adds."""

    def __init__(self, program: str, runtime: Path, url: str) -> None:
        from infra import bundle

        self._program = program
        self._environment = environment(url)
        self._folders = [str(bundle.built_code()), str(bundle.built_layer() / "python"), str(runtime)]

    def run(self, script: str) -> Any:
        """What a script prints in a new process."""
        return json.loads(self.done(script).stdout.splitlines()[-1])

    def done(self, script: str, *under: str) -> subprocess.CompletedProcess[str]:
        """A script in a new process, started under another program if one is given. Raises RuntimeError if it fails."""
        start = f"import sys; sys.path[:0] = {self._folders!r}; sys.dont_write_bytecode = True\n"
        command = [*under, self._program, "-I", "-S", "-c", start + script]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done

    def imported(self, module: str) -> float:
        """Milliseconds to import a module, without what a function makes at its start."""
        return float(self.run(IMPORT.format(module=module)))

    def called(self, module: str) -> list[float]:
        """Milliseconds until it is ready, of the first call and of a warm one; MB."""
        found: list[float] = self.run(CALLS.format(module=module, event=EVENTS[module]))
        return found


def runtime(folder: Path) -> Path:
    """A folder with the libraries that Lambda brings, compiled."""
    from infra import bytecode

    for name in LAMBDA_BRINGS:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        source = Path(spec.origin)
        if spec.submodule_search_locations:
            shutil.copytree(source.parent, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder)
    bytecode.compile_folder(folder, "/var/runtime")
    return folder


def main() -> int:
    """Measure and print; 1 when a figure is over its budget."""
    parser = argparse.ArgumentParser(prog="python -m tests.figures.coldstarts", description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    with deployed() as built:
        return 0 if report(built, repeats) else 1


@contextmanager
def deployed() -> Iterator[Deployed]:
    """What would be deployed, built now, for as long as the block lasts. Exits if the functions' Python is not here."""
    use_bundled()
    from infra import bytecode

    program = bytecode.compiler()
    if not program:
        raise SystemExit(bytecode.WARNING)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Stub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with TemporaryDirectory() as folder:
            url = f"http://127.0.0.1:{server.server_address[1]}"
            yield Deployed(program, runtime(Path(folder)), url)
    finally:
        server.shutdown()


def report(deployed: Deployed, repeats: int) -> bool:
    """Print the table; whether all is within the budgets."""
    imports: dict[str, list[float]] = {name: [] for name in ("boto3", *EVENTS)}
    calls: dict[str, list[list[float]]] = {name: [] for name in EVENTS}
    for _ in range(repeats):
        for name, found in imports.items():
            found.append(deployed.imported(name))
        for name, each in calls.items():
            each.append(deployed.called(name))
    medians = {name: statistics.median(found) for name, found in imports.items()}
    rows: list[tuple[object, ...]] = [("`import boto3`", round(medians["boto3"]), "1.00", *[""] * 6)]
    sizes = {**SIZES, **GITHUB_SIZES}
    budgets, is_kept = Budgets(), True
    for name in EVENTS:
        ready, first, warm, memory = (statistics.median(column) for column in zip(*calls[name], strict=True))
        ratio = medians[name] / medians["boto3"]
        is_kept &= round(ratio, 2) <= MOST_OF_BOTO3[name] and first - warm <= MOST_ABOVE_WARM
        is_kept &= memory <= MOST_OF_MEMORY * sizes[name].memory
        most = f"{MOST_OF_BOTO3[name]:g}"
        figures = (
            round(medians[name]),
            f"{ratio:.2f}",
            most,
            round(ready),
            f"{first:.1f}",
            f"{warm:.1f}",
            round(memory),
            sizes[name].memory,
        )
        rows.append((f"`{name}`", *figures))
    heads = (
        "function",
        "import, ms",
        "of boto3",
        "budget",
        "with clients, ms",
        "first call, ms",
        "warm call, ms",
        "MB used",
        "MB",
    )
    table("Cold starts, as deployed", heads, rows)
    print(
        budgets.verdict(
            is_kept, f"imports as above, a first call {MOST_ABOVE_WARM} ms over a warm one, a quarter of the memory"
        )
    )
    return is_kept


if __name__ == "__main__":
    sys.exit(main())
