"""The example of docs/drivers/testing.md runs."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

from penstock.testing import site as site_module
from penstock.testing.site import site, site_toml

PAGE = Path(__file__).parents[2] / "docs" / "drivers" / "testing.md"


def test_the_example_passes() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(code, str(PAGE), "exec"), names)
    (test,) = [each for name, each in names.items() if name.startswith("test_")]
    assert callable(test)
    test()


def test_the_example_of_the_site_builder_is_true() -> None:
    found = doctest.testmod(site_module)
    assert (found.failed, found.attempted) == (0, 1)


def test_a_site_is_made_from_its_sections() -> None:
    made = site(
        targets={"linux": {"limit": 2, "warm": {"max": 1}}, "default": "linux"},
        quotas={"vcpus": 8},
        limits={"queue": "7d"},
    )
    assert (made.targets["linux"].factory, made.targets["default"].redirect) == ("hand", "linux")
    assert made.quotas.keys() == {"vcpus"}


def test_a_table_within_a_table_stands_on_one_line() -> None:
    assert 'warm = { max = 1, idle = "10m" }' in site_toml(targets={"linux": {"warm": {"max": 1, "idle": "10m"}}})
