"""What the console's pages are looked at with: real jobs on a real cloud, in every state."""

from __future__ import annotations

from dataclasses import dataclass

from tests.e2e.conftest import Local

JOB = '#: name = "{name}"\n#: variety = "basic"\n{more}{script}\n'
FILE = '#: output_rules = ["/work/report.txt"]\n'
BENCH = '#: resources = ["bench"]\n'


def text(name: str, script: str, more: str = "") -> str:
    """A job file, without its first line."""
    return JOB.format(name=name, script=script, more=more)


@dataclass(frozen=True)
class Scene:
    """Ids of jobs, by what they are."""

    succeeded: str
    failed: str
    running: str
    waiting: str

    @staticmethod
    def of(local: Local) -> Scene:
        """Submit them, and wait until each is what it should be."""
        hangs = 'while true; do echo "tick $(date +%T)"; sleep 1; done'
        runs = local.submit(text("soak test", hangs, '#: resources = ["bench", "licence"]\n'))
        for _ in range(2):
            local.submit(text("flash", hangs, BENCH))
        made = 'printf "\\033[32mok\\033[0m\\n"; seq 1 300; echo fine > "$PENSTOCK_WORK/report.txt"'
        good = local.submit(text("build", made, FILE))
        bad = local.submit(text("unit tests", 'echo "assertion failed" >&2; exit 3'))
        local.until(lambda: local.job(runs)["state"] == "running")
        waits = local.submit(text("flash again", "true", BENCH))
        assert local.settled(good)["outcome"] == "succeeded"
        assert local.settled(bad)["outcome"] == "failed"
        local.until(lambda: local.job(waits)["waits_for"])
        return Scene(succeeded=good, failed=bad, running=runs, waiting=waits)
