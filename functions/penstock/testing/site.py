"""Site files, made from keyword arguments: one for each section, in the order in which they are given."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from penstock.domain.site.parse import parse
from penstock.domain.site.site import Site

SHORT = {"factories": "driver", "wells": "driver", "targets": "redirect", "quotas": "amount"}
"""The key of a table that is given as a single value."""
FACTORY = "hand"
"""The factory of all targets that name none, and its driver."""


def site(**sections: Mapping[str, Any]) -> Site:
    """A site with these sections: see site_toml."""
    found = parse(site_toml(**sections), "site.toml")
    if not isinstance(found, Site):
        raise ValueError("; ".join(str(each) for each in found))
    return found


def site_toml(**sections: Mapping[str, Any]) -> str:
    """The text of a site file. A site without factories has one, `hand`; it makes all targets that name none.

    >>> print(site_toml(targets={"linux": {"limit": 2}, "default": "linux"}, quotas={"vcpus": 8}), end="")
    [factories.hand]
    driver = "hand"
    [targets.linux]
    factory = "hand"
    limit = 2
    [targets.default]
    redirect = "linux"
    [quotas.vcpus]
    amount = 8
    """
    whole: Mapping[str, Mapping[str, Any]] = sections
    if "factories" not in sections:
        whole = {"factories": {FACTORY: FACTORY}, **sections}
    return "".join(_section(name, tables) for name, tables in whole.items())


def _section(name: str, tables: Mapping[str, Any]) -> str:
    """A table for each member, or a single table for a section such as `limits`."""
    if name in SHORT or name == "resources":
        return "".join(_table(f"{name}.{key}", _full(name, value)) for key, value in tables.items())
    return _table(name, tables)


def _full(section: str, value: Any) -> Mapping[str, Any]:
    table = dict(value) if isinstance(value, Mapping) else {SHORT[section]: value}
    if section == "targets" and not table.keys() & {"factory", "redirect", "machines"}:
        return {"factory": FACTORY, **table}
    return table


def _table(name: str, keys: Mapping[str, Any]) -> str:
    return "".join([f"[{name}]\n", *(f"{key} = {_value(value)}\n" for key, value in keys.items())])


def _value(value: Any) -> str:
    """A TOML value; a table inside a table stands on one line."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_value(each)}' for key, each in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(each) for each in value)}]"
    return json.dumps(value, ensure_ascii=False)
