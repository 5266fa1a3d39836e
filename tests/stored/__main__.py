"""Records what this release stores and sends: `python -m tests.stored`, when a release is made.

It runs every scenario of the crash sweep without a fault, and writes `forms.json` (what the code declares),
`rows.jsonl` (examples of each kind, as they were stored) and `messages.jsonl` (examples of each message, with the
function that it was for). `release.toml` has the commit: it must be that of the release.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from penstock import bootstrap
from penstock.aws import dynamodb
from penstock.kernel.rows import Row
from tests.crash.scenarios import SCENARIOS
from tests.crash.sweep import MORE, Sweep
from tests.stored.forms import forms

FOLDER = Path(__file__).parent / "released"
ABOUT = "# What the files beside this one were recorded from, and what a deployment over it is tested from."

MOST = 6
"""Of each kind of row, and of each message, so many examples of different form are kept at most."""


def main() -> None:
    """Write the files."""
    rows: dict[str, dict[str, str]] = {}
    messages: dict[str, dict[str, str]] = {}
    with pytest.MonkeyPatch.context() as patch:
        _watch(patch, rows, messages)
        sweep = Sweep(patch)
        assert MORE
        for number, name in enumerate(SCENARIOS, 1):
            sweep.run(name)
            print(f"{number} of {len(SCENARIOS)}: {name}", flush=True)
        sweep.close()
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "forms.json").write_text(json.dumps(forms(), indent=1) + "\n", encoding="utf-8")
    _write("rows.jsonl", rows)
    _write("messages.jsonl", messages)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=FOLDER, capture_output=True, text=True, check=True).stdout
    (FOLDER / "release.toml").write_text(f'{ABOUT}\ncommit = "{head.strip()}"\n', encoding="utf-8")


def _watch(patch: pytest.MonkeyPatch, rows: dict[str, dict[str, str]], messages: dict[str, dict[str, str]]) -> None:
    """Note each row that is stored and each message that is taken, by what it is and by its form."""
    dump, is_done = dynamodb.dump, bootstrap._is_done

    def dumped(row: Row) -> str:
        text = dump(row)
        rows.setdefault(row.kind, {}).setdefault(_shape(json.loads(text)), text)
        return text

    def taken(body: str, step: Callable[[dict[str, Any]], None]) -> bool:
        kind = str(json.loads(body).get("do", ""))
        messages.setdefault(f"{step.__module__} {kind}", {}).setdefault(_shape(json.loads(body)), body)
        return is_done(body, step)

    patch.setattr(dynamodb, "dump", dumped)
    patch.setattr(bootstrap, "_is_done", taken)


def _shape(value: object) -> str:
    """The names in a value of JSON, without what they have."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{name}:{_shape(each)}" for name, each in sorted(value.items())) + "}"
    if isinstance(value, list):
        return f"[{_shape(value[0]) if value else ''}]"
    return type(value).__name__


def _write(name: str, found: dict[str, dict[str, str]]) -> None:
    lines: Iterable[str] = (
        json.dumps({"of": kind, "body": text}, ensure_ascii=False)
        for kind, shapes in sorted(found.items())
        for _, text in sorted(shapes.items(), key=lambda each: -len(each[0]))[:MOST]
    )
    (FOLDER / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
