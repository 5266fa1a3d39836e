"""`bmat address`: the ranges in the `addresses` of the resources' metadata."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from typing import Any

from .facts import facts, pick, plain
from .table import table

COLUMNS = ("name", "cidr", "first", "last", "count", "family", "network", "mask", "routed", "gateway")


def show_all(args: argparse.Namespace) -> Iterator[str]:
    """List ranges. Raises Absent for columns that there are not."""
    resources = facts()["resources"].values()
    found = [row for resource in resources for row in resource["metadata"].get("addresses") or []]
    columns = [column.strip() for column in args.columns.split(",")]
    for column in columns:
        pick("column", column, dict.fromkeys(COLUMNS))
    rows = [_row(row, columns) for row in found if args.name in (None, row.get("name"))]
    return table(rows, columns, not args.no_header)


def _row(address: dict[str, Any], columns: list[str]) -> list[str]:
    """Return the cells of a range; what its metadata doesn't say follows from its `cidr`."""
    known: dict[str, Any] = {}
    with contextlib.suppress(KeyError, ValueError):
        known = _derived(address["cidr"])
    known.update(address)
    return [plain(known.get(column)) or "-" for column in columns]


def _derived(cidr: str) -> dict[str, Any]:
    """Return what follows from a range. Raises ValueError."""
    import ipaddress  # here, for it takes longer than all the rest

    network = ipaddress.ip_network(cidr, strict=False)
    spare = 1 if network.num_addresses > 2 and network.version == 4 else 0  # network and broadcast address
    return {
        "first": str(network[spare]),
        "last": str(network[-1 - spare]),
        "count": network.num_addresses - 2 * spare,
        "family": "inet6" if network.version == 6 else "inet",
        "network": str(network.network_address),
        "mask": str(network.netmask),
    }
