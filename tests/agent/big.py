"""`python -m tests.agent.big`: a file of 10 GB as an output, and then as an input, through connections that break.

The agent is the real one, and so is every byte. Where bytes are kept is a server of our own that takes parts as S3 does
and keeps only their digests: the emulator of S3 has all it keeps in memory. Prints what went over the wire and how much
memory the agent had at most; fails when something is not as it was sent.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from penstock import agentfile
from tests.agent import conftest
from tests.agent.conftest import Worker
from tests.agent.control_plane import ControlPlane, Handler, order

BYTES = 10_000_000_000
PART_BYTES = 1 << 26
HOURS_SECONDS = 4 * 3600
MEMORY_BYTES = 512 << 20
"""What an agent may have at most. The file is twenty times as big: it is never in memory as a whole."""
BREAK_EVERY = 7
"""So many uploads are good before one breaks. A download breaks once, in the middle."""


class Digesting(ControlPlane):
    """Keeps of each part its size and digest; every so often one is lost with its connection."""

    def __init__(self, **changes: Any) -> None:
        super().__init__(order(**changes), self._breaks)
        self.sizes: Counter[str] = Counter()
        self.digests: dict[tuple[str, int], bytes] = {}
        self.file: Path | None = None

    def _breaks(self, endpoint: str, count: int) -> str | None:
        return "drop" if endpoint == "store" and count % BREAK_EVERY == 0 else None

    def put(self, id_: str, data: bytes) -> None:
        name, _, number = id_.partition(".")
        self.digests[name, int(number)] = hashlib.sha256(data).digest()
        self.sizes[name] += len(data)

    def _parts(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        status, told = super()._parts(body)
        for each, digest in zip(told["parts"], body["sha256"], strict=True):
            found = self.digests.get((body["id"], each["number"]))
            each["there"] = found is not None and found.hex() == digest
        return status, told

    def _join(self, id_: str) -> bool:
        mine = [self.digests[key] for key in sorted(key for key in self.digests if key[0] == id_)]
        return hashlib.sha256(b"".join(mine)).hexdigest() == self.uploads[id_]["composite"]


class FromDisk(Handler):
    """Gives an input from a file, its first half at first."""

    def do_GET(self) -> None:
        plane, path = self.plane, self.plane.file  # type: ignore[attr-defined]
        wanted = self.headers["Range"]
        plane.ranges.append(wanted)
        start, size = int(wanted[6:-1]) if wanted else 0, path.stat().st_size
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(size - start))
        self.end_headers()
        with path.open("rb") as stream:
            stream.seek(start)
            left = size - start if wanted else size // 2
            while left and (data := stream.read(min(1 << 20, left))):
                self.wfile.write(data)
                left -= len(data)


def main() -> int:
    """Send it, fetch it, and say what came."""
    asked = argparse.ArgumentParser(prog="python -m tests.agent.big", description=__doc__)
    asked.add_argument("--bytes", type=int, default=BYTES, help="size of the file (default: %(default)s)")
    size = asked.parse_args().bytes
    conftest.PATIENCE_SECONDS = HOURS_SECONDS
    with tempfile.TemporaryDirectory(prefix="penstock-big-") as folder:
        agent = Path(folder, "agent.pyz")
        agent.write_bytes(agentfile.build())
        big, sha256 = sent(agent, Path(folder, "sender"), size)
        fetched(agent, Path(folder, "fetcher"), big, sha256)
    return 0


def sent(agent: Path, folder: Path, size: int) -> tuple[Path, str]:
    """Have a job make a file that it keeps; return where it is and its digest."""
    script = f"seq 1 {size} | head -c {size} > big"
    limits = {"output_bytes": size, "part_bytes": PART_BYTES}
    with Digesting(script=script, output_rules=["=/work/big"], limits=limits, timeout_seconds=HOURS_SECONDS) as plane:
        run(agent, folder, plane)
        (upload,) = plane.uploads.items()
        id_, told = upload
        assert told.get("committed"), plane.lines("worker")
        assert plane.sizes[id_] == told["size"] == size
        tries = plane.calls.count("store")
        print(f"sent: {size:,} bytes in {len(plane.digests)} parts, {tries} tries, {tries // BREAK_EVERY} broken")
        return folder / "root" / "work" / "big", str(told["sha256"])


def fetched(agent: Path, folder: Path, big: Path, sha256: str) -> None:
    """Have another job find the file among its inputs."""
    script = "sha256sum < $PENSTOCK_INPUT/big"
    with Digesting(script=script, inputs=True, timeout_seconds=HOURS_SECONDS) as plane:
        plane._server.RequestHandlerClass = type("Bound", (FromDisk,), {"plane": plane})
        plane.file = big
        size = big.stat().st_size
        plane.inputs.append({"path": "/input/big", "size": size, "sha256": sha256, "url": f"{plane.url}/kept/big"})
        run(agent, folder, plane)
        assert plane.lines("stdout") == [f"{sha256}  -"], plane.lines()
        assert plane.ranges[0] is None
        print(f"fetched: {size:,} bytes in {len(plane.ranges)} tries, the later ones from {plane.ranges[1:]}")


def run(agent: Path, folder: Path, plane: ControlPlane) -> None:
    """Run the agent to its good end, and see how much memory it had."""
    folder.mkdir()
    worker = Worker(agent, folder, plane)
    process = worker.start()
    peak = 0
    while process.poll() is None:
        peak = max(peak, _peak(process.pid))
        with plane.changed:
            plane.changed.wait(0.2)
    assert worker.outcome()["result"] == "succeeded", (worker.outcome(), worker.log())
    print(f"the agent had at most {peak >> 20} MiB of memory")
    assert peak < MEMORY_BYTES


def _peak(pid: int) -> int:
    try:
        lines = Path("/proc", str(pid), "status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)


if __name__ == "__main__":
    sys.exit(main())
