"""Check the models with spin: `python model/run.py quick|full [--only NAME] [--trail]`.

Needs `spin` and a C compiler (Debian: apt-get install -y spin gcc). Exits with 0 when every configuration ended as
it is expected to, with 1 when one did not, with 2 when a tool is missing.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MISSING = "the model is checked with spin and a C compiler: apt-get install -y spin gcc"
DEPTH = 1_000_000
BITS = 33
"""Two to this many bits for bit-state hashing: 1 GiB."""

CC = {
    "all": ["-DSAFETY", "-DNOFAIR", "-DCOLLAPSE"],
    "ltl": ["-DNOFAIR", "-DCOLLAPSE"],
    "fair": ["-DCOLLAPSE", "-DNFAIR=4"],
    "bits": ["-DSAFETY", "-DNOFAIR", "-DBITSTATE"],
}
PAN = {"all": [], "ltl": ["-a"], "fair": ["-a", "-f"], "bits": [f"-w{BITS}"]}


@dataclass(frozen=True)
class Configuration:
    """One thing to check: what it says, which promises it is about, and what spin is to say of it."""

    name: str
    says: str
    keeps: Sequence[str]
    switches: Sequence[str]
    expect: str = "holds"
    level: str = "quick"
    how: str = "all"
    model: Path = HERE


@dataclass(frozen=True)
class Checked:
    """What spin said. `outcome` is holds, found, or what went wrong."""

    configuration: Configuration
    outcome: str
    states: int
    depth: int
    seconds: float
    trail: str = ""

    @property
    def is_right(self) -> bool:
        """Whether this is what was expected."""
        return self.outcome == self.configuration.expect and self.states > 0


def configurations() -> list[Configuration]:
    """All of every configs.toml, in its order."""
    return [
        _configuration(model, name, dict(values))
        for model in (HERE, HERE / "pools")
        for name, values in tomllib.loads((model / "configs.toml").read_text(encoding="utf-8")).items()
    ]


def _configuration(model: Path, name: str, values: dict[str, Any]) -> Configuration:
    return Configuration(name, values.pop("says"), values.pop("keeps"), values.pop("with"), model=model, **values)


def missing() -> bool:
    """Whether a tool is missing on this machine."""
    return not shutil.which("spin") or not shutil.which("gcc")


def check(configuration: Configuration, with_trail: bool = False) -> Checked:
    """Generate, compile and run the checker of one configuration."""
    begun = time.monotonic()
    defines = [f"-D{switch}" for switch in configuration.switches]
    optimise = "-O2" if configuration.level == "full" else "-O0"  # a small space is walked before it is optimised
    how = configuration.how
    with tempfile.TemporaryDirectory(prefix="penstock-model-") as place:
        _do(place, "spin", "-a", *defines, str(configuration.model / "site.pml"))
        _do(place, "gcc", "-w", optimise, "-DVECTORSZ=1024", *CC[how], "-o", "pan", "pan.c")
        said = _do(place, "./pan", f"-m{DEPTH}", *PAN[how])
        trail = _trail(place, configuration.model, defines) if with_trail and list(Path(place).glob("*.trail")) else ""
    return Checked(
        configuration,
        _outcome(said),
        number_before(" states, stored", said),
        number_after("depth reached ", said),
        time.monotonic() - begun,
        trail,
    )


def _do(place: str, *command: str) -> str:
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    if done.returncode and command[0] != "./pan":
        raise RuntimeError(f"{' '.join(command)} said: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def _outcome(said: str) -> str:
    errors = re.search(r"errors: (\d+)", said)
    if errors is None:
        return "no answer: " + said.strip()[-200:]
    if int(errors[1]):
        return "found"
    if "max search depth too small" in said or "Search not completed" in said:
        return "not completed"
    return "holds"


def number_before(words: str, said: str) -> int:
    """The number that spin says before some words; from a hundred million on it writes 1.0e+08. 0 if it says none."""
    found = re.search(rf"([\d.e+]+){words}", said)
    return round(float(found[1])) if found else 0


def number_after(words: str, said: str) -> int:
    """The whole number that spin says after some words; 0 if it says none."""
    found = re.search(rf"{words}(\d+)", said)
    return int(found[1]) if found else 0


def _trail(place: str, model: Path, defines: Sequence[str]) -> str:
    """The first statement of every step of the error trail: who did what, when."""
    trail = next(Path(place).glob("*.trail"))
    told = _do(place, "spin", "-t", "-k", str(trail), "-p", *defines, str(model / "site.pml"))
    lines, last = [], ""
    for line in told.splitlines():
        step = re.match(r"\s*(\d+):\s+proc\s+\d+ \((\w+):\d+\).*?(\w+\.pml:\d+).*?\t(\[.*)", line)
        if step and step[1] != last and step[2] != ":init::":
            lines.append(f"{step[1]:>5}  {step[2]:<8} {step[3]:<18} {step[4][:150]}")
            last = step[1]
    return "\n".join(lines)


def _table(checked: Iterator[Checked]) -> Iterator[Checked]:
    print(f"{'configuration':<18} {'promises':<33} {'states':>10} {'depth':>6} {'seconds':>7}  expected  spin says")
    for each in checked:
        given = each.configuration
        mark = "" if each.is_right else "   <-- not as expected"
        print(
            f"{given.name:<18} {' '.join(given.keeps):<33} {each.states:>10} {each.depth:>6} {each.seconds:>7.1f}"
            f"  {given.expect:<8}  {each.outcome}{mark}",
            flush=True,
        )
        if each.trail:
            print(each.trail)
        yield each


def main() -> int:
    """Check what the command line asks for."""
    parser = argparse.ArgumentParser(description="check the model of the protocol with spin")
    parser.add_argument("level", choices=["quick", "full"], help="full is quick and the long ones")
    parser.add_argument("--only", metavar="NAME", help="only this configuration, whatever its level")
    parser.add_argument("--trail", action="store_true", help="print the steps that led to what was found")
    asked = parser.parse_args()
    if missing():
        print(MISSING, file=sys.stderr)
        return 2
    todo = [one for one in configurations() if asked.only in (None, one.name)]
    todo = [one for one in todo if asked.only or asked.level == "full" or one.level == "quick"]
    if not todo:
        print(f"there is no configuration {asked.only!r}; they are in {HERE}/**/configs.toml", file=sys.stderr)
        return 2
    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        done = list(_table(pool.map(lambda one: check(one, asked.trail), todo)))
    wrong = [each.configuration.name for each in done if not each.is_right]
    print(f"{len(done)} configurations, {len(wrong)} not as expected{': ' if wrong else ''}{', '.join(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
