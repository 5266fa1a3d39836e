"""Print how many seconds of one core the agent needs to hide secrets in a million lines."""

from __future__ import annotations

import random
import time

from penstock.agent.joblog import LineSplitter
from penstock.agent.masking import Mask, MaskedStream, resource_secrets

LINES = 100_000
READ = 1 << 16
LINE_BYTES = 16 * 1024


def seconds(hidden: int, escapes: bool) -> float:
    """Seconds for a million lines of 80 bytes, with so many tokens to be hidden of which none is there."""
    dice = random.Random(1)
    tokens = {str(number): {"metadata": {"token": f"{dice.getrandbits(256):064x}"}} for number in range(hidden)}
    told = b"%-70d 50%%,\\n..\n" if escapes else b"%-79d\n"
    data = b"".join(told % number for number in range(LINES))
    lines: list[str] = []
    stream = MaskedStream(Mask(resource_secrets(tokens)), LineSplitter(LINE_BYTES, lines.append, lines.append).feed)
    began = time.process_time()
    for at in range(0, len(data), READ):
        stream.feed(data[at : at + READ])
    stream.feed(b"", final=True)
    assert len(lines) == LINES
    return (time.process_time() - began) * 1_000_000 / LINES


def main() -> None:
    """Print a table."""
    print("| tokens | seconds for a million lines | where each has an escape |\n|---|---|---|")
    for hidden in (0, 1, 5, 30):
        print(f"| {hidden} | {seconds(hidden, False):.1f} | {seconds(hidden, True):.1f} |")


if __name__ == "__main__":
    main()
