"""What is uploaded runs with what Lambda brings and nothing more."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

from infra import bundle, bytecode, sbom
from infra.node import use_bundled
from infra.pins import pins
from infra.sizes import SIZES
from penstock.sources import ROOT as SOURCES
from tests.infra.template import Template

LAMBDA_BRINGS = ("boto3", "botocore", "s3transfer", "urllib3", "dateutil", "six")


@pytest.fixture(scope="module")
def assets(assembly: Path) -> dict[str, Path]:
    """The uploaded folders: "code" and "layer"."""
    files = json.loads((assembly / "Penstock.assets.json").read_text())["files"].values()
    folders = [assembly / each["source"]["path"] for each in files if each["source"]["packaging"] == "zip"]
    return {"layer" if (folder / "python").is_dir() else "code": folder for folder in folders}


@pytest.mark.e2e
@pytest.mark.parametrize("name", SIZES)
def test_a_handler_imports_with_the_layer_alone(assets: dict[str, Path], tmp_path: Path, name: str) -> None:
    for package in LAMBDA_BRINGS:
        spec = find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        source = Path(spec.origin)
        target = tmp_path / (package if spec.submodule_search_locations else source.name)
        target.symlink_to(source.parent if spec.submodule_search_locations else source)
    folders = [str(assets["code"]), str(assets["layer"] / "python"), str(tmp_path)]
    script = f"import sys; sys.path[:0] = {folders!r}; sys.dont_write_bytecode = True; import {name}; {name}.handler"
    environment = {"POWERTOOLS_SERVICE_NAME": "penstock"}
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.e2e
def test_the_layer_is_pure_python(assets: dict[str, Path]) -> None:
    assert not [path for path in assets["layer"].rglob("*") if path.suffix in (".so", ".pyd", ".dylib")]


@pytest.mark.e2e
def test_the_layer_has_what_its_bill_of_materials_lists(assets: dict[str, Path]) -> None:
    listed = json.loads(sbom.bill([bundle.REQUIREMENTS.read_text()]))["components"]
    folders = [path.stem for path in (assets["layer"] / "python").glob("*.dist-info")]
    assert sorted(f"{each['name']}-{each['version']}".replace("_", "-") for each in listed if "purl" in each) == sorted(
        each.lower().replace("_", "-") for each in folders
    )


@pytest.mark.e2e
def test_our_zip_has_the_agent_and_not_the_tools(assets: dict[str, Path]) -> None:
    package = assets["code"] / "penstock"
    assert (package / "agent").is_dir()
    assert not (package / "cli").exists()
    assert not (package / "local").exists()
    assert not (package / "testing").exists()
    assert (package / "api" / "openapi.json").is_file()
    assert not [path for path in assets["code"].rglob("*") if path.suffix not in ("", ".py", ".pyc", ".json")]


UNCHECKED = 1
"""The flags of a compiled module that is not compared with its source. Source: PEP 552."""


@pytest.mark.e2e
@pytest.mark.parametrize("name", ["code", "layer"])
def test_every_uploaded_module_is_compiled_for_the_functions_python(assets: dict[str, Path], name: str) -> None:
    modules = [path for path in assets[name].rglob("*.py")]
    compiled = [path for path in map(compiled_by_the_functions_python, modules) if path.is_file()]
    assert len(compiled) == (len(modules) if bytecode.compiler() else 0)
    for path in compiled:
        magic, flags = struct.unpack("<HxxI", path.read_bytes()[:8])
        assert (magic, flags) == (bytecode.MAGIC, UNCHECKED), path


def compiled_by_the_functions_python(module: Path) -> Path:
    return module.parent / "__pycache__" / f"{module.stem}.cpython-{bytecode.VERSION.replace('.', '')}.pyc"


def test_the_functions_have_the_python_that_their_modules_are_compiled_for(stack: Template) -> None:
    runtimes = {each["Properties"]["Runtime"] for each in stack.of("Lambda::Function").values()}
    assert runtimes == {f"python{bytecode.VERSION}"}


def test_compiled_modules_are_used_whatever_times_an_archive_gives_the_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bytecode, "compiler", lambda: sys.executable)
    module = tmp_path / "uploaded.py"
    module.write_text("VALUE = 1\n")
    bytecode.compile_folder(tmp_path, "/var/task")
    os.utime(module, (1, 1))
    script = f"""if True:
        import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.dont_write_bytecode = True
        from importlib.machinery import SourceFileLoader
        def refused(self, data, path, **_): raise AssertionError(f"{{path}} is compiled again")
        SourceFileLoader.source_to_code = refused
        import uploaded
        print(uploaded.VALUE)
    """
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout == "1\n", done.stderr
    assert b"/var/task/uploaded.py" in next((tmp_path / "__pycache__").iterdir()).read_bytes()


def test_another_python_does_not_compile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "python3.13"
    old.write_text("#!/bin/sh\necho 3495\n")
    absent = tmp_path / "stand-in"
    absent.write_text("#!/bin/sh\necho 'pyenv: python3.13: command not found' >&2; exit 127\n")
    right = tmp_path / "right"
    right.write_text(f"#!/bin/sh\necho {bytecode.MAGIC}\n")
    for program in (old, absent, right):
        program.chmod(0o755)
    for found, programs in ((str(right), (old, absent, right)), (None, (old, absent))):
        monkeypatch.setattr(bytecode, "_candidates", lambda programs=programs: map(str, programs))
        assert bytecode.compiler.__wrapped__() == found


def test_without_a_compiler_only_sources_are_deployed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "uploaded.py").write_text("VALUE = 1\n")
    monkeypatch.setattr(bytecode, "compiler", lambda: None)
    bytecode.compile_folder(tmp_path, "/var/task")
    assert [path.name for path in tmp_path.iterdir()] == ["uploaded.py"]


def test_a_deployment_without_compiled_modules_warns(assembly: Path, stacks_with_settings: Mapping[str, Path]) -> None:
    def warns(folder: Path) -> bool:
        return any("without compiled modules" in path.read_text() for path in folder.glob("*.json"))

    assert warns(stacks_with_settings["uncompiled"])
    assert warns(assembly) is (bytecode.compiler() is None)


def test_programs_on_path_and_of_pyenv_may_compile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    installed = tmp_path / "versions" / "3.13.0" / "bin" / "python"
    on_path = tmp_path / "bin" / "python3.13"
    for program in (installed, on_path):
        program.parent.mkdir(parents=True)
        program.write_text("")
        program.chmod(0o755)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert list(bytecode._candidates()) == [sys.executable, str(on_path), str(installed)]
    monkeypatch.setenv("PATH", "")
    assert list(bytecode._candidates()) == [sys.executable, str(installed)]


def test_every_library_is_pinned_and_says_why() -> None:
    lines = (SOURCES / "functions" / "requirements.txt").read_text().splitlines()
    libraries = [number for number, line in enumerate(lines) if line and not line.startswith(("#", " "))]
    assert libraries
    assert not [lines[number] for number in libraries if "==" not in lines[number]]
    assert not [lines[number] for number in libraries if not lines[number - 1].startswith("# ")]


def test_functions_have_the_versions_that_developers_test_with() -> None:
    developers, functions = (
        set(pins((SOURCES / name).read_text().lower().replace("_", "-")))
        for name in ("requirements.txt", "functions/requirements.txt")
    )
    assert functions <= developers


def test_the_pinned_node_serves_where_none_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JSII_NODE", raising=False)
    use_bundled()
    import os

    node = os.environ["JSII_NODE"]
    assert subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.startswith("v")
