"""What wells and controllers need beyond the stack is a choice of the deployment, by name. [SEC-2]"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from infra import names
from penstock.sources import ROOT as SOURCES
from tests.infra.stacks import CLEANER, OTHER
from tests.infra.template import Template, listed, text

HERE = "<AWS::Region>:<AWS::AccountId>"


@pytest.fixture(scope="module")
def made(out: Path) -> Template:
    """With secrets and functions."""
    return Template.read(out / "Penstock.template.json")


@pytest.fixture(scope="module")
def out(stacks_with_settings: Mapping[str, Path]) -> Path:
    return stacks_with_settings["wells"]


def layers(assembly: Path) -> list[Path]:
    files = json.loads((assembly / "Penstock.assets.json").read_text())["files"].values()
    found = [assembly / each["source"]["path"] / "python" for each in files]
    return [folder for folder in found if folder.is_dir()]


def test_other_peoples_drivers_are_in_the_layer_and_found_there(
    stacks_with_settings: Mapping[str, Path], assembly: Path
) -> None:
    (layer,) = layers(stacks_with_settings["drivers"])
    shown = "[f'{each.name} of {each.package}' for each in installed_drivers()]"
    script = f"from penstock.drivers.installed import installed_drivers; print(*{shown}, sep=';')"
    folders = [str(SOURCES / "functions"), str(layer)]
    code = f"import sys; sys.path[:0] = {folders!r}; sys.dont_write_bytecode = True; {script}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "shelf of shelf 1.2" in done.stdout.strip().split(";")
    assert not (layers(assembly)[0] / "shelf.py").exists()


def more(made: Template, stack: Template, name: str) -> dict[str, set[str]]:
    """What a function may do that it may not without."""

    def granted(template: Template) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for statement in template.statements(template.functions()[name]["Role"]):
            for resource in listed(statement["Resource"]):
                found.setdefault(text(resource), set()).update(listed(statement["Action"]))
        return found

    before = granted(stack)
    return {resource: actions for resource, actions in granted(made).items() if before.get(resource) != actions}


SECRETS = {
    f"arn:<AWS::Partition>:secretsmanager:{HERE}:secret:penstock/rack-??????": {"secretsmanager:GetSecretValue"},
    f"arn:<AWS::Partition>:ssm:{HERE}:parameter/penstock/boards/key": {"ssm:GetParameter"},
}
OF_FACTORIES = {
    f"arn:<AWS::Partition>:secretsmanager:{HERE}:secret:penstock/lab-??????": {"secretsmanager:GetSecretValue"},
    f"arn:<AWS::Partition>:ssm:{HERE}:parameter/penstock/propolis/key": {"ssm:GetParameter"},
}
CALLS = {"lambda:GetFunctionConfiguration", "lambda:InvokeFunction"}


def test_those_that_are_named_and_no_other(made: Template, stack: Template) -> None:
    """A well's function cannot order machines in a factory's name, nor the other way round; the sweep lists both."""
    assert more(made, stack, "well") == {**SECRETS, CLEANER: CALLS, OTHER: CALLS}
    assert more(made, stack, "factory") == OF_FACTORIES
    assert more(made, stack, "sweep") == {**SECRETS, **OF_FACTORIES}
    for name in set(made.functions()) - {"well", "factory", "sweep"}:
        assert more(made, stack, name) == {}


@pytest.mark.parametrize("name", ["others/rack", "penstock", "penstock/*", "/other/penstock/a", "penstock/r?ck"])
def test_no_secret_that_is_not_below_our_name(name: str) -> None:
    assert names.secrets("well_secrets", ["penstock/rack"]) == ["penstock/rack"]
    for option in ("well_secrets", "factory_secrets"):
        with pytest.raises(ValueError, match=option):
            names.secrets(option, ["penstock/rack", name])


@pytest.mark.parametrize("arn", ["*", "clean", CLEANER + "*", "arn:aws:s3:eu-west-1:123456789012:function:clean"])
def test_no_function_that_has_no_arn(arn: str) -> None:
    with pytest.raises(ValueError, match="accounts_lambdas"):
        names.functions([CLEANER, arn])
