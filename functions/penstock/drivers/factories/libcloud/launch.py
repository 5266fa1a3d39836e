"""One create_node call: all its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.drivers.factories.libcloud.alternatives import Alternative
from penstock.drivers.factories.libcloud.dialects import boot_argument, dialect, tags_argument
from penstock.drivers.factories.libcloud.names import Names
from penstock.drivers.factories.libcloud.nodes import Nodes, named
from penstock.drivers.factories.libcloud.settings import Settings


def request(
    worker: str, way: Alternative, settings: Settings, names: Names, nodes: Nodes, script: str
) -> dict[str, Any]:
    """The arguments of one try. Looks up what create_node wants as objects. Raises CallFailed."""
    spoken = dialect(settings)
    wanted: dict[str, Any] = {**spoken.create, **settings.create, **spoken.must, "name": names.of(worker)}
    if way.location is not None:
        wanted[spoken.location] = nodes.location(way.location)
    wanted["size"] = nodes.size(way.size, way.location)
    wanted["image"] = nodes.image(settings.image, way.location) if settings.image else None
    for key in spoken.named:
        if key in wanted:
            wanted[key] = [named(str(each)) for each in wanted[key]]
    if settings.ssh_key:
        wanted["auth"] = _auth(settings.ssh_key)
    _put(wanted, boot_argument(settings), script.encode() if spoken.boots_bytes else script)
    _put(wanted, tags_argument(settings), names.tags(worker, str(way)))
    return wanted


def _auth(key: str) -> Any:
    from libcloud.compute.base import NodeAuthSSHKey

    return NodeAuthSSHKey(key)


def _put(wanted: dict[str, Any], argument: str | None, value: Any) -> None:
    """Give an argument, or one entry of it. What the site gave beside stays; ours stands over it."""
    if argument is None:
        return
    name, _, entry = argument.partition(".")
    given = {entry: value} if entry else value
    before = wanted.get(name)
    wanted[name] = {**before, **given} if isinstance(before, Mapping) and isinstance(given, Mapping) else given
