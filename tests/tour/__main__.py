"""Run the job and print what it entered."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import threading
from contextlib import redirect_stdout
from pathlib import Path

from penstock.domain.jobs.jobs import Outcome
from tests.tour import trace
from tests.tour.site import Site
from tests.tour.trace import Call, Tracer

FUNCTIONS = Path(__file__).parents[2] / "functions"
SCRIPT = "#!/bin/bash\necho hello\n"
MOST = 49
"""Modules that one job may enter: whoever reads the code along a job opens no more."""
PATIENCE = 60
"""Seconds that the agent may take."""


def tour() -> list[Call]:
    """All first calls of one job with one resource, in order, control plane and agent together."""
    calls = list[Call]()
    with tempfile.TemporaryDirectory(prefix="penstock-tour-") as folder, redirect_stdout(sys.stderr):
        home, pipe = Path(folder), Path(folder, "calls")
        os.mkfifo(pipe)
        site, tracer = Site(home, _python(home)), Tracer(str(FUNCTIONS), calls.append)
        agent = threading.Thread(target=lambda: calls.extend(trace.read(str(pipe))), daemon=True)
        tracer.start()
        try:
            job = site.run_job(SCRIPT, "licence", lambda: wait_for_end(agent))
        finally:
            tracer.stop()
        assert site.job(job).end.outcome is Outcome.SUCCEEDED, site.job(job)
    return sorted(calls)


def wait_for_end(agent: threading.Thread) -> None:
    """Let the agent go on, and wait until it has written its last call and has ended: nobody has to kill it then.

    It waits for a reader of its pipe before it does anything. So whoever started it has done what follows from that.
    """
    agent.start()
    agent.join(PATIENCE)
    assert not agent.is_alive(), "the agent does not end"
    os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)


def modules(calls: list[Call]) -> list[str]:
    """The modules of calls, by their first one."""
    return list(dict.fromkeys(call.module for call in calls))


def _python(home: Path) -> Path:
    """A Python that runs the agent with the tracer on."""
    path = home / "python"
    words = [sys.executable, trace.__file__, str(home / "calls")]
    path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    path.chmod(0o700)
    return path


def quiet() -> None:
    """Let handlers log nothing and count nothing."""
    os.environ.setdefault("PENSTOCK_METRICS", "off")
    os.environ.setdefault("POWERTOOLS_LOG_LEVEL", "CRITICAL")


def main() -> int:
    """Print each function with its module when it is first entered, then the number of modules."""
    quiet()
    calls = tour()
    numbers = {module: number for number, module in enumerate(modules(calls), 1)}
    seen = set[str]()
    for call in calls:
        number = "" if call.module in seen else numbers[call.module]
        seen.add(call.module)
        print(f"{number:>3} {call.module:34} {call.function}")
    print(f"\n{len(calls)} functions in {len(numbers)} modules; at most {MOST} modules are allowed")
    return int(len(numbers) > MOST)


if __name__ == "__main__":
    sys.exit(main())
