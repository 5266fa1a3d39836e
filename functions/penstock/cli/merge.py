"""Some tables of a site, merged into the site's whole configuration. Comments stay."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from penstock.domain.site.site import Site

Tables = Mapping[str, Any]


def merge(site: str, file: str) -> str:
    """The text of a site to which a file's tables are added, or in which they replace those with the same name.

    Of a table without names, such as [limits], only the keys that the file has are replaced.
    """
    wanted = _put_together(tomllib.loads(site), tomllib.loads(file))
    with suppress(TOMLKitError, ValueError):
        text = tomlkit.dumps(_put_together(tomlkit.parse(site), tomlkit.parse(file)))
        if tomllib.loads(text) == wanted:
            return text
    return tomlkit.dumps(wanted)


def _put_together(site: Any, file: Tables) -> Any:
    for name, table in file.items():
        if name in site and isinstance(table, Mapping) and isinstance(site[name], Mapping):
            site[name].update(table)
        elif isinstance(table, Mapping) and _has_names(name):
            site[name] = dict(table)
        else:
            site[name] = table
    return site


def _has_names(table: str) -> bool:
    """Whether a site has many such tables, each with a name of its own."""
    return isinstance(getattr(Site(), table, None), Mapping)
