"""What each function imports, counted: whoever adds to it raises the figure in imports.toml, and says what for."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from penstock.sources import ROOT as SOURCES

MOST: dict[str, dict[str, int]] = tomllib.loads(Path(__file__).with_name("imports.toml").read_text())

SCRIPT = """
import importlib, json, os, sys
importlib.import_module({name!r})
files = {{key: each.__file__ for key, each in sys.modules.items() if getattr(each, "__file__", None)}}
ours = [path for key, path in files.items() if key.partition(".")[0] in ("penstock", {name!r})]
layer = ("attr", "attrs", "aws_lambda_powertools", "cattrs", "jmespath", "pynamodb", "typing_extensions", "pg8000")
libraries = [path for key, path in files.items() if key.partition(".")[0] in layer]
generated = [
    f"{{kind.__module__}}.{{kind.__qualname__}}"
    for key in files if key.startswith("penstock")
    for kind in vars(sys.modules[key]).values()
    if isinstance(kind, type) and kind.__module__ == key
    if getattr(vars(kind).get("__dataclass_params__"), "frozen", False)
]
print(json.dumps({{
    "modules": len(ours), "kilobytes": sum(map(os.path.getsize, ours)) // 1000, "libraries": len(libraries),
    "generated": generated,
}}))
"""


def counted(name: str) -> dict[str, Any]:
    script = f"import sys; sys.path.insert(0, {str(SOURCES / 'functions')!r})\n" + SCRIPT.format(name=name)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", MOST)
def test_a_function_imports_no_more_than_its_figure(name: str) -> None:
    found = counted(name)
    assert found["generated"] == [], "use the decorator of penstock.kernel.frozen: its classes share their methods"
    above = {what: found[what] for what, most in MOST[name].items() if found[what] > most}
    assert above == {}, f"the figures are {MOST[name]}"


def test_every_function_has_figures() -> None:
    assert set(MOST) == {path.stem for path in (SOURCES / "functions").glob("*.py")}
